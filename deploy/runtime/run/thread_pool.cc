#include "deploy/runtime/run/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <string>
#include <utility>

namespace hone {
namespace {

constexpr size_t kCacheLine = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__riscv)
  __asm__ volatile(".4byte 0x0100000F");  // pause, which processors without Zihintpause take for a fence
#else
  __asm__ volatile("yield");
#endif
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Pauses that fit a microsecond: 10 to 50 on current cores, as a pause takes 40 to 140 cycles. The best of some tries,
// since an interruption only makes them fewer.
double PausesPerUs() {
  static const double rate = [] {
    double best = 1;
    for (int attempt = 0; attempt < 5; ++attempt) {
      const double start = NowUs();
      for (int i = 0; i < 256; ++i) Pause();
      best = std::max(best, 256 / std::max(NowUs() - start, 0.1));
    }
    return std::min(best, 1000.0);
  }();
  return rate;
}

// Changes of `word` away from `old`: spins, then sleeps. `asleep` tells the one who changes it that a wake-up is due;
// both sides write their word before they read the other's, in one total order, so that one of them sees the other.
void AwaitChange(std::atomic<uint32_t>& word, std::atomic<uint32_t>& asleep, uint32_t old, int64_t spins) {
  for (int64_t i = 0; i < spins; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  asleep.store(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == old) FutexWait(word, old);
  asleep.store(0, std::memory_order_relaxed);
}

void Change(std::atomic<uint32_t>& word, std::atomic<uint32_t>& asleep, uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
  if (asleep.load(std::memory_order_seq_cst) != 0) FutexWake(word);
}

// The pool whose task this thread is running, and its number there: a parallel loop met inside a task runs serially.
struct Place {
  const void* pool = nullptr;
  int32_t thread = 0;
};
thread_local Place t_place;

bool PinCurrentThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

// Where the pools have pinned this thread. They may be made and destroyed in any order: the first one remembers which
// CPUs were allowed before, for those that come after it, and the last one restores them.
struct Pinning {
  int pools = 0;
  cpu_set_t before{};
};
thread_local Pinning t_pinning;

bool AllowedSet(cpu_set_t* set) {
  if (t_pinning.pools > 0) {
    *set = t_pinning.before;
    return true;
  }
  return sched_getaffinity(0, sizeof(*set), set) == 0;
}

bool PinCaller(int cpu) {
  cpu_set_t before;
  if (!AllowedSet(&before) || !PinCurrentThread(cpu)) return false;
  t_pinning.before = before;
  ++t_pinning.pools;
  return true;
}

void UnpinCaller() {
  if (--t_pinning.pools == 0) sched_setaffinity(0, sizeof(t_pinning.before), &t_pinning.before);
}

}  // namespace

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (AllowedSet(&set)) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

struct ThreadPool::Impl {
  // What passes between the caller and one worker. The caller writes `work`, the worker `done`, each number of a round.
  struct alignas(kCacheLine) Worker {
    std::atomic<uint32_t> work{0};
    std::atomic<uint32_t> work_asleep{0};
    std::atomic<uint32_t> done{0};
    std::atomic<uint32_t> done_asleep{0};
    int64_t begin = 0, end = 0;
    int32_t result = 0;
    int32_t index = 0;
    int cpu = -1;  // where it is pinned; -1: nowhere
    Impl* pool = nullptr;
    pthread_t thread{};
  };
  static_assert(sizeof(Worker) == kCacheLine);

  HoneTaskFn fn = nullptr;  // of the current round; nullptr tells a worker to end
  void* closure = nullptr;
  uint32_t round = 0;
  int64_t spins = 0;
  std::vector<Worker> workers;  // workers[0] is the caller and has no thread
  int started = 1;
  bool caller_pinned = false;
  pthread_t caller{};   // who is pinned, and alone can be let go
  bool steers = false;  // workers are kept off the caller's CPU
  int kept_off = -1;    // the CPU they were last kept off
  cpu_set_t allowed{};  // the CPUs of the thread that made the pool; whoever calls it later may have others

