// The agent's end of a runner: starts the process, hands it a candidate, asks, and always comes back, whatever the
// candidate does.
//
//   RunnerJob job{.image = .., .set = .., .inputs = &inputs, .threads = 2};
//   HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));        // loaded and locked in, asleep
//   RunnerVerdict verdict = runner.Verify(0, timeout);                           // then read runner.output(0, i)
//   RunnerVerdict timing = runner.Time({.samples = 3, .inner = 40}, timeout);
//
// Several runners may exist at once; a runner that is not asked sleeps.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/runtime/image/kernel_set.h"
#include "worker/runner/memory_file.h"
#include "worker/runner/protocol.h"
#include "worker/runner/read_reply.h"

namespace hone {

// Input values that several candidates of a task share: written once, handed to every runner.
class InputSets {
 public:
  // Of each set, `values` has the bytes of each input of `set`, in order. InvalidArgument when sizes differ, or when
  // there are not 1 to kRunnerMaxSets sets.
  static absl::StatusOr<InputSets> Create(const KernelSet& set,
                                          const std::vector<std::vector<std::string_view>>& values);
  // One set for a kernel that runs on many values, one after the other: only this process writes it, between runs.
  static absl::StatusOr<InputSets> CreateRewritable(const KernelSet& set);
  // Of one that is rewritable. InvalidArgument as above.
  absl::Status Rewrite(std::span<const std::string_view> values) { return WriteSet(0, values); }
  int fd() const { return file_.fd(); }
  int count() const { return static_cast<int>(layouts_.size()); }

 private:
  // Not yet written, and not sealed.
  static absl::StatusOr<InputSets> Make(const KernelSet& set, size_t count);
  absl::Status WriteSet(size_t s, std::span<const std::string_view> values);
  MemoryFile file_;
  std::vector<TensorFile> layouts_;
};

struct RunnerJob {
  std::string_view image;  // deploy/runtime/image/image.h
  KernelSet set;
  const InputSets* inputs = nullptr;
  int threads = 1;
  bool pin = true;
  bool timed = true;  // otherwise Time is refused, and the runner holds each tensor once instead of twice
  int cpu_seconds = 60;
  int64_t memory_bytes = int64_t{4} << 30;  // of address space
  uint32_t allowed_missing_layers = 0;      // of its sandbox (compiler/sandbox/layers.h)
  absl::Duration start_timeout = absl::Seconds(10);
  std::string program;  // "" : hone-runner beside this program, of a device hone-device-runner
  // Of a candidate for a device, its target; "" on the host. Its driver may compile while it is loaded, and its
  // processor time is not that of the process, so that no time is held against that.
  std::string device;
};

class RunnerClient {
 public:
  // Starts the process and loads the candidate. When that fails because of the candidate, `started` of the result is
  // still a client, one whose load_verdict() is not ok; a Status is about us: no program, no memory, no descriptors, or
  // PermissionDenied when a layer of the sandbox is missing that may not be.
  static absl::StatusOr<RunnerClient> Start(const RunnerJob& job);
  RunnerClient(RunnerClient&&) noexcept;
  RunnerClient& operator=(RunnerClient&&) noexcept;
  ~RunnerClient();  // kills and reaps

  const RunnerVerdict& load_verdict() const;
  uint32_t layers() const;  // of the sandbox that hold; 0 when it ended before it said so

  // Fills the outputs of `set` with what is none (worker/runner/poison.h), runs the kernel on it once.
  RunnerVerdict Verify(int set, absl::Duration timeout, Iterations iterations = Iterations::kInRanges);
  // As Verify, but the outputs hold zeros before, so that bytes the kernel does not write are the same every time.
  RunnerVerdict RunOnZeros(int set, absl::Duration timeout);
  // The samples' times are held against what is not in the runner's hands: more than passed by our clock, or too little
  // for the processor time its process was charged (IsPossibleTime), and the verdict is kImpossibleTime. Time that a
  // busy machine gave to others counts for neither.
  RunnerVerdict Time(const TimeRequest& request, absl::Duration timeout);
  // Output `index` of `set` as the last Verify of that set left it, or Time with copy_outputs, which fills the outputs
  // as Verify does before.
  std::string_view output(int set, int index) const;
  // False when bytes around an output, which no kernel may touch, were changed.
  bool OutputEdgesIntact(int set) const;

  bool alive() const;
  // What the kernel has charged the process for, all its threads together; 0 when it has ended.
  double ProcessorMicroseconds() const;
  // How long its first thread and the calling thread were ready to run and waited for a processor, since they began: on
  // a busy machine, time that passes by the clock and that no request took. 0 where the system does not tell.
  double WaitMicroseconds() const;

 private:
  struct Impl;
  explicit RunnerClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The layers of the sandbox that hold for runners of this program, by one that is given nothing it could run.
// Unavailable when it ends before it says so.
absl::StatusOr<uint32_t> LayersOfRunner(const std::string& program);

}  // namespace hone
