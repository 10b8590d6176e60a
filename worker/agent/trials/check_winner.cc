#include "worker/agent/trials/check_winner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/random.h"
#include "worker/measure/plausible_time.h"

namespace hone {
namespace {

constexpr int kTries = 8;                            // a machine that does something else disturbs some
constexpr double kLeastCalls = 2, kMostCalls = 1e6;  // that follow each other
constexpr double kLeastRounds = 3, kMostRounds = 6;  // of calls on unseen inputs and on seen ones
constexpr int kSetsOnTheClock = 3;                   // that a candidate must be right on at its first sight of them
// A sample of short calls, each timed by itself, lasts so long: the first of them wakes threads up.
constexpr double kSampleUs = 200;
constexpr double kMostShortCalls = 32;

class Check {
 public:
  Check(const TaskContext& task, RunnerClient& runner, const WinnerCheck& check)
      : task_(task), runner_(runner), check_(check), random_(std::random_device()()) {
    calls_ = static_cast<int>(
        std::clamp(std::ceil(absl::ToDoubleMicroseconds(check.duration) / check.call_us), kLeastCalls, kMostCalls));
    for (int set = 1; set < task.num_sets(); ++set) unchecked_.push_back(set);  // the calls in a row have the first
  }
  const std::string& detail() const { return detail_; }
  // Sets that it was not looked at on.
  const std::vector<int>& unchecked_sets() const { return unchecked_; }

  // One call, and many that follow each other: by the clock, by processor time, and by what they left.
  v1::OutcomeKind Row() {
    std::string why;
    double charged = std::numeric_limits<double>::infinity();
    UnaccountedTime unaccounted((calls_ - 1) * check_.call_us);
    for (int attempt = 0; attempt < kTries; ++attempt) {
      // Outputs are copied after both: of a device that alone takes milliseconds.
      const RunnerVerdict one = Time({.warm_up = 0, .copy_outputs = 1});
      if (WasDisturbed(one, &why)) continue;
      if (!one.ok()) return Fail(one);
      const double charged_before = runner_.ProcessorMicroseconds();
      // What a busy machine made them wait is nobody's work. It is taken off here alone: waits within the calls are in
      // the times reported, so that this never counts as more than it is.
      double waits = runner_.WaitMicroseconds();
      const RunnerVerdict many = Time({.warm_up = 0, .inner = calls_, .copy_outputs = 1, .turn = random_.Next()});
      if (WasDisturbed(many, &why)) continue;
      if (!many.ok()) return Fail(many);
      waits = runner_.WaitMicroseconds() - waits;
      charged = std::min(charged, runner_.ProcessorMicroseconds() - charged_before);
      if (const v1::OutcomeKind kind = CheckOutputs(0); kind != v1::OUTCOME_OK) return kind;
      unaccounted.Add(one.elapsed_us - one.samples[0].us, many.elapsed_us - calls_ * many.samples[0].us, waits);
      if (!unaccounted.Agrees()) {
        why = absl::StrCat("it says that ", calls_ - 1, " calls more take ", (calls_ - 1) * check_.call_us,
                           " us longer, and by the worker's clock ", unaccounted.more_us(),
                           " us more pass that it does not account for");
      } else if (task_.runners().device.empty() && !IsPossibleTime(calls_ * check_.call_us, threads(), charged)) {
        why = absl::StrCat("it says a call takes ", check_.call_us, " us, and ", calls_, " calls on ", threads(),
                           " threads cost ", charged, " us of processor time");
      } else {
        return v1::OUTCOME_OK;
      }
    }
    return Fail(v1::OUTCOME_INVALID_TIMING, why);
  }

