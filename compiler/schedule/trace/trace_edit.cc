#include "compiler/schedule/trace/trace_edit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/step_compare.h"
#include "compiler/schedule/trace/step_refs.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

bool ChangesProgram(const Step& step) { return step.info().changes_program; }
bool Samples(const Step& step) {
  return step.As<SamplePerfectTileStep>() != nullptr || step.As<SampleCategoricalStep>() != nullptr ||
         step.As<SampleComputeLocationStep>() != nullptr;
}

// What a look-up finds does not depend on the loops around blocks: names of blocks last.
bool FindsByName(const Step& step) { return step.As<GetBlockStep>() != nullptr; }

// Look-ups that an earlier one has already answered: their outputs are the earlier one's.
Trace WithoutRepeatedLookUps(const Trace& trace) {
  Trace kept;
  std::vector<int> place(trace.steps.size());  // where a step, or what answers for it, is in `kept`
  int last_change = -1;                        // in `kept`
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    Step step = trace.steps[i];
    RewriteRefs(step, [&](int& s, int&) { s = place[s]; });
    int same = -1;
    if (!ChangesProgram(step) && !Samples(step)) {
      for (int k = static_cast<int>(kept.steps.size()); k-- > (FindsByName(step) ? 0 : last_change + 1);) {
        // Where one of the two does not say how many outputs it has, what uses them may not agree.
        if (kept.outputs[k] == trace.outputs[i] && SameStep(kept.steps[k], step)) same = k;
      }
    }
    if (same >= 0) {
      place[i] = same;
      continue;
    }
    place[i] = static_cast<int>(kept.steps.size());
    if (ChangesProgram(step)) last_change = place[i];
    kept.steps.push_back(std::move(step));
    kept.outputs.push_back(trace.outputs[i]);
  }
  return kept;
}

// Moves a prime factor of one place to another; false when nothing can move.
bool MovePrime(std::vector<int64_t>& factors, int64_t max_innermost, Random& random) {
  struct Move {
    size_t from, to;
    int64_t prime;
  };
  std::vector<Move> moves;
  for (size_t from = 0; from < factors.size(); ++from) {
    int64_t rest = factors[from];
    for (int64_t prime = 2; rest > 1; ++prime) {
      if (prime * prime > rest) prime = rest;
      if (rest % prime != 0) continue;
      while (rest % prime == 0) rest /= prime;
      for (size_t to = 0; to < factors.size(); ++to) {
        const bool bounded = to + 1 == factors.size() && max_innermost > 0 && factors[to] * prime > max_innermost;
        if (to != from && !bounded) moves.push_back({from, to, prime});
      }
    }
  }
  if (moves.empty()) return false;
  const Move& move = moves[random.Below(moves.size())];
  factors[move.from] /= move.prime;
  factors[move.to] *= move.prime;
  return true;
}

// Another index below `count`.
int64_t OtherIndex(int64_t now, int64_t count, Random& random) {
  const int64_t other = static_cast<int64_t>(random.Below(static_cast<uint64_t>(count - 1)));
  return other < now ? other : other + 1;
}

// What a sample_compute_location of the trace could choose instead; nothing where the steps before it do not replay.
std::vector<int64_t> OtherLocations(const Trace& trace, const PrimFunc& workload, int step) {
  const Trace before = {{trace.steps.begin(), trace.steps.begin() + step},
                        {trace.outputs.begin(), trace.outputs.begin() + step}};
  const absl::StatusOr<Schedule> schedule = Replay(before, workload);
  if (!schedule.ok()) return {};
  const auto& sample = *trace.steps[static_cast<size_t>(step)].As<SampleComputeLocationStep>();
  absl::StatusOr<std::vector<int64_t>> legal = LegalComputeLocations(*schedule, sample.block);
  if (!legal.ok()) return {};
  std::erase(*legal, sample.decision);
  return *std::move(legal);
}

absl::StatusOr<bool> IsSymbolic(const Schedule& schedule, const LoopRef& ref) {
  HONE_ASSIGN_OR_RETURN(const For* loop, schedule.FindLoop(ref));
  return !ConstantValue(loop->extent).has_value();
}

// Symbolic loops go outside, where they can, and the innermost of these is fused with the loops that are not.
absl::Status FuseForAllSizes(const FuseStep& step, Schedule& schedule) {
  std::vector<LoopRef> symbolic, numbers;
  size_t last = 0;  // symbolic loop, in the order of the step
  for (size_t i = 0; i < step.loops.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const bool is_symbolic, IsSymbolic(schedule, step.loops[i]));
    (is_symbolic ? symbolic : numbers).push_back(step.loops[i]);
    if (is_symbolic) last = i;
  }
  if (last == 0) return Fuse(schedule, step.loops).status();
  Schedule outside = schedule;
  std::vector<LoopRef> order = symbolic;
  order.insert(order.end(), numbers.begin(), numbers.end());
  if (Reorder(outside, order).ok()) {
    order.erase(order.begin(), order.begin() + static_cast<int64_t>(symbolic.size()) - 1);
    if (Fuse(outside, order).ok()) {
      schedule = std::move(outside);
      return absl::OkStatus();
    }
  }
  return Fuse(schedule, {step.loops.begin() + static_cast<int64_t>(last), step.loops.end()}).status();
}

