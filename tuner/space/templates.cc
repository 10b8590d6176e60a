#include "tuner/space/templates.h"

#include <algorithm>

namespace hone {
namespace {

const BlockInfo& Heaviest(const WorkloadInfo& info) { return info.blocks[static_cast<size_t>(info.heaviest)]; }

int64_t Taps(const BlockInfo& block) {
  int64_t taps = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.spatial(i)) taps *= block.extents[static_cast<size_t>(i)];
  }
  return taps;
}

// Products and convolutions over many terms: long runs of the innermost loop, unrolled by what a line of operands
// holds.
bool IsProduct(const WorkloadInfo& info) {
  const BlockInfo& block = Heaviest(info);
  return block.reduces && block.splits && Taps(block) >= 64;
}
bool KeepsForProduct(std::string_view knob, int64_t value) {
  if (knob.ends_with("unroll")) return value >= 4;
  if (knob.ends_with("window")) return value == 0;
  return true;
}

// Depthwise convolutions and pools: all taps in straight code.
bool IsWindow(const WorkloadInfo& info) {
  const BlockInfo& block = Heaviest(info);
  return block.reduces && Taps(block) <= 25;
}
bool KeepsForWindow(std::string_view knob, int64_t value) { return knob.ends_with("window") ? value == 1 : true; }

constexpr Template kTemplates[] = {
    {"product", IsProduct, KeepsForProduct},
    {"window", IsWindow, KeepsForWindow},
};

}  // namespace

std::span<const Template> Templates() { return kTemplates; }

std::vector<int64_t> Restricted(const Template& restriction, const Knob& knob) {
  std::vector<int64_t> kept;
  const std::string_view name = std::string_view(knob.name).substr(knob.name.find('.') + 1);
  std::copy_if(knob.candidates.begin(), knob.candidates.end(), std::back_inserter(kept),
               [&](int64_t value) { return restriction.keeps(name, value); });
  return kept.empty() ? knob.candidates : kept;
}

}  // namespace hone
