// Runs of an instance that its caller does not wait for: one at a time, on a thread of their own that starts with the
// first one.
#pragma once

#include <functional>
#include <memory>

#include "deploy/runtime/error.h"

namespace hone {

RuntimeError RunIsUnderWay();  // kBusy

class BackgroundRuns {
 public:
  using Run = std::function<RuntimeError()>;
  // Told what came of a run, on the thread of the runs, when the run is over: it may read outputs, set inputs, start
  // the next run, and as the last thing that it does destroy the BackgroundRuns. Throws nothing. May be empty.
  using Callback = std::function<void(const RuntimeError& result)>;

  // With `pin` the thread is on the first allowed CPU, as the caller of a pinned pool is.
  BackgroundRuns(Run run, bool pin);
  // Waits until no run is under way and callbacks have returned. Where a callback is who calls, it does not wait, and a
  // run that the callback has started never begins.
  ~BackgroundRuns();
  BackgroundRuns(const BackgroundRuns&) = delete;

  // Returns at once. The run begins when callbacks of those before it have returned. kBusy while a run is under way;
  // kOutOfMemory when the system gives no thread. `callback` is called exactly when there is no error.
  RuntimeError Start(Callback callback);
  // Until no run is under way and callbacks have returned: what came of the last run, no error where there was none.
  // kInvalidArgument from within a callback, which it would wait for.
  RuntimeError Wait();
  // Whether a run is under way: from Start until it is over and its callback is about to be called. Takes no lock.
  bool running() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread holds it too: it outlives this where a callback destroys it
};

}  // namespace hone
