// A network between two programs that can fail: passes bytes on between a Unix socket of its own and another one.
#pragma once

#include <atomic>
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
    kSilent,  // connections stand, nothing comes through
    kCut,     // connections are closed, and new ones at once
  };
  void Set(State state) { state_ = state; }

 private:
  struct Pair {
    int ours, theirs;
  };
  void Run();
  void Accept(bool keep);
  static bool Pass(int from, int to);  // false: one end is gone

  const std::string to_;
  int listener_ = -1;
  std::atomic<State> state_ = State::kOpen;
  std::atomic<bool> stop_ = false;
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace hone::system_test
