// The hone-search processes: one for each task of a job, started when the task is first asked about, spoken to over
// pipes, started again when it dies. Nothing they do can harm a job: a request that fails is reported and may be asked
// again. Each is locked in, and what the workload and the traces of its task make of it reaches other tasks by the
// cost model alone.
//
// A process waits for the next question about its task until the job ends, as long as the bounds of SearchPoolOptions
// leave it; after that a new one is told the task's history. It trains the cost model of its tenant and device class
// and hands it back from time to time; the newest is kept and given to the tenant's other processes with their next
// requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "hone/v1/search.pb.h"
#include "tuner/dispatch/events/events.h"

namespace hone {

// How many processes may wait: three descriptors each, at most a fifth of those that this process may open, and no
// more than 1,024. What bounds real searches is their memory.
size_t MostWaitingSearches();

struct SearchPoolOptions {
  SandboxedProgram program;     // hone-search
  uint32_t missing_layers = 0;  // of its sandbox, as the daemon found when it started
  int processes = 1;            // that search at once
  // Bounds of those that wait, the one that was asked the longest ago ending first: their number, the memory that they
  // do not share, and how long one waits.
  size_t most_waiting = MostWaitingSearches();
  int64_t most_waiting_bytes = int64_t{1} << 30;
  absl::Duration longest_wait = absl::Minutes(10);
  absl::Duration reply_timeout = absl::Minutes(10);  // it may wait long for its turn on a machine that measures
  absl::Duration first_back_off = absl::Milliseconds(200);
  absl::Duration longest_back_off = absl::Seconds(10);
};

// Whose cost model: tenants learn nothing from each other.
struct ModelOwner {
  uint64_t tenant = 0;
  std::string device_class;
  auto operator<=>(const ModelOwner&) const = default;
};

// Where cost models are kept. Both may be called from any thread.
struct ModelKeeper {
  std::function<std::string(const ModelOwner&)> load;  // empty when there is none
  std::function<void(const ModelOwner&, std::string model)> save;
};

class SearchPool {
 public:
  // The two functions are called from the pool's threads, once for each request between them.
  SearchPool(const SearchPoolOptions& options, std::function<void(v1::SearchReply)> done,
             std::function<void(uint64_t request_id, std::string reason)> failed, ModelKeeper models = {});
  ~SearchPool();

  // The process of a task that has one is sent only the observations it does not have.
  void Ask(AskSearch question);
  // The job has no more questions: its processes end, each once it has answered what it was asked.
  void EndJob(uint64_t job);
  void Stop();                                  // kills the processes; requests under way are not answered
  int64_t crashes() const { return crashes_; }  // processes that died or had to be killed

 private:
  struct Searcher;
  struct Slot;
  using Searchers = std::list<std::unique_ptr<Searcher>>;
  void Run(Slot& slot);
  void WakeOne();  // under the mutex: to look at the queue, at what ended, at whether the pool stops
  void Wake(Slot& slot);
  // The next question, when there is one and the slot may start a process; none when the pool stops.
  std::optional<AskSearch> Next(Slot& slot);
  absl::StatusOr<v1::SearchReply> AnswerAt(Slot& slot, const AskSearch& question);
  absl::StatusOr<v1::SearchReply> Answer(Searcher& searcher, const AskSearch& question);
  // The process of the task, which waits no longer; nullptr: none waits.
  std::unique_ptr<Searcher> TakeWaiting(uint64_t task);
  void LetWait(Slot& slot);  // whom it asked, unless the job has ended
  // Of those that wait; under the mutex, which who ends them does not hold.
  std::unique_ptr<Searcher> Take(Searchers::iterator waiting);
  Searchers TakeUnneeded();  // those of ended jobs, and what is beyond the bounds
  absl::StatusOr<std::unique_ptr<SandboxedProcess>> StartProcess();

  // The newest model of an owner, read when first needed, and its generation.
  struct Model {
    std::string bytes;  // empty: none
    uint64_t generation = 0;
  };
  Model NewestModel(const ModelOwner& owner);
  uint64_t KeepModel(const ModelOwner& owner, std::string bytes);

  const SearchPoolOptions options_;
  const std::function<void(v1::SearchReply)> done_;
  const std::function<void(uint64_t, std::string)> failed_;
  const ModelKeeper keeper_;
  std::mutex models_mutex_;
  std::map<ModelOwner, Model> models_;
  std::mutex mutex_;
  std::deque<AskSearch> queue_;
  Searchers waiting_;                                              // asked last comes first
  std::unordered_map<uint64_t, Searchers::iterator> waiting_for_;  // by task
  int64_t waiting_bytes_ = 0;
  Searchers ended_;  // of jobs that have, until a slot ends them
  std::vector<std::unique_ptr<Slot>> slots_;
  bool stopping_ = false;
  std::atomic<int64_t> crashes_{0};
};

}  // namespace hone
