// compute_at: a block moves under a loop of its consumers and computes there exactly what they read in one iteration.
//   for i: B[i] = ..                        for j0:
//   for j0: for j1: C[j] = B[j] + B[j+1] =>   for x in [0, 17): B[j0*16 + x] = ..      where j0*16 + x < n
//                                             for j1: C[j] = B[j] + B[j+1]
// Consumers that come after the loop read what all its iterations together have made:
//   for i: E[i] = ..                        for i: E[i] = ..
//   for i: S += E[i]                    =>         S += E[i]
//   for i: D[i] = E[i] / S                  for i: D[i] = E[i] / S
// reverse_compute_at: a block moves under a loop of its producers and consumes there what one iteration of it produced.
// A reduction goes on from one iteration to the next where an iteration produces a part of what it adds up; its init
// runs with the first instance, as that of every reduction.
//   for k0: for k1: B[k0*4 + k1] = ..       for k0: for k1: B[k0*4 + k1] = ..
//   for k: C += B[k]                    =>          for x in [0, 4): C += B[k0*4 + x]      C = 0 where k0*4 + x == 0
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ComputeAtStep {
  BlockRef block;
  LoopRef loop;
  bool preserve_unit_loops = false;
  static constexpr StepInfo kInfo{"compute_at", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &ComputeAtStep::block), Field("loop", &ComputeAtStep::loop),
                      Field("preserve_unit_loops", &ComputeAtStep::preserve_unit_loops));
  }
};
absl::Status Apply(Schedule& schedule, const ComputeAtStep& step);
struct ReverseComputeAtStep {
  BlockRef block;
  LoopRef loop;
  bool preserve_unit_loops = false;
  static constexpr StepInfo kInfo{"reverse_compute_at", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &ReverseComputeAtStep::block), Field("loop", &ReverseComputeAtStep::loop),
                      Field("preserve_unit_loops", &ReverseComputeAtStep::preserve_unit_loops));
  }
};
absl::Status Apply(Schedule& schedule, const ReverseComputeAtStep& step);

// What is in shared memory is computed for all threads of the block at once: loops around that are bound to threadIdx
// are taken over their whole range, so that the new nest may be bound to the same axes again.
//
// The block gets new loops, one for each iteration variable it has (those that would run once are dropped, unless
// `preserve_unit_loops`), over the part that is needed; instances outside its domain are kept out by its predicate.
// compute_at refuses: a consumer that comes before the loop, or after it where the iterations leave out some of what it
// reads or are not serial; a block that writes a param of the function, a loop the block is already under, and a loop
// that its own producers are not complete before.
absl::Status ComputeAt(Schedule& schedule, BlockRef block, LoopRef loop, bool preserve_unit_loops = false);
// Refuses: a producer that is not under the loop or not complete after one iteration (a reduction that goes on across
// the loop or outside it), a consumer of the block that comes before its new place, and a reduction whose terms would
// be added twice, out of order (its init first) or at the same time (CheckMovedReduction).
absl::Status ReverseComputeAt(Schedule& schedule, BlockRef block, LoopRef loop, bool preserve_unit_loops = false);

}  // namespace hone
