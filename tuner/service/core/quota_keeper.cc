#include "tuner/service/core/quota_keeper.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kLookShare = 50;        // of the time is spent with looking at most, as one to that
constexpr double kSpare = 0.1;        // of the quota, is free after pruning: so that it is seldom
constexpr int kPlanned = 8192;        // asked for at once: the store looks at all its rows to say
constexpr size_t kAtOnce = 256;       // taken in one transaction: a commit beside it waits for so many
constexpr int64_t kLeastBytes = 100;  // that go with a trial, as far as one plans with it

double MiB(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::vector<uint64_t> Slice(const std::vector<uint64_t>& all, size_t from) {
  const size_t begin = std::min(from, all.size());
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kAtOnce, all.size()))};
}

}  // namespace

QuotaKeeper::QuotaKeeper(TuningStore& store, uint64_t epoch, int64_t most_bytes) : store_(store), epoch_(epoch) {
  counts_.most_bytes = most_bytes;
  thread_ = std::thread([this] { Run(); });
}

QuotaKeeper::~QuotaKeeper() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

QuotaKeeper::Counts QuotaKeeper::counts() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return counts_;
}

bool QuotaKeeper::WaitOrStop(absl::Duration wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  return stopped_.wait_for(lock, absl::ToChronoMilliseconds(wait), [this] { return stopping_; });
}

absl::StatusOr<int64_t> QuotaKeeper::Look(int64_t enough) {
  const absl::Time began = MonotonicNow();
  absl::StatusOr<int64_t> bytes = store_.BytesInUse(enough);
  look_again_after_ = std::max(kBetweenLooks, kLookShare * (MonotonicNow() - began));
  const std::lock_guard<std::mutex> guard(mutex_);
  if (bytes.ok()) counts_.bytes = *bytes;
  return bytes;
}

void QuotaKeeper::Run() {
  look_again_after_ = kBetweenLooks;
  for (std::string said; !WaitOrStop(look_again_after_);) {
    const absl::Status status = Keep();
    if (absl::IsAborted(status)) return;  // the writer says so
    if (!status.ok() && said != status.message()) {
      said = std::string(status.message());
      spdlog::warn("keeping the database below its quota, trying again: {}", said);
    }
  }
}

absl::Status QuotaKeeper::Keep() {
  const Counts before = counts();
  const int64_t most = before.most_bytes;
  HONE_ASSIGN_OR_RETURN(const int64_t bytes, Look(most));
  HONE_RETURN_IF_ERROR(PruneTo(static_cast<int64_t>(static_cast<double>(most) * (1 - kSpare)), most, bytes));
  const Counts after = counts();
  if (after.trials + after.records > before.trials + before.records) {
    spdlog::info(
        "the database had {:.1f} MiB, its quota is {:.1f} MiB: {} trials and {} records that are no best ones left, "
        "{:.1f} MiB stay",
        MiB(bytes), MiB(most), after.trials - before.trials, after.records - before.records, MiB(after.bytes));
  }
  if (after.cannot && !before.cannot) {
    spdlog::warn(
        "the database has {:.1f} MiB, its quota is {:.1f} MiB, and nothing is left to take: best records, records of "
        "lock files, jobs and cost models stay; raise --max-database-bytes",
        MiB(after.bytes), MiB(most));
  }
  return absl::OkStatus();
}

absl::Status QuotaKeeper::PruneTo(int64_t goal, int64_t most, int64_t bytes) {
  bool nothing_left = false;
  for (bool over = bytes > most; over && !nothing_left;) {
    HONE_ASSIGN_OR_RETURN(const Prune plan, store_.FirstToPrune(kPlanned));
    CrashPoint("quota.planned");
    nothing_left = plan.traces.empty();
    size_t look_at = kAtOnce;  // so many are gone by then
    size_t seen = 0;           // were gone at the latest look
    for (size_t from = 0; from < plan.traces.size() && over; from += kAtOnce) {
      const Write write = Prune{Slice(plan.trials, from), Slice(plan.records, from), Slice(plan.traces, from)};
      HONE_RETURN_IF_ERROR(store_.Commit(epoch_, {&write, 1}));
      CrashPoint("quota.taken");
      Count(std::get<Prune>(write));
      const size_t gone = std::min(from + kAtOnce, plan.traces.size());
      if (gone < look_at && gone < plan.traces.size()) continue;
      const int64_t before = bytes;
      HONE_ASSIGN_OR_RETURN(bytes, Look(goal));
      over = bytes > goal;
      // Half of what it would take by what the last ones brought.
      const int64_t each = std::max(kLeastBytes, (before - bytes) / static_cast<int64_t>(gone - seen));
      look_at = gone + static_cast<size_t>(std::max<int64_t>(0, (bytes - goal) / each / 2));
      seen = gone;
      if (WaitOrStop(absl::ZeroDuration())) return absl::OkStatus();
    }
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  counts_.cannot = nothing_left && bytes > most;
  return absl::OkStatus();
}

void QuotaKeeper::Count(const Prune& gone) {
  const std::lock_guard<std::mutex> guard(mutex_);
  counts_.trials += static_cast<int64_t>(gone.trials.size());
  counts_.records += static_cast<int64_t>(gone.records.size());
}

}  // namespace hone
