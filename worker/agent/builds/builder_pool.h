// Several hone-builder processes, each locked in and each for one task, workload and language: the next gets a new
// process, since one that was harmed by what a tenant wrote could make anything of what another did. A builder that
// crashes, hangs or eats memory fails the request it was given and is replaced; nothing else happens.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "worker/agent/builds/builders.h"

namespace hone {

class BuilderPool : public Builders {
 public:
  // Builders are started when they are needed. `program` "": hone-builder beside this program.
  explicit BuilderPool(int builders, std::string program = "", uint32_t allowed_missing_layers = 0);
  ~BuilderPool() override;

  // On all builders at once.
  void Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) override;
  std::optional<Built> Next() override;

 private:
  // One builder: its process, and the thread that starts it and speaks to it. The kernel ends a process with the thread
  // that started it.
  struct Builder {
    std::unique_ptr<SandboxedProcess> process;
    uint64_t task = 0;               // these are the only ones
    std::string workload, language;  // that the process has seen
    std::thread thread;
  };
  void Serve(Builder& builder);
  v1::BuildOutcome BuildOn(Builder& builder, const v1::BuildRequest& request, absl::Duration limit) const;

  const SandboxedProgram program_;
  std::vector<Builder> builders_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<v1::BuildRequest> requests_;
  absl::Duration limit_;
  size_t begun_ = 0, handed_out_ = 0;  // of the requests
  std::deque<Built> built_;
  bool stopping_ = false;
};

}  // namespace hone
