#include "tuner/model/features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tuner/model/feature_groups.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 2> kSources = {"template", "sketch"};

// What is the same for all stores of a program.
struct Program {
  double draft_us = 0, nests_us = 0, stores = 0, parallel_nests = 0;
  double scratch_over_l2 = 0, thread_scratch_over_l2 = 0;
  int source = -1;
};

void ProgramGroup(const Program& program, double share, FeatureSink* sink) {
  sink->Raw("share", share);
  sink->Log("draft_us", program.draft_us);
  sink->Ratio("draft_over_nests", program.draft_us > 0 ? program.draft_us / std::max(program.nests_us, 1e-3) : 1);
  sink->Log("program_us", program.nests_us);
  sink->Log("program_stores", program.stores);
  sink->Log("program_parallel_nests", program.parallel_nests);
  sink->Ratio("scratch_over_l2", program.scratch_over_l2);
  sink->Ratio("thread_scratch_over_l2", program.thread_scratch_over_l2);
  for (size_t s = 0; s < kSources.size(); ++s) sink->Flag(kSources[s], program.source == static_cast<int>(s));
}

void WriteRow(const StoreNest& nest, const NestLevels& levels, const NestCosts& costs, const NestMachine& machine,
              const EarlierUses& earlier, const Program& program, double share, FeatureSink* sink) {
  OperationFeatures(nest, levels.iterations[0], sink);
  AnnotationFeatures(nest, sink);
  BufferFeatures(nest, levels, earlier, sink);
  IntensityFeatures(nest, levels, sink);
  AllocationFeatures(nest, sink);
  OuterFeatures(nest, sink);
  MachineFeatures(nest, levels, costs, machine, sink);
  ProgramGroup(program, share, sink);
}

const std::vector<std::string>& Names() {
  static const auto* names = [] {
    auto* made = new std::vector<std::string>;
    FeatureSink sink(nullptr, made);
    StoreNest nest;
    nest.target = Buffer("b", kFloat32, {1});
    const NestLevels levels = LevelsOf(nest);
    const NestMachine machine;
    WriteRow(nest, levels, CostsOf(nest, levels, machine), machine, {}, {}, 0, &sink);
    return made;
  }();
  return *names;
}

}  // namespace

size_t NumFeatures() { return Names().size(); }
const std::string& FeatureName(size_t index) { return Names()[index]; }

ProgramFeatures ExtractFeatures(const LoweredFunc& lowered, const Target& target, const Machine& facts, int threads,
                                const CandidateFacts& candidate) {
  const NestMachine machine = MachineOf(target, facts, threads);
  std::vector<StoreNest> nests = StoreNests(lowered);
  if (nests.empty()) {  // a function without elements: one row of nothing
    nests.emplace_back();
    nests.back().target = Buffer("nothing", kFloat32, {0});
  }
  std::vector<NestLevels> levels;
  std::vector<NestCosts> costs;
  Program program;
  for (const StoreNest& nest : nests) {
    levels.push_back(LevelsOf(nest));
    costs.push_back(CostsOf(nest, levels.back(), machine));
    program.nests_us += costs.back().microseconds;
    program.parallel_nests += costs.back().parallel > 1 ? 1 : 0;
  }
  program.draft_us = candidate.draft_us;
  program.stores = static_cast<double>(nests.size());
  program.scratch_over_l2 = static_cast<double>(lowered.scratch_bytes) / machine.capacity[1];
  program.thread_scratch_over_l2 = static_cast<double>(lowered.thread_scratch_bytes) / machine.capacity[1];
  for (size_t s = 0; s < kSources.size(); ++s) {
    if (candidate.source == kSources[s]) program.source = static_cast<int>(s);
  }

  // The stores that matter, in program order.
  std::vector<size_t> order(nests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a].microseconds > costs[b].microseconds; });
  if (order.size() > kMostStores) order.resize(kMostStores);
  std::sort(order.begin(), order.end());
  double sum = 0;
  for (const size_t n : order) sum += costs[n].microseconds;

  ProgramFeatures features;
  features.rows.reserve(order.size() * NumFeatures());
  FeatureSink sink(&features.rows, nullptr);
  EarlierUses earlier;
  size_t next = 0;
  for (const size_t n : order) {
    for (; next < n; ++next) earlier.Note(nests[next], levels[next]);
    const double share = sum > 0 ? costs[n].microseconds / sum : 1.0 / static_cast<double>(order.size());
    WriteRow(nests[n], levels[n], costs[n], machine, earlier, program, share, &sink);
    features.shares.push_back(static_cast<float>(share));
  }
  return features;
}

}  // namespace hone
