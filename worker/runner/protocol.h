// Between an agent and one runner process: messages over a Unix socket of type SOCK_SEQPACKET, which keeps them whole.
// The runner executes one candidate, so it gets plain structs and no parser that could be attacked, and it is not
// believed: what counts are its wait status, the bytes of the outputs and the agent's own clock; its replies are hints.
//
//   agent: LoadRequest with descriptors {image, kernel set, inputs, outputs}
//   runner: Reply (kReady or a failure)                    from here on it is locked in
//   agent: VerifyRequest or TimeRequest, one at a time     runner: Reply
//   agent closes the socket: the runner ends
//
// Image, kernel set and inputs are sealed memory files (memfd); the outputs are a memory file that the agent maps too.
// A *set* is one set of values for all inputs, with a place for the outputs. In both files the sets lie one behind
// another, and in a set every tensor has pages of its own, laid out by LayOutTensors; in the runner each is fenced by
// pages that cannot be touched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deploy/runtime/image/kernel_set.h"

namespace hone {

inline constexpr uint32_t kRunnerProtocol = 6;
inline constexpr int kRunnerMaxSets = 48;
inline constexpr int kRunnerMaxSamples = 256;
inline constexpr int kRunnerMessageBytes = 256;
inline constexpr int kRunnerDeviceBytes = 32;

enum class RunnerCommand : uint32_t { kLoad = 1, kVerify = 2, kTime = 3 };

struct LoadRequest {
  RunnerCommand command = RunnerCommand::kLoad;
  uint32_t protocol = kRunnerProtocol;
  int32_t sets = 1;
  int32_t threads = 1;
  uint8_t pin = 1;      // threads on CPUs of their own
  uint8_t untimed = 0;  // there will be no TimeRequest: no plain memory is made, which holds every tensor once more
  uint8_t reserved[2] = {};
  int32_t cpu_seconds = 60;              // RLIMIT_CPU: all its threads together
  int64_t memory_bytes = 0;              // RLIMIT_AS; 0: none
  char device[kRunnerDeviceBytes] = {};  // of a candidate for a device: its language and architecture, "cuda:sm_90a"
};

// How the iterations of a kernel's parallel loops are run. A device runs them as it likes, whatever is asked.
// kInRanges  as in a deployed program: contiguous ranges, one for each thread
// kOneByOne  one_by_one.h: in another order, each with scratch and a stack that hold nothing of another's
enum class Iterations : uint32_t { kInRanges, kOneByOne };

// Packs the constants of that set, poisons scratch and stacks, runs the kernel once on the fenced buffers.
struct VerifyRequest {
  RunnerCommand command = RunnerCommand::kVerify;
  int32_t set = 0;
  Iterations iterations = Iterations::kInRanges;
};

// What becomes of the memory before every call.
// kNone    nothing: calls follow each other, and a sample is one reading of the clock for all of its calls
// kSame    inputs and outputs are written again with the bytes that they have, so that the caches hold what they hold
//          after kUnseen, and the memory what it held before; every call is timed by itself
// kUnseen  outputs and scratch are poisoned, and the inputs get other values: those of the set, each input's turned
//          around by some elements; likewise
enum class Renewal : uint8_t { kNone, kSame, kUnseen };

// Times the kernel on plain memory, allocated as a deployed program allocates it, with the inputs of a set.
struct TimeRequest {
  RunnerCommand command = RunnerCommand::kTime;
  int32_t warm_up = 1;  // calls before the first sample
  int32_t samples = 1;  // at most kRunnerMaxSamples
  int32_t inner = 1;    // calls in each
  int32_t set = 0;
  Renewal renewal = Renewal::kNone;
  uint8_t copy_outputs = 0;  // copy the outputs to the set's afterwards, where the last call had to write them: without
                             // renewal, a patch of each is poisoned right before it
  uint8_t reserved[2] = {};
  uint64_t turn = 0;     // of kUnseen: by how many elements, i times as many before the i-th call of a sample; prepared
                         // constants are not turned. Of the patch: where it is.
  uint64_t flushed = 0;  // bit i: before every call parameter i, in the form the kernel reads, is taken out of the
                         // caches; every call is timed by itself
};

enum class RunnerOutcome : int32_t {
  kReady = 0,  // the answer to a LoadRequest
  kDone = 1,
  kKernelFailed = 2,  // the kernel returned `kernel_result`, not 0
  kRefused = 3,       // the request or the candidate makes no sense; `message` says why
  kOutOfMemory = 4,
  kCrashed = 5,     // sent by the signal handler just before the process dies: `message` says where
  kNoDevice = 6,    // the answer to a LoadRequest: whatever the candidate is, there is no device to run it on
  kDeviceLost = 7,  // the candidate's run was the last that the device took of this process
};

struct RunnerSample {
  double us = 0;                      // of one call
  uint32_t involuntary_switches = 0;  // of all threads, over the sample
  uint32_t major_faults = 0;
};

struct RunnerReply {
  RunnerOutcome outcome = RunnerOutcome::kDone;
  int32_t kernel_result = 0;
  uint32_t layers = 0;  // of the sandbox that hold, in the answer to a LoadRequest
  int32_t num_samples = 0;
  double elapsed_us = 0;  // of the whole request
  char message[kRunnerMessageBytes] = {};
  RunnerSample samples[kRunnerMaxSamples];  // only num_samples of them are sent
};
size_t ReplyBytes(const RunnerReply& reply);

// ---- tensors in a memory file ----

struct TensorPlace {
  uint64_t region_at = 0, region_bytes = 0;  // whole pages of the file
  uint64_t at = 0;                           // of the tensor itself, in the file, 64-byte aligned
  uint64_t bytes = 0;
};
struct TensorFile {
  std::vector<TensorPlace> places;
  uint64_t total_bytes = 0;
};
// At the end of its pages (so that a step beyond it faults, but for fewer than 64 bytes) or at their start.
TensorFile LayOutTensors(std::span<const KernelTensor> tensors, bool start_aligned);
// The layout of set `set` of several; the last of them is start-aligned, so that steps in front of a tensor fault too.
// Places count from the beginning of the file, total_bytes is that of the set.
TensorFile LayOutSet(std::span<const KernelTensor> tensors, int set, int sets);
// The inputs and the outputs of a kernel set, as its params list them.
std::span<const KernelTensor> InputsOf(const KernelSet& set);
std::span<const KernelTensor> OutputsOf(const KernelSet& set);

}  // namespace hone
