#include "worker/agent/trials/trial_batch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/ir/wire_numeric.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/random.h"
#include "compiler/support/sha256.h"
#include "compiler/target/target.h"
#include "compiler/text/canonical.h"
#include "worker/agent/builds/build_reply.h"
#include "worker/agent/trials/check_winner.h"
#include "worker/agent/trials/verify_candidate.h"
#include "worker/measure/statistics.h"
#include "worker/measure/timed_race.h"
#include "worker/probe/thread_share.h"

namespace hone {
namespace {

// A duel of long kernels, and a race without a champion, has as many rounds as take so long, or the least: twice those
// of another race.
constexpr double kDuelRoundUs = 260'000;
constexpr size_t kFewestSamples = 3, kMaxSamples = 64;
// A race in which the machine was not quiet is run again, this often, while everything is loaded.
constexpr int kMeasureAttempts = 4;
// The noise of the machine follows its races slowly, within bounds.
constexpr double kNoiseMemory = 0.8, kLeastNoise = 0.005, kMostNoise = 0.1;
// How long a candidate that may become the best is watched once more.
constexpr absl::Duration kWinnerCheck = absl::Milliseconds(40);
// Beside a kernel's calls, of one sample: whose turn it is, what is poisoned and checked between.
constexpr double kAroundSampleUs = 2000;
// Threads that do less than this share of what they did when the device was probed have no cores of their own now; that
// is waited for, for so long at most.
constexpr double kLeastShare = 0.75;
constexpr absl::Duration kWaitForCores = absl::Seconds(1), kLookForCores = absl::Milliseconds(20);
// Timings below this are not those of a program that did its work.
constexpr double kShortestMicroseconds = 0.01;

VerifyLimits LimitsOf(const v1::Lease& lease) {
  return {.threads = lease.threads(),
          .run = absl::Milliseconds(lease.run_limit_ms()),
          .memory_bytes = lease.memory_limit_bytes()};
}

double OperandBytes(const TaskParams& params) {
  int64_t bytes = 0;
  for (const TaskParam& param : params.inputs) bytes += param.bytes();
  for (const TaskParam& param : params.outputs) bytes += param.bytes();
  return static_cast<double>(bytes);
}

// The operands that a call finds in memory, as TimeRequest::flushed names them.
uint64_t ColdParams(const TaskParams& params) {
  uint64_t cold = 0;
  size_t number = 0;
  for (const std::vector<TaskParam>* some : {&params.inputs, &params.outputs}) {
    for (const TaskParam& param : *some) {
      if (number < 64) cold |= uint64_t{param.cold} << number;
      ++number;
    }
  }
  return cold;
}

// About what a race takes at most, whose samples are of usual length.
absl::Duration LengthOf(const TimedRaceOptions& options, size_t challengers) {
  const double of_each = options.round_us + options.race.max_rounds * kAroundSampleUs;
  return absl::Microseconds(of_each * static_cast<double>(challengers + 2));  // the champion has two turns
}

uint64_t RaceSeed() {
  std::random_device device;
  return device();
}

void SetFromVerdict(v1::Outcome* outcome, const RunnerVerdict& verdict) {
  SetFailure(outcome, KindOf(verdict), verdict.message);
}

// What a race says of its entry `k`: a time, unless it has too few samples to say.
void SetTiming(const Race& race, int k, const v1::Lease& lease, v1::Outcome* outcome) {
  const std::vector<double>& samples = race.samples(k);
  if (samples.size() < kFewestSamples) return;
  if (*std::min_element(samples.begin(), samples.end()) < kShortestMicroseconds) {
    return SetFailure(outcome, v1::OUTCOME_INVALID_TIMING, "a sample is shorter than any call");
  }
  outcome->set_kind(v1::OUTCOME_OK);
  v1::Timing* timing = outcome->mutable_timing();
  const MedianInterval interval = ConfidenceOfMedian(samples);
  // In units of the champion's recorded time, which cancels what changed on the machine since then.
  const double champion_us = lease.champion_us();
  const double champion_now = race.champion_samples().empty() ? 0 : Median(race.champion_samples());
  const double drift = champion_now > 0 && champion_us > 0 ? champion_now / champion_us : 1;
  const std::optional<PairedRatio> ratio = race.ratio(k);
  timing->set_median_us(ratio.has_value() && champion_us > 0 ? ratio->ratio * champion_us : Median(samples));
  timing->set_low_us(std::min(interval.low / drift, timing->median_us()));
  timing->set_high_us(std::max(interval.high / drift, timing->median_us()));
  timing->set_anchor_ratio(drift);
  for (size_t s = 0; s < samples.size() && s < kMaxSamples; ++s) timing->add_samples_us(static_cast<float>(samples[s]));
  if (lease.duel() && ratio.has_value()) {
    outcome->set_duel_ratio(ratio->ratio);
    outcome->set_duel_ratio_low(ratio->ratio * std::exp(-2 * ratio->log_error));
    outcome->set_duel_ratio_high(ratio->ratio * std::exp(2 * ratio->log_error));
  }
}

}  // namespace

// One program on its way to an outcome.
struct TrialBatch::Contender {
  v1::Lease lease;
  v1::BuildRequest request;
  v1::BuildOutcome built;
  std::optional<RunnerClient> runner;
  v1::Outcome outcome;  // kind UNSPECIFIED while nothing went wrong
  bool in() const { return outcome.kind() == v1::OUTCOME_UNSPECIFIED; }
};

TrialBatch::TrialBatch(const TaskContext& task, const v1::DeviceProfile& device, Builders& builders, KnownBuilds* known,
                       double* noise, PhaseNote note, QuietNote quiet)
    : task_(task),
      device_(device),
      builders_(builders),
      note_(std::move(note)),
      quiet_(std::move(quiet)),
      known_(known),
      noise_(noise) {}
TrialBatch::~TrialBatch() = default;

std::span<TrialBatch::Contender> TrialBatch::challengers() { return std::span(contenders_).first(leases_); }

v1::BuildRequest TrialBatch::RequestFor(const v1::Lease& lease, const std::string& trace) const {
  v1::BuildRequest request;
  request.set_task(lease.task());
  request.set_workload(task_.text());
  request.set_trace(trace);
  request.set_target(device_.target());
  request.set_threads(lease.threads());
  request.set_numeric(lease.numeric());
  request.set_symbol(KernelSymbol(lease.workload_hash()));
  return request;
}

void TrialBatch::AddContenders(const std::vector<v1::Lease>& leases) {
  for (const v1::Lease& lease : leases) {
    note_(lease.id(), v1::PHASE_BUILDING);
    contenders_.push_back({.lease = lease, .request = RequestFor(lease, lease.trace())});
  }
  leases_ = leases.size();
  const v1::Lease& lease = leases.front();
  if (lease.champion_trace().empty()) return;
  contenders_.push_back({.lease = lease, .request = RequestFor(lease, lease.champion_trace())});
  contenders_.back().request.set_image_only(true);  // its record has its object
}

void TrialBatch::Prepare(const std::vector<v1::Lease>& leases) {
  const Clock::time_point start = Clock::now();
  AddContenders(leases);
  known_->NextBatch();
  std::vector<v1::BuildRequest> requests;
  std::vector<Contender*> known, unknown;
  for (Contender& contender : contenders_) {
    if (const KnownBuilds::Known* found = known_->Find(contender.request)) {
      contender.built = found->built;
      known.push_back(&contender);
      continue;
    }
    contender.request.set_id(requests.size());
    requests.push_back(contender.request);
    unknown.push_back(&contender);
  }
  builders_.Begin(std::move(requests), absl::Milliseconds(leases.front().build_limit_ms()));
  for (Contender* contender : known) Verify(*contender);
  while (std::optional<Builders::Built> built = builders_.Next()) {
    CrashPoint("worker.built");
    Contender& contender = *unknown[built->request];
    contender.built = std::move(built->outcome);
    if (OutcomeOfBuild(contender.built).kind() == v1::OUTCOME_UNSPECIFIED)
      known_->Keep(contender.request, contender.built);
    Verify(contender);
  }
  for (const Contender& contender : challengers()) note_(contender.lease.id(), v1::PHASE_VERIFIED);
  seconds_.build = SecondsSince(start) - seconds_.verify;
}

void TrialBatch::Verify(Contender& contender) {
  contender.outcome = OutcomeOfBuild(contender.built);
  if (!contender.in()) return;
  const v1::Lease& lease = contender.lease;
  if (!lease.measured_digest().empty() && contender.outcome.object_digest() == lease.measured_digest()) {
    return SetFailure(&contender.outcome, v1::OUTCOME_CANCELLED, "it is the code that was measured before");
  }
  note_(lease.id(), v1::PHASE_VERIFYING);
  const Clock::time_point start = Clock::now();
  Load(contender);
  CrashPoint("worker.verified");
  contender.outcome.set_verify_seconds(SecondsSince(start));
  seconds_.verify += SecondsSince(start);
}

void TrialBatch::Load(Contender& contender) {
  const v1::Lease& lease = contender.lease;
  const v1::BuildReply& reply = contender.built.reply();
  const VerifyLimits limits = LimitsOf(lease);
  KnownBuilds::Known* const known = known_->Find(contender.request);
  const bool right_before = known != nullptr && known->verified.has_value();
  Verified verified =
      right_before ? StartCandidate(task_, reply.image(), reply.kernel_set(), limits)
                   : VerifyCandidate(task_, reply.image(), reply.kernel_set(), FromWire(lease.numeric()), limits);
  if (verified.kind != v1::OUTCOME_UNSPECIFIED) {
    known_->Forget(contender.request);
    return SetFailure(&contender.outcome, verified.kind, verified.detail);
  }
  const double worst_error = right_before ? *known->verified : verified.worst_error;
  if (known != nullptr) known->verified = worst_error;
  contender.outcome.set_max_error(worst_error);
  contender.runner = std::move(verified.runner);
}

std::optional<std::vector<double>> TrialBatch::TimeOf(Contender& contender, const TimeRequest& request) {
  if (!contender.in()) return std::nullopt;
  const RunnerVerdict verdict = contender.runner->Time(request, absl::Milliseconds(contender.lease.run_limit_ms()));
  if (!verdict.ok() || verdict.samples.empty()) {
    SetFromVerdict(&contender.outcome, verdict);
    return std::nullopt;
  }
  std::vector<double> us;
  for (const auto& sample : verdict.samples) us.push_back(sample.us);
  return us;
}

bool TrialBatch::HasItsCores() const {
  const int threads = contenders_.front().lease.threads();
  const bool host = task_.runners().device.empty() && task_.runners().program.empty();
  if (!host || threads <= 1 || device_.peak_gflops_1() <= 0) return true;
  const double usual = device_.peak_gflops_all() / (device_.peak_gflops_1() * threads);
  return ShareOfThreads(HostTarget(), threads) >= kLeastShare * usual;
}

bool TrialBatch::RunRace(TimedRaceOptions options, bool last_attempt) {
  Contender* champion = contenders_.size() > leases_ && contenders_.back().in() ? &contenders_.back() : nullptr;
  std::vector<Contender*> in;
  for (Contender& contender : challengers()) {
    if (!contender.in()) continue;
    note_(contender.lease.id(), v1::PHASE_MEASURING);
    in.push_back(&contender);
  }
  quiet_(LengthOf(options, in.size()));
  options.race.machine_sigma = *noise_;
  options.champion_us = contenders_.front().lease.champion_us();
  options.cold_us = OperandBytes(task_.params()) / (device_.memory_gbps() * 1e3);
  const uint64_t flushed = ColdParams(task_.params());
  const TimeCalls time = [&](int who, int warm_up, int samples, int inner) {
    Contender& contender = who < 0 ? *champion : *in[static_cast<size_t>(who)];
    return TimeOf(contender, {.warm_up = warm_up, .samples = samples, .inner = inner, .flushed = flushed});
  };
  if (champion == nullptr) {
    const absl::Time until = MonotonicNow() + kWaitForCores;
    while (!HasItsCores() && MonotonicNow() < until) absl::SleepFor(kLookForCores);
  }
  const auto [race, entries] =
      RunTimedRace(static_cast<int>(in.size()), champion != nullptr, RaceSeed(), options, time);
  // A champion's turns tell what the machine did meanwhile; without one nothing else does.
  if (champion == nullptr && !last_attempt && !HasItsCores()) return false;
  for (size_t k = 0; k < entries.size(); ++k) {
    Contender& contender = *in[static_cast<size_t>(entries[k])];
    if (contender.in()) SetTiming(race, static_cast<int>(k), contender.lease, &contender.outcome);
  }
  if (champion != nullptr) {
    *noise_ = std::clamp(kNoiseMemory * *noise_ + (1 - kNoiseMemory) * race.noise(), kLeastNoise, kMostNoise);
  }
  return !race.noisy();
}

void TrialBatch::CheckAsWinner(Contender& contender) const {
  const auto& samples = contender.outcome.timing().samples_us();
  const v1::Lease& lease = contender.lease;
  WinnerCheck check;
  check.call_us = Median(std::vector<double>(samples.begin(), samples.end()));
  check.level = FromWire(lease.numeric());
  check.limits = LimitsOf(lease);
  check.duration = kWinnerCheck;
  std::string detail;
  const v1::BuildReply& reply = contender.built.reply();
  const v1::OutcomeKind kind = CheckWinner(task_, reply.image(), reply.kernel_set(), check, &detail);
  if (kind == v1::OUTCOME_OK) return;
  contender.outcome.clear_timing();
  SetFailure(&contender.outcome, kind, detail);
}

void TrialBatch::CheckOnOtherInputs(Contender& contender) const {
  if (task_.num_sets() < 2) return;
  const v1::Lease& lease = contender.lease;
  const double us = contender.outcome.timing().median_us();
  if (us >= TimedRaceOptions().long_us && us >= lease.champion_us()) return;
  const int set = 1 + static_cast<int>(Random(RaceSeed()).Below(static_cast<uint64_t>(task_.num_sets() - 1)));
  const RunnerVerdict verdict =
      contender.runner->Time({.warm_up = 0, .set = set, .renewal = Renewal::kUnseen, .copy_outputs = 1},
                             absl::Milliseconds(lease.run_limit_ms()));
  std::string where;
  const bool right = verdict.ok() && task_.WorstError(*contender.runner, set, FromWire(lease.numeric()), &where) <= 1;
  if (right) return;
  contender.outcome.clear_timing();
  if (!verdict.ok()) return SetFromVerdict(&contender.outcome, verdict);
  SetFailure(&contender.outcome, v1::OUTCOME_WRONG_RESULT, absl::StrCat("under the clock, on other inputs: ", where));
}

void TrialBatch::AttachObjectOfBest() {
  double best_us = contenders_.front().lease.champion_us();
  Contender* best = nullptr;
  for (Contender& contender : challengers()) {
    if (contender.outcome.kind() != v1::OUTCOME_OK) continue;
    const double us = contender.outcome.timing().median_us();
    if (best_us > 0 && us >= best_us && !contender.lease.duel()) continue;
    best_us = us;
    best = &contender;
  }
  if (best == nullptr) return;
  best->outcome.set_object(best->built.reply().object());
  best->outcome.set_kernel_set(best->built.reply().kernel_set());
}

std::vector<v1::Outcome> TrialBatch::Measure() {
  const bool duel = contenders_.front().lease.duel();
  TimedRaceOptions options;
  if (duel) {  // what is published is worth more samples
    options.race.min_rounds = 8;
    options.race.max_rounds = 24;
  }
  // So is what everything after it is compared with.
  if (duel || contenders_.size() == leases_) options.round_us = kDuelRoundUs;
  const Clock::time_point start = Clock::now();
  for (int left = kMeasureAttempts; left > 0 && !RunRace(options, left == 1); --left) {}
  for (Contender& contender : contenders_) {
    if (contender.in())
      SetFailure(&contender.outcome, v1::OUTCOME_INFRA, "the machine was not quiet enough to time it");
  }
  CrashPoint("worker.measured");
  // A duel that is won makes the best of a task; without a ratio there is no champion to lose to.
  for (Contender& contender : challengers()) {
    if (contender.outcome.kind() != v1::OUTCOME_OK) continue;
    if (duel && contender.outcome.duel_ratio() < 1) {
      CheckAsWinner(contender);
    } else {
      CheckOnOtherInputs(contender);
    }
  }
  CrashPoint("worker.checked");
  seconds_.measure = SecondsSince(start);
  AttachObjectOfBest();
  std::vector<v1::Outcome> outcomes;
  for (Contender& contender : challengers()) {
    contender.outcome.set_measure_seconds(seconds_.measure / static_cast<double>(leases_));
    outcomes.push_back(std::move(contender.outcome));
  }
  return outcomes;
}

}  // namespace hone
