// One machine, one turn: searching, building and measuring take a kernel file lock in turn, so that a host that
// measures does nothing else meanwhile. The kernel drops the lock of a process that dies.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hone {

class TurnLock {
 public:
  // Creates the file when it is not there. $HONE_LOCK names another file than the default (see .cc).
  static absl::StatusOr<TurnLock> Open();
  TurnLock(TurnLock&& other) noexcept;
  TurnLock& operator=(TurnLock&& other) noexcept;
  ~TurnLock();

  // Waits for the turn; `Release` gives it back. Held once at a time by this object.
  void Acquire();
  void Release();
  bool held() const { return held_; }

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
};

}  // namespace hone
