// The daemon under load, with open jobs. Those of a soak end by their own limits, and others come in their place.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "hone/v1/common.pb.h"
#include "tests/bench/load/load.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

v1::Workload WorkloadOf(int job);

// A job of a soak lives for so many of the rounds that have a fault each.
inline constexpr int kSecondsOfRound = 5, kRoundsOfJob = 60;

class LoadedDaemon {
 public:
  LoadedDaemon(const LoadBenchOptions& options, const TempFolder& folder);
  // On the database as it is.
  void Start();
  // As many jobs as a soak's daemon ends between two faults: each a task of its own.
  void SubmitMore();

  // Its page of metrics.
  std::string Page() const;
  // What it has done since it gave the page; empty: since it began.
  void Print(const std::string& since = "") const;
  void Kill();
  // Ends this program, with what the daemon said last, when it has ended by itself.
  void CheckRuns();
  void Signal(int number) { honed_->Signal(number); }
  void FillDisk();
  void EmptyDisk();

  pid_t pid() const { return honed_->pid(); }
  // What it has allocated, without the pages of its database, which grow with the file, up to a limit.
  double MemoryMiB() const;
  int Descriptors() const;
  const std::string& database() const { return database_; }

 private:
  void Submit(const std::vector<double>& max_seconds);  // a job each; 0: it has no end

  const LoadBenchOptions& options_;
  int submitted_ = 0;
  const int port_;
  const std::string database_, full_disk_;
  std::unique_ptr<HonedProcess> honed_;
};

}  // namespace hone
