#include "worker/probe/together.h"

#include <atomic>

namespace hone {

void RunTogether(ThreadPool& pool, const std::function<void(int)>& work) {
  struct State {
    const std::function<void(int)>& work;
    std::atomic<int> waiting;
  } state{work, pool.threads()};
  pool.Run(
      [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
        State& s = *static_cast<State*>(closure);
        s.waiting.fetch_sub(1);
        while (s.waiting.load() > 0) {}
        s.work(thread);
        return 0;
      },
      &state, pool.threads());
}

}  // namespace hone
