// One machine, one turn: searching, building and measuring take a kernel file lock in turn, so that a host that
// measures does nothing else meanwhile. Devices beside the host have a turn of their own, for measuring alone. The
// kernel drops the lock of a process that dies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

class TurnLock {
 public:
  // Creates the file when it is not there. $HONE_LOCK names another file than the default (see .cc). `devices`: "cuda",
  // those of that language; "" the host.
  static absl::StatusOr<TurnLock> Open(std::string_view devices = "");
  TurnLock(TurnLock&& other) noexcept;
  TurnLock& operator=(TurnLock&& other) noexcept;
  ~TurnLock();

  // Waits for the turn, behind those that waited while this object had it last; `Release` gives it back. Held once at a
  // time by this object.
  void Acquire();
  void Release();
  bool held() const { return held_; }
  int fd() const { return fd_; }
  // Who has the turn now: "process 812 (hone-worker)"; "" when nobody has it or the system does not say.
  std::string Holder() const;

  // The turn for as long as this lives.
  class Turn {
   public:
    explicit Turn(TurnLock& lock) : lock_(lock) { lock_.Acquire(); }
    ~Turn() { lock_.Release(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    TurnLock& lock_;
  };

 private:
  explicit TurnLock(int fd) : fd_(fd) {}
  int fd_ = -1;
  bool held_ = false;
  int64_t released_ns_ = 0;  // of the monotonic clock; 0: never
};

}  // namespace hone
