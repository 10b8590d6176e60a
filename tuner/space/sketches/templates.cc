#include "tuner/space/sketches/templates.h"

#include <algorithm>

namespace hone {
namespace {

int64_t Taps(const BlockInfo& block) {
  int64_t taps = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.spatial(i)) taps *= block.extents[static_cast<size_t>(i)];
  }
  return taps;
}

// Products and convolutions over many terms: long runs of the innermost loop, unrolled by what a line of operands
// holds.
bool IsProduct(const BlockInfo& block) { return block.reduces && block.splits && Taps(block) >= 64; }
bool KeepsForProduct(std::string_view knob, int64_t value) {
  if (knob.ends_with("unroll")) return value >= 4;
  if (knob.ends_with("window")) return value == 0;
  return true;
}

// Depthwise convolutions and pools: all taps in straight code.
bool IsWindow(const BlockInfo& block) { return block.reduces && Taps(block) <= 25; }
bool KeepsForWindow(std::string_view knob, int64_t value) { return knob.ends_with("window") ? value == 1 : true; }

constexpr Template kTemplates[] = {
    {"product", IsProduct, KeepsForProduct},
    {"window", IsWindow, KeepsForWindow},
};

}  // namespace

std::span<const Template> Templates() { return kTemplates; }

bool AppliesTo(const Template& restriction, const WorkloadInfo& info) {
  return restriction.applies(info.blocks[static_cast<size_t>(info.heaviest)]);
}

std::vector<int64_t> Restricted(const Template& restriction, const WorkloadInfo& info, const Knob& knob) {
  const std::string_view name = knob.name;
  const size_t dot = name.find('.');
  const auto block = std::ranges::find(info.blocks, name.substr(0, dot), &BlockInfo::name);
  if (block != info.blocks.end() && !restriction.applies(*block)) return knob.candidates;
  std::vector<int64_t> kept;
  std::copy_if(knob.candidates.begin(), knob.candidates.end(), std::back_inserter(kept),
               [&](int64_t value) { return restriction.keeps(name.substr(dot + 1), value); });
  return kept.empty() ? knob.candidates : kept;
}

}  // namespace hone
