// Which times a kernel can have taken, from what is not in its hands: the clock of another process, the processor time
// that the system charged, and its times on other inputs. Microseconds throughout; nothing here reads a clock.
#pragma once

#include <limits>

namespace hone {

// Whether a process on `threads` threads that says it ran for `us` can have cost that much processor time, which counts
// all its threads. Twice as much is allowed, since a neighbour on the same core slows it down unevenly, and a few
// milliseconds for what surrounds the calls.
bool IsPossibleTime(double us, int threads, double processor_us);

// Pairs of requests that differ in their number of calls alone: one call, and many. What passes by the clock of who
// asked and is not in the times reported is the same for both, as it is what surrounds the calls. The least of several
// pairs is compared: what a busy machine adds by waking a process up late is in some of them only.
class UnaccountedTime {
 public:
  // The calls that the second request of a pair has more take `calls_us`, by their own account.
  explicit UnaccountedTime(double calls_us) : calls_us_(calls_us) {}

  // What the two requests of a pair left unaccounted for, and how long the second waited for a processor.
  void Add(double one_us, double many_us, double waits_us);
  // By how much more the second requests left.
  double more_us() const { return many_us_ - one_us_; }
  // Whether the times reported are those that passed. One pair shows it where even what surrounds the calls of its
  // second request is short. Where that is long, one pair shows nothing: its first request may have been held up for as
  // long as the calls of the second one took in secret.
  bool Agrees() const;

 private:
  double calls_us_;
  int pairs_ = 0;
  double one_us_ = std::numeric_limits<double>::infinity();
  double many_us_ = one_us_;     // less its waits
  double waiting_us_ = one_us_;  // of many calls, with their waits
};

// Whether a call is faster on the values of the call before than on values that were never there, each the least of
// several calls on memory in the same state of the caches. A kernel that computes what it is asked takes as long for
// both, but for the noise of single calls.
bool Remembers(double unseen_us, double same_us);

}  // namespace hone
