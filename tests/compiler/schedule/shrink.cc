#include "tests/compiler/schedule/shrink.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/support/check.h"

namespace hone::testing {
namespace {

class Shrinker {
 public:
  Shrinker(Trace trace, const PrimFunc& workload, const Fails& fails)
      : best_(std::move(trace)), workload_(workload), fails_(fails) {}

  Trace Run() {
    while (DropRuns() || Simplify() || SmallerNumbers()) {}
    return best_;
  }

 private:
  // Takes the trace over when it replays and fails. Lists may give another number of outputs than they did.
  bool Try(Trace candidate) {
    std::fill(candidate.outputs.begin(), candidate.outputs.end(), 0);
    const absl::StatusOr<Schedule> schedule = Replay(candidate, workload_);
    if (!schedule.ok() || !fails_(*schedule)) return false;
    best_ = schedule->trace();
    return true;
  }

  // Halves first, then smaller runs, single steps last; from the end, where fewer steps depend on others.
  bool DropRuns() {
    bool any = false;
    for (size_t run = std::max<size_t>(1, best_.steps.size() / 2); run >= 1; run /= 2) {
      for (size_t end = best_.steps.size(); end > 0;) {
        end = std::min(end, best_.steps.size());
        const size_t begin = end > run ? end - run : 0;
        std::vector<bool> drop(best_.steps.size(), false);
        std::fill(drop.begin() + static_cast<ptrdiff_t>(begin), drop.begin() + static_cast<ptrdiff_t>(end), true);
        if (Try(WithoutSteps(best_, drop))) any = true;
        end = begin;
      }
    }
    return any;
  }

  bool Simplify() {
    Trace simple = Simplified(best_);
    return simple.steps.size() < best_.steps.size() && Try(std::move(simple));
  }

  bool SmallerNumbers() {
    for (size_t i = 0; i < best_.steps.size(); ++i) {
      const SplitStep* split = best_.steps[i].As<SplitStep>();
      if (split == nullptr) continue;
      for (size_t f = 0; f < split->factors.size(); ++f) {
        const int64_t* factor = split->factors[f].number();
        if (factor == nullptr) continue;
        for (int64_t smaller = 1; smaller < *factor; ++smaller) {
          Trace candidate = best_;
          candidate.steps[i].Mutable<SplitStep>()->factors[f] = smaller;
          if (Try(std::move(candidate))) return true;
        }
      }
    }
    return false;
  }

  Trace best_;
  const PrimFunc& workload_;
  const Fails& fails_;
};

}  // namespace

Trace Shrink(const Trace& trace, const PrimFunc& workload, const Fails& fails) {
  const absl::StatusOr<Schedule> whole = Replay(trace, workload);
  HONE_CHECK(whole.ok() && fails(*whole)) << "the trace to shrink does not fail";
  return Shrinker(trace, workload, fails).Run();
}

}  // namespace hone::testing
