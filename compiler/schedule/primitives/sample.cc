#include "compiler/schedule/primitives/sample.h"

#include <numeric>
#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<int64_t> ConstantExtent(const Schedule& schedule, LoopRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "sample_perfect_tile"));
  const For& loop = schedule.index().loop(node);
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  if (!extent.has_value() || *extent < 1) {
    return Refused("sample_perfect_tile(", loop.var, "): the extent ", loop.extent, " is not a number above 0");
  }
  return *extent;
}

// The loops under which a block could move: those around its first consumer that it is not itself under.
absl::StatusOr<std::vector<Var>> Locations(const Schedule& schedule, BlockRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "sample_compute_location"));
  std::vector<Var> vars;
  if (node == 0) return vars;
  const ProgramIndex& index = schedule.index();
  const std::vector<int> consumers = ConsumersOf(index, node);
  if (consumers.empty()) return vars;
  for (const int loop : index.LoopsAbove(consumers[0])) {
    if (!index.Contains(loop, node)) vars.push_back(index.loop(loop).var);
  }
  return vars;
}

}  // namespace

absl::StatusOr<std::vector<ValueRef>> SamplePerfectTile(Schedule& schedule, LoopRef loop, int n,
                                                        int64_t max_innermost_factor, std::vector<int64_t> decision) {
  HONE_ASSIGN_OR_RETURN(const int64_t extent, ConstantExtent(schedule, loop));
  if (n < 1 || static_cast<int>(decision.size()) != n) {
    return Invalid("sample_perfect_tile: the decision has ", decision.size(), " factors, n is ", n);
  }
  int64_t product = 1;
  for (const int64_t factor : decision) {
    if (factor < 1 || factor > extent)
      return Invalid("sample_perfect_tile: factor ", factor, " of extent ", extent, " is out of range");
    product *= factor;
    if (product > extent) break;
  }
  if (product != extent) return Invalid("sample_perfect_tile: the decision does not multiply to the extent ", extent);
  if (max_innermost_factor > 0 && n > 1 && decision.back() > max_innermost_factor) {
    return Invalid("sample_perfect_tile: the last factor is ", decision.back(), ", above max_innermost_factor ",
                   max_innermost_factor);
  }
  // ---- nothing below fails ----
  Schedule::Outputs outputs;
  for (const int64_t factor : decision) outputs.push_back(Schedule::Output::Number(factor));
  const int number = schedule.Record(
      SamplePerfectTileStep{
          .loop = loop, .n = n, .max_innermost_factor = max_innermost_factor, .decision = std::move(decision)},
      std::move(outputs));
  std::vector<ValueRef> refs;
  for (int k = 0; k < n; ++k) refs.push_back({number, k});
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> SamplePerfectTile(Schedule& schedule, LoopRef loop, int n,
                                                        int64_t max_innermost_factor, Random& random) {
  HONE_ASSIGN_OR_RETURN(const int64_t extent, ConstantExtent(schedule, loop));
  if (n < 1) return Invalid("sample_perfect_tile: n is ", n, ", below 1");
  // Every prime factor goes to a place of its own; one that would make the last factor too large goes elsewhere.
  std::vector<int64_t> decision(n, 1);
  int64_t rest = extent;
  for (int64_t prime = 2; rest > 1; ++prime) {
    if (prime * prime > rest) prime = rest;
    for (; rest % prime == 0; rest /= prime) {
      uint64_t place = random.Below(n);
      if (n > 1 && place + 1 == static_cast<uint64_t>(n) && max_innermost_factor > 0 &&
          decision[place] * prime > max_innermost_factor) {
        place = random.Below(n - 1);
      }
      decision[place] *= prime;
    }
  }
  return SamplePerfectTile(schedule, loop, n, max_innermost_factor, std::move(decision));
}

absl::StatusOr<ValueRef> SampleCategorical(Schedule& schedule, std::vector<int64_t> candidates,
                                           std::vector<double> probs, int decision) {
  if (!probs.empty() && probs.size() != candidates.size()) {
    return Invalid("sample_categorical: ", candidates.size(), " candidates, ", probs.size(), " probabilities");
  }
  if (decision < 0 || decision >= static_cast<int>(candidates.size())) {
    return Invalid("sample_categorical: decision ", decision, " of ", candidates.size(), " candidates");
  }
  // ---- nothing below fails ----
  const int64_t value = candidates[decision];
  const int number = schedule.Record(
      SampleCategoricalStep{.candidates = std::move(candidates), .probs = std::move(probs), .decision = decision},
      {Schedule::Output::Number(value)});
  return ValueRef{number, 0};
}

absl::StatusOr<ValueRef> SampleCategorical(Schedule& schedule, std::vector<int64_t> candidates,
                                           std::vector<double> probs, Random& random) {
  if (candidates.empty()) return Invalid("sample_categorical: no candidates");
  int decision = static_cast<int>(candidates.size()) - 1;
  if (probs.empty()) {
    decision = static_cast<int>(random.Below(candidates.size()));
  } else {
    double left = random.Uniform() * std::accumulate(probs.begin(), probs.end(), 0.0);
    for (size_t i = 0; i < probs.size() && i < candidates.size(); ++i) {
      left -= probs[i];
      if (left < 0) {
        decision = static_cast<int>(i);
        break;
      }
    }
  }
  return SampleCategorical(schedule, std::move(candidates), std::move(probs), decision);
}

absl::StatusOr<LoopRef> SampleComputeLocation(Schedule& schedule, BlockRef block, int decision) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Var> locations, Locations(schedule, block));
  if (decision < -1 || decision >= static_cast<int>(locations.size())) {
    return Invalid("sample_compute_location: decision ", decision, ", there are ", locations.size(),
                   " locations; -1 is where it is");
  }
  // ---- nothing below fails ----
  const int number = schedule.Record(SampleComputeLocationStep{.block = block, .decision = decision},
                                     {Schedule::Output::Loop(decision < 0 ? Var() : locations[decision])});
  return LoopRef{number, 0};
}

absl::StatusOr<std::vector<int64_t>> LegalComputeLocations(const Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Var> locations, Locations(schedule, block));
  std::vector<int64_t> legal = {-1};
  for (int i = 0; i < static_cast<int>(locations.size()); ++i) {
    Schedule trial = schedule;
    HONE_ASSIGN_OR_RETURN(const LoopRef location, SampleComputeLocation(trial, block, i));
    if (ComputeAt(trial, block, location).ok()) legal.push_back(i);
  }
  return legal;
}

absl::StatusOr<LoopRef> SampleComputeLocation(Schedule& schedule, BlockRef block, Random& random) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> legal, LegalComputeLocations(schedule, block));
  return SampleComputeLocation(schedule, block, AsIndex(legal[random.Below(legal.size())]));
}

absl::Status Apply(Schedule& schedule, const SamplePerfectTileStep& step) {
  return SamplePerfectTile(schedule, step.loop, AsIndex(step.n), step.max_innermost_factor, step.decision).status();
}

absl::Status Apply(Schedule& schedule, const SampleCategoricalStep& step) {
  return SampleCategorical(schedule, step.candidates, step.probs, AsIndex(step.decision)).status();
}

absl::Status Apply(Schedule& schedule, const SampleComputeLocationStep& step) {
  return SampleComputeLocation(schedule, step.block, AsIndex(step.decision)).status();
}

HONE_PRIMITIVES(sample, SamplePerfectTileStep, SampleCategoricalStep, SampleComputeLocationStep)

}  // namespace hone