  static void* Main(void* argument);
  void KeepOffCallersCpu();
  void Stop();
};

void* ThreadPool::Impl::Main(void* argument) {
  Worker& self = *static_cast<Worker*>(argument);
  Impl& pool = *self.pool;
  if (self.cpu >= 0) PinCurrentThread(self.cpu);  // refused by a cgroup that shrank: it runs unpinned
  t_place = {&pool, self.index};
  for (uint32_t seen = 0;;) {
    AwaitChange(self.work, self.work_asleep, seen, pool.spins);
    seen = self.work.load(std::memory_order_acquire);
    if (pool.fn == nullptr) return nullptr;
    self.result = pool.fn(pool.closure, self.begin, self.end, self.index);
    Change(self.done, self.done_asleep, seen);
  }
}

// A worker that sleeps is woken on the caller's CPU where the system takes no other for idle, as Linux does in a
// virtual machine whose idle CPUs the host has taken back (available_idle_cpu in kernel/sched); there it waits until
// the caller's part is done. So that CPU is none of the workers', which costs nothing while the caller stays where it
// is.
void ThreadPool::Impl::KeepOffCallersCpu() {
  const int cpu = sched_getcpu();
  if (cpu == kept_off || cpu < 0) return;
  kept_off = cpu;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return;
  for (int t = 1; t < started && steers; ++t) {
    steers = pthread_setaffinity_np(workers[t].thread, sizeof(others), &others) == 0;  // a sandbox may refuse
  }
}

void ThreadPool::Impl::Stop() {
  fn = nullptr;
  ++round;
  for (int t = 1; t < started; ++t) Change(workers[t].work, workers[t].work_asleep, round);
  for (int t = 1; t < started; ++t) pthread_join(workers[t].thread, nullptr);
  if (caller_pinned && pthread_equal(caller, pthread_self())) UnpinCaller();
}

ThreadPool::ThreadPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ThreadPool::~ThreadPool() { impl_->Stop(); }
int ThreadPool::threads() const { return static_cast<int>(impl_->workers.size()); }

RuntimeResult<std::unique_ptr<ThreadPool>> ThreadPool::Create(const Options& options) {
  const std::vector<int> cpus = AllowedCpus();
  const int threads = options.threads == 0 ? static_cast<int>(cpus.size()) : options.threads;
  if (threads < 1 || threads > kMaxThreads) {
    return RuntimeError(RuntimeCode::kInvalidArgument, "thread pool: " + std::to_string(threads) +
                                                           " threads asked for, 1 to " + std::to_string(kMaxThreads) +
                                                           " can be had");
  }
  auto impl = std::make_unique<Impl>();
  // More threads than CPUs: who spins keeps another from running.
  impl->spins = threads > static_cast<int>(cpus.size()) ? 0 : static_cast<int64_t>(options.spin_us * PausesPerUs());
  impl->workers = std::vector<Impl::Worker>(threads);
  const bool know_allowed = AllowedSet(&impl->allowed);
  if (options.pin_caller) impl->caller_pinned = PinCaller(cpus[0]);
  impl->caller = pthread_self();
  impl->steers =
      know_allowed && !options.pin_workers && !options.pin_caller && threads <= static_cast<int>(cpus.size());
  for (int t = 1; t < threads; ++t) {
    Impl::Worker& worker = impl->workers[t];
    worker.index = t;
    worker.pool = impl.get();
    if (options.pin_workers) worker.cpu = cpus[t % cpus.size()];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // Not those that a pinned caller has.
    if (know_allowed) pthread_attr_setaffinity_np(&attributes, sizeof(impl->allowed), &impl->allowed);
    const int refused = pthread_create(&worker.thread, &attributes, &Impl::Main, &worker);
    pthread_attr_destroy(&attributes);
    if (refused != 0) {
      impl->Stop();
      return RuntimeError(RuntimeCode::kOutOfMemory, "thread pool: the system gave " + std::to_string(t) + " of " +
                                                         std::to_string(threads) + " threads; ask for fewer");
    }
    ++impl->started;
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(std::move(impl)));
  // Every thread has started and found its CPU before anybody is timed, or locked into a sandbox.
  pool->Run([](void*, int64_t, int64_t, int32_t) -> int32_t { return 0; }, nullptr, threads);
  return pool;
}

int32_t ThreadPool::Run(HoneTaskFn fn, void* closure, int64_t extent) {
  Impl& pool = *impl_;
  const int64_t threads = std::min<int64_t>(this->threads(), extent);
  if (extent <= 0) return 0;
  if (t_place.pool == &pool) return fn(closure, 0, extent, t_place.thread);
  const Place outer = std::exchange(t_place, Place{&pool, 0});
  if (threads == 1) {
    const int32_t result = fn(closure, 0, extent, 0);
    t_place = outer;
    return result;
  }
  if (pool.steers) pool.KeepOffCallersCpu();
  pool.fn = fn;
  pool.closure = closure;
  ++pool.round;
  const int64_t share = extent / threads, more = extent % threads;  // the first `more` threads take one more
  int64_t begin = share + (more > 0 ? 1 : 0);
  const int64_t own_end = begin;
  for (int64_t t = 1; t < threads; ++t) {
    Impl::Worker& worker = pool.workers[t];
    worker.begin = begin;
    worker.end = begin += share + (t < more ? 1 : 0);
    Change(worker.work, worker.work_asleep, pool.round);
  }
  int32_t result = fn(closure, 0, own_end, 0);
  t_place = outer;
  for (int64_t t = 1; t < threads; ++t) {
    Impl::Worker& worker = pool.workers[t];
    // The last round this worker was part of may be older than the previous one, so wait for the number, not a change.
    for (uint32_t done; (done = worker.done.load(std::memory_order_acquire)) != pool.round;) {
      AwaitChange(worker.done, worker.done_asleep, done, pool.spins);
    }
    if (result == 0) result = worker.result;
  }
  return result;
}

}  // namespace hone
