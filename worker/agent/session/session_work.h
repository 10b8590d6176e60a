// What a session tells the daemon of, and hands what it is told: the leases of trials (work_queue.h), or those of
// builds (build_queue.h). Called by the session's thread alone, but for what each says of its other side.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "hone/v1/fleet.pb.h"

namespace hone {

class SessionWork {
 public:
  virtual ~SessionWork() = default;
  // The complete word of the daemon: what to start, what to keep; what is in neither is dropped unless it is being
  // worked on, and results that it has are forgotten. `asked` is the request that was answered: what it did not name as
  // held came with another answer, and this one says nothing about it.
  virtual void Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply) = 0;
  // Fills in what is held, what is finished and the seconds spent; `capacity` leases are wanted in all.
  virtual void Describe(int capacity, v1::SyncRequest* request) = 0;
  // Waits until there is something to tell that was not there at the end of the wait before: a result, or what Poke
  // said.
  virtual void WaitForNews(absl::Duration timeout) = 0;
  // How often there was something to tell (a result, the end of a wait): whether a call that is out has told all of it.
  virtual uint64_t finished() const = 0;
  // Something else happened that the session waits for.
  virtual void Poke() = 0;
  // A new session: nothing that was lent before counts any more; results of trials stay, to be offered again.
  virtual void ForgetLeases() = 0;
  // Leases that nobody works on go back to the daemon with the next call, or all of them.
  virtual void GiveBack(bool all) = 0;
  // Whether there is anything to finish or to tell: a lease, a lease on its way back, a result. Whether there is a
  // lease.
  virtual bool HasWork() const = 0;
  virtual bool HasLeases() const = 0;
};

}  // namespace hone
