// Keeps the database below a number of bytes: looks at it from time to time, and takes what the policy of
// TuningStore::FirstToPrune says until there is a tenth to spare. It reads beside the writer, and takes little at once,
// so that neither look-ups nor commits wait for it. What it took is said in the log and counted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "database/store/store.h"

namespace hone {

class QuotaKeeper {
 public:
  struct Counts {
    int64_t bytes = 0, most_bytes = 0;  // as of the latest look
    int64_t trials = 0, records = 0;    // that this daemon took; what went along with a record is not counted
    bool cannot = false;                // what is left must stay, and is more
  };

  // Works until it is destroyed, or another daemon writes. The store outlives it.
  QuotaKeeper(TuningStore& store, uint64_t epoch, int64_t most_bytes);
  ~QuotaKeeper();
  Counts counts() const;

 private:
  void Run();
  // One look, and what must go then. Aborted when another daemon has the database.
  absl::Status Keep();
  // Where there are more than `most`: takes until there are at most `goal`.
  absl::Status PruneTo(int64_t goal, int64_t most, int64_t bytes);
  absl::StatusOr<int64_t> Look(int64_t enough);
  void Count(const Prune& gone);
  bool WaitOrStop(absl::Duration wait);  // true when it is to stop

  TuningStore& store_;
  const uint64_t epoch_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  Counts counts_;                    // under the mutex, as `stopping_` is
  absl::Duration look_again_after_;  // of the thread
  std::thread thread_;
};

}  // namespace hone
