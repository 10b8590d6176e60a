// The hone-search processes: started when first needed, spoken to over pipes, started again when they die. Nothing they
// do can harm a job: a request that fails is reported and may be asked again. Each is locked in, and asked for the
// tasks of one tenant alone; another's get a new process.
//
// Each process trains a cost model for each tenant and device class and hands it back from time to time; the newest is
// kept and given to every other process with its next request.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "hone/v1/search.pb.h"
#include "tuner/dispatch/events.h"

namespace hone {

struct SearchPoolOptions {
  SandboxedProgram program;     // hone-search
  uint32_t missing_layers = 0;  // of its sandbox, as the daemon found when it started
  int processes = 1;
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

  // A task stays with one process, which then is sent only the observations it does not have.
  void Ask(AskSearch question);
  void Stop();                                  // kills the processes; requests under way are not answered
  int64_t crashes() const { return crashes_; }  // processes that died or had to be killed

 private:
  struct Slot;
  void Run(Slot& slot);
  // The newest model of an owner, read when first needed, and its generation.
  struct Model {
    std::string bytes;  // empty: none
    uint64_t generation = 0;
  };
  Model NewestModel(const ModelOwner& owner);
  uint64_t KeepModel(const ModelOwner& owner, std::string bytes);
  absl::StatusOr<v1::SearchReply> Answer(Slot& slot, const AskSearch& question);

  const SearchPoolOptions options_;
  const std::function<void(v1::SearchReply)> done_;
  const std::function<void(uint64_t, std::string)> failed_;
  const ModelKeeper keeper_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex models_mutex_;
  std::map<ModelOwner, Model> models_;
  std::mutex mutex_;
  bool stopping_ = false;
  std::atomic<int64_t> crashes_{0};
};

}  // namespace hone
