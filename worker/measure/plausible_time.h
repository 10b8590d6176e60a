// Which times a kernel can have taken, from what is not in its hands: the clock of another process, the processor time
// that the system charged, and its times on other inputs. Microseconds throughout; nothing here reads a clock.
#pragma once

namespace hone {

// Whether a process on `threads` threads that says it ran for `us` can have cost that much processor time, which counts
// all its threads. Twice as much is allowed, since a neighbour on the same core slows it down unevenly, and a few
// milliseconds for what surrounds the calls.
bool IsPossibleTime(double us, int threads, double processor_us);

// Of two requests that differ in their number of calls alone, what passed by the clock of who asked and is not in the
// times reported: the same for both, as it is what surrounds the calls. `more_us` is by how much it is more for the
// request whose calls take `calls_us` longer, by their own account. Each the least of several requests: what a busy
// machine adds by waking a process up late is in some of them only.
bool AgreesWithClock(double calls_us, double more_us);

// Whether a call is faster on the values of the call before than on values that were never there, each the least of
// several calls on memory in the same state of the caches. A kernel that computes what it is asked takes as long for
// both, but for the noise of single calls.
bool Remembers(double unseen_us, double same_us);

}  // namespace hone
