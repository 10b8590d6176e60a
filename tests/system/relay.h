// A network between two programs that can fail: passes bytes on between a Unix socket of its own and another one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace hone::system_test {

class Relay {
 public:
  // Listens at `path`; connects to `to` for every connection it gets.
  Relay(const std::string& path, std::string to);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  enum class State {
    kOpen,
    kSilent,    // connections stand, nothing comes through
    kOneWay,    // likewise, of what goes to the other socket
    kCut,       // connections are closed, and new ones at once
    kBreaking,  // connections are closed in the middle of a message, the first six of them, each later than the last
  };
  void Set(State state) { state_ = state; }
  int broken() const { return broken_; }

 private:
  struct Pair {
    int ours, theirs;
    int64_t left = kEndless;  // bytes that still come through
  };
  static constexpr int64_t kEndless = INT64_MAX;
  void Run();
  void Accept(bool keep);
  static bool Pass(int from, int to, int64_t& left);  // false: one end is gone, or nothing is left

  const std::string to_;
  int listener_ = -1;
  std::atomic<State> state_ = State::kOpen;
  std::atomic<bool> stop_ = false;
  std::atomic<int> broken_ = 0;
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace hone::system_test
