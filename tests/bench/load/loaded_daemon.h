// The daemon under load, with open jobs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "hone/v1/common.pb.h"
#include "tests/bench/load/load.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

v1::Workload WorkloadOf(int job);

class LoadedDaemon {
 public:
  LoadedDaemon(const LoadBenchOptions& options, const TempFolder& folder);
  // On the database as it is.
  void Start();

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
  double MemoryMiB() const;
  int Descriptors() const;
  const std::string& database() const { return database_; }

 private:
  const LoadBenchOptions& options_;
  const int port_;
  const std::string database_, full_disk_;
  std::unique_ptr<HonedProcess> honed_;
};

}  // namespace hone
