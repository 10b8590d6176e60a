// A candidate inside its runner: code, fenced buffers for verification, plain ones for timing; packed constants, which
// may be most of its memory, are there once. All memory is there once Load has returned; the calls after it allocate
// nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/error.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/image/kernel_set.h"
#include "deploy/runtime/run/invoke.h"
#include "deploy/runtime/run/thread_pool.h"
#include "worker/runner/fenced_memory.h"
#include "worker/runner/protocol.h"
#include "worker/runner/served_candidate.h"
#include "worker/runner/tensor_sets.h"

namespace hone {

class Candidate : public ServedCandidate {
 public:
  // `files`: image, kernel set, inputs and outputs. They stay the caller's.
  static RuntimeResult<std::unique_ptr<ServedCandidate>> Load(const LoadRequest& request, std::span<const int> files);

  void Verify(const VerifyRequest& request, RunnerReply* reply) override;
  void Time(const TimeRequest& request, RunnerReply* reply) override;
  Place Describe(const void* address) const override;

 private:
  struct Set : TensorSet {       // `originals` have constants in their original form
    std::vector<void*> tensors;  // of the main kernel: inputs, packed constants in place, outputs
  };
  Candidate() = default;
  RuntimeError LoadCode(std::span<const int> files);
  RuntimeError MapSets(const LoadRequest& request, std::span<const int> files);
  RuntimeError MapScratch();
  RuntimeError MakePlainBuffers();
  bool IsPrepared(size_t param) const;  // a constant that the main kernel has in another form
  // Writes the set's values to the plain inputs, those of each turned around by so many elements.
  void WriteInputs(int set, uint64_t turn);
  // Packs the constants of the set. False: a prepare kernel failed, as the reply says.
  bool Prepare(const VerifyRequest& how, RunnerReply* reply);
  void Renew(const TimeRequest& request, int call);
  void Flush(uint64_t params) const;
  void PoisonPatches(uint64_t where);
  int32_t CallFenced(HoneKernelFn fn, const VerifyRequest& how, std::span<void* const> tensors, int64_t scratch_bytes,
                     int64_t thread_scratch_bytes);

  KernelSet set_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Image> image_;
  std::vector<Set> sets_;
  std::vector<FencedMemory> packed_;
  std::vector<HoneKernelFn> prepare_;
  HoneKernelFn main_ = nullptr;
  FencedMemory scratch_;
  FencedMemory thread_scratch_;
  int64_t thread_area_ = 0;
  // Every tensor that the main kernel has as it is, in one piece as in a deployed program's arena; empty when nothing
  // is timed.
  AlignedBuffer plain_;
  std::vector<void*> plain_tensors_;        // those, and packed constants where verification has them
  std::unique_ptr<Invocation> invocation_;  // of the main kernel alone; null likewise
  int written_set_ = -1;                    // whose values the plain inputs hold,
  int prepared_set_ = -1;                   // and whose the packed constants
  uint64_t written_turn_ = 0;
};

}  // namespace hone
