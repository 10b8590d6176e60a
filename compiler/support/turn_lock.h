// Who works on a machine: whoever takes timings does so alone, and searching, building and verifying, which take none,
// go beside each other. Kernel file locks say so; the kernel drops those of a process that dies. Devices beside the
// host have a turn of their own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

class TurnLock {
 public:
  enum class Use : uint8_t { kAlone, kShared };

  // Creates its files where they are not there. $HONE_LOCK names another one than the default (see .cc). `devices`:
  // "cuda", those of that language; "" the host.
  static absl::StatusOr<TurnLock> Open(std::string_view devices = "");
  TurnLock(TurnLock&& other) noexcept;
  TurnLock& operator=(TurnLock&& other) noexcept;
  ~TurnLock();

  // Waits for the turn, behind those that wait already: many who share it do not keep out one that would be alone.
  // `Release` gives it back. Held once at a time by this object.
  void Acquire(Use use);
  void Release();
  std::array<int, 2> fds() const { return {turn_, gate_}; }
  // Who has the turn now, or one of those who share it: "process 812 (hone-worker)"; "" when nobody has it or the
  // system does not say.
  std::string Holder() const;

  // The turn for as long as this lives.
  class Turn {
   public:
    Turn(TurnLock& lock, Use use) : lock_(lock) { lock_.Acquire(use); }
    ~Turn() { lock_.Release(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    TurnLock& lock_;
  };

 private:
  TurnLock() = default;
  int turn_ = -1;
  int gate_ = -1;  // held by the first of those that wait for the turn: the others wait for it
  bool held_ = false;
};

}  // namespace hone