  // Calls on inputs that it has never seen, on the same again, and on the set that all samples were taken on.
  v1::OutcomeKind Unseen() {
    for (size_t i = unchecked_.size(); i > 1; --i) std::swap(unchecked_[i - 1], unchecked_[random_.Below(i)]);
    int looks = std::min(kSetsOnTheClock, static_cast<int>(unchecked_.size()));
    const double duration_us = absl::ToDoubleMicroseconds(check_.duration);
    const int rounds = static_cast<int>(std::clamp(duration_us / check_.call_us, kLeastRounds, kMostRounds));
    const int inner = static_cast<int>(std::clamp(kSampleUs / check_.call_us, 1.0, kMostShortCalls));
    double unseen_us = std::numeric_limits<double>::infinity(), seen_us = unseen_us;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      for (int round = 0; round < rounds; ++round) {
        // Those that are looked at come unannounced between those that are timed alone.
        if (looks > 0 && (random_.Below(2) == 0 || round + looks >= rounds)) {
          --looks;
          const int set = unchecked_.back();
          unchecked_.pop_back();
          const RunnerVerdict fresh = Time({.warm_up = 0, .set = set, .renewal = Renewal::kUnseen, .copy_outputs = 1});
          if (!fresh.ok()) return Fail(fresh);
          if (const v1::OutcomeKind kind = CheckOutputs(set); kind != v1::OUTCOME_OK) return kind;
        }
        const TimeRequest unseen = {
            .warm_up = 0, .inner = inner, .renewal = Renewal::kUnseen, .turn = 1 + random_.Next() / 2};
        // As seen ones, in turn those of that call and those of the first set.
        const TimeRequest seen = {
            .warm_up = 0, .inner = inner, .renewal = round % 2 == 0 ? Renewal::kSame : Renewal::kUnseen};
        for (const auto& [request, least_us] : {std::pair(unseen, &unseen_us), std::pair(seen, &seen_us)}) {
          const RunnerVerdict verdict = Time(request);
          if (!verdict.ok()) return Fail(verdict);
          *least_us = std::min(*least_us, verdict.samples[0].us);
        }
      }
      if (!Remembers(unseen_us, seen_us)) return v1::OUTCOME_OK;
    }
    return Fail(v1::OUTCOME_INVALID_TIMING,
                absl::StrCat("a call takes ", unseen_us, " us on inputs that it has not seen, and ", seen_us,
                             " us on those it has: it keeps results"));
  }

 private:
  int threads() const { return std::max(1, check_.limits.threads); }
  RunnerVerdict Time(const TimeRequest& request) {
    return runner_.Time(request, check_.limits.run + 10 * check_.duration);
  }
  // Whether the answer's times are not those that passed, which a liar's never are, and a short kernel's are not where
  // the host of a virtual machine took its processor away meanwhile: `why` says how.
  static bool WasDisturbed(const RunnerVerdict& verdict, std::string* why) {
    if (verdict.kind != RunnerVerdict::kImpossibleTime) return false;
    *why = verdict.message;
    return true;
  }
  v1::OutcomeKind Fail(v1::OutcomeKind kind, std::string detail) {
    detail_ = std::move(detail);
    return kind;
  }
  v1::OutcomeKind Fail(const RunnerVerdict& verdict) { return Fail(KindOf(verdict), verdict.message); }
  v1::OutcomeKind CheckOutputs(int set) {
    std::string where;
    if (task_.WorstError(runner_, set, check_.level, &where) <= 1) return v1::OUTCOME_OK;
    return Fail(v1::OUTCOME_WRONG_RESULT, absl::StrCat("under the clock: ", where));
  }

  const TaskContext& task_;
  RunnerClient& runner_;
  const WinnerCheck& check_;
  Random random_;
  int calls_ = 1;
  std::vector<int> unchecked_;
  std::string detail_;
};

}  // namespace

v1::OutcomeKind CheckWinner(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                            const WinnerCheck& check, std::string* detail) {
  Verified started = StartCandidate(task, image, kernel_set, check.limits);
  *detail = started.detail;
  if (!started.runner.has_value()) return started.kind;
  Check on_the_clock(task, *started.runner, check);
  v1::OutcomeKind kind = on_the_clock.Row();
  if (kind == v1::OUTCOME_OK) kind = on_the_clock.Unseen();
  *detail = on_the_clock.detail();
  if (kind != v1::OUTCOME_OK) return kind;
  const Verified right = VerifyOn(task, *started.runner, on_the_clock.unchecked_sets(), check.level, check.limits.run);
  *detail = right.detail;
  return right.kind == v1::OUTCOME_UNSPECIFIED ? v1::OUTCOME_OK : right.kind;
}

}  // namespace hone
