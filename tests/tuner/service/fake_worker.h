// A worker without a device: holds a Sync out, gives every lease an outcome at once. What a candidate "takes" follows
// from its text, so that runs agree.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tuner/service/client.h"

namespace hone {

class FakeWorker {
 public:
  // `judge` says how a lease ends; the default calls everything good and takes 100 us + a hash of the trace.
  using Judge = std::function<v1::Outcome(const v1::Lease&)>;
  FakeWorker(std::string name, std::string address, Credentials credentials = {}, Judge judge = nullptr);
  ~FakeWorker();  // vanishes without a word

  int64_t done() const { return done_; }  // outcomes reported and acknowledged
  bool told_to_shut_down() const { return shut_down_; }
  // Traces in the order they were worked on, over all workers of this process since `Reset`.
  static std::multiset<std::string> Tried();
  static void Reset();
  static std::string LatestSession();  // of the worker that came last

 private:
  void Run();

  const std::string name_, address_;
  const Credentials credentials_;
  const Judge judge_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> shut_down_{false};
  std::atomic<int64_t> done_{0};
  std::thread thread_;
};

v1::Outcome GoodOutcome(const v1::Lease& lease);
double FakeTime(const std::string& trace);

}  // namespace hone
