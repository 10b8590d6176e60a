// Simulated workers of a fleet: the protocol alone, over real gRPC, thousands of them in one process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "compiler/support/random.h"
#include "hone/v1/fleet.grpc.pb.h"

namespace hone {

inline constexpr char kSimulatedDevice[] = "load/c2";  // the class of all of them

// Durations, of many threads.
class Sample {
 public:
  void Add(absl::Duration took);
  void Clear();
  std::string Text();  // "p50 0.3 ms, p99 2.0 ms, worst 14 ms"

 private:
  std::mutex mutex_;
  std::vector<double> milliseconds_;
};

// What all workers of a load did together.
struct LoadCounts {
  std::atomic<int64_t> calls{0}, failed{0}, connected{0}, acked{0};
  Sample lease;
  std::mutex mutex;
  std::vector<uint64_t> acked_trials;  // under the mutex
};

// Runs what is due, in one thread.
class Timer {
 public:
  Timer() : thread_([this] { Run(); }) {}
  ~Timer();
  void After(absl::Duration delay, std::function<void()> what);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<absl::Time, std::function<void()>> due_;
  bool stop_ = false;
  std::thread thread_;
};

struct LoadOptions {
  std::string address;
  int credits = 4;      // leases that a worker takes at once
  int work_ms = 1500;   // what it takes for them,
  double spread = 0.5;  // up to that part of it less or more, by chance
};

// A call is always out, as a real worker keeps it. Lives until the process ends: calls that are out speak of it.
class SimulatedWorker {
 public:
  SimulatedWorker(std::string name, const LoadOptions& options, Timer& timer, LoadCounts& counts);

  void Start();
  void Stop() { stopping_ = true; }  // without a word
  void Vanish();                     // and comes back in a new session, with nothing

 private:
  struct Call;
  void Sync();
  void TakeReply(const Call& call, const grpc::Status& status);
  void Finish(uint64_t life);

  const std::string name_;
  const LoadOptions options_;
  Timer& timer_;
  LoadCounts& counts_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  Random random_;
  uint64_t life_ = 1, seq_ = 0;
  bool connecting_ = false;
  std::map<uint64_t, v1::LeaseId> held_;  // by trial
  std::map<uint64_t, v1::TrialResult> results_;
};

}  // namespace hone