absl::Status ApplyForAllSizes(Step step, Schedule& schedule) {
  if (const FuseStep* fuse = step.As<FuseStep>()) return FuseForAllSizes(*fuse, schedule);
  if (SplitStep* split = step.As<SplitStep>() == nullptr ? nullptr : step.Mutable<SplitStep>()) {
    HONE_ASSIGN_OR_RETURN(const bool is_symbolic, IsSymbolic(schedule, split->loop));
    const bool all_given = std::ranges::none_of(split->factors, [](const Value& v) { return v.absent(); });
    if (is_symbolic && all_given && !split->factors.empty()) split->factors[0] = Value();
  }
  return step.Apply(schedule);
}

}  // namespace

Trace WithoutSteps(const Trace& trace, const std::vector<bool>& drop) {
  HONE_CHECK(drop.size() == trace.steps.size()) << "one entry a step";
  Trace kept;
  std::vector<int> place(trace.steps.size(), -1);
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    if (drop[i]) continue;
    Step step = trace.steps[i];
    bool orphan = false;
    RewriteRefs(step, [&](int& s, int&) {
      s = s >= 0 && s < static_cast<int>(i) ? place[s] : -1;
      orphan |= s < 0;
    });
    if (orphan) continue;
    place[i] = static_cast<int>(kept.steps.size());
    kept.steps.push_back(std::move(step));
    kept.outputs.push_back(trace.outputs[i]);
  }
  return kept;
}

Trace Simplified(const Trace& trace) {
  const Trace once = WithoutRepeatedLookUps(trace);
  std::vector<bool> used(once.steps.size(), false), drop(once.steps.size(), false);
  for (size_t i = once.steps.size(); i-- > 0;) {
    drop[i] = !used[i] && !ChangesProgram(once.steps[i]);
    if (drop[i]) continue;
    ForEachRef(once.steps[i], [&](int s, int) { used[s] = true; });
  }
  return WithoutSteps(once, drop);
}

std::optional<Trace> MutateDecision(const Trace& trace, const PrimFunc& workload, Random& random) {
  // From a random decision on, the first that could be another.
  const std::vector<Decision> decisions = Decisions(trace);
  const size_t first = decisions.empty() ? 0 : random.Below(decisions.size());
  for (size_t k = 0; k < decisions.size(); ++k) {
    const Decision& decision = decisions[(first + k) % decisions.size()];
    std::vector<int64_t> values = decision.values;
    switch (decision.kind) {
      case Decision::Kind::kPerfectTile:
        if (!MovePrime(values, decision.max_innermost_factor, random)) continue;
        break;
      case Decision::Kind::kCategorical: {
        const int64_t count = static_cast<int64_t>(decision.candidates.size());
        if (count < 2) continue;
        values[0] = OtherIndex(values[0], count, random);
        break;
      }
      case Decision::Kind::kComputeLocation: {
        const std::vector<int64_t> others = OtherLocations(trace, workload, decision.step);
        if (others.empty()) continue;
        values[0] = others[random.Below(others.size())];
        break;
      }
    }
    return WithDecision(trace, decision.step, values);
  }
  return std::nullopt;
}

absl::StatusOr<Trace> ForAllSizes(const Trace& trace, const PrimFunc& workload) {
  Schedule schedule(workload);
  std::vector<int> place;  // where each step is in the schedule's trace
  // How many loops each look-up finds in front of those it found at one size: the symbolic ones that stayed outside of
  // a fusion.
  std::vector<int> in_front;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    Step step = trace.steps[i];
    RewriteRefs(step, [&](int& s, int& output) {
      if (s < 0 || s >= static_cast<int>(i)) return;
      output += in_front[static_cast<size_t>(s)];
      s = place[static_cast<size_t>(s)];
    });
    const absl::Status applied = ApplyForAllSizes(step, schedule);
    if (!applied.ok()) return Annotate(applied, absl::StrCat("step ", i, " `", ToText(step), "`"));
    const int more = trace.outputs[i] == 0 ? 0 : schedule.trace().outputs.back() - trace.outputs[i];
    if (more < 0 || (more > 0 && step.As<GetLoopsStep>() == nullptr)) {
      return absl::FailedPreconditionError(
          absl::StrCat("step ", i, " `", ToText(step), "` gives another number of outputs at other sizes"));
    }
    in_front.push_back(more);
    place.push_back(static_cast<int>(schedule.trace().steps.size()) - 1);
  }
  return schedule.trace();
}

}  // namespace hone
