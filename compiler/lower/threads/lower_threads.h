// From a scheduled function with loops bound to blockIdx and threadIdx to launches: what every thread of a device runs.
//
// The product of LowerThreads:
//   - No BlockRealize. A launch is one nest: loops over the axes of blockIdx, inside them loops over those of
//     threadIdx, each axis once, from 0, of constant extent; then what a thread does, in which nothing is bound to an
//     axis.
//   - What stood outside the loops of an axis is run by every thread of it where that fills memory of its own, by the
//     first alone (if threadIdx_x == 0) where others see it.
//   - A reduction over a loop that is bound to threadIdx has become one in registers and a few rounds in shared memory.
//   - Allocations are shrunk to what is alive at once. An Alloc of shared memory is the block's, wherever it stands; it
//     holds what all threads of the block touch, of every warp apart where it was in scope warp. Other allocations are
//     a thread's own.
//   - A loop with the annotations of a software pipeline has become a prologue, a steady loop and an epilogue, with
//     asynchronous copies where they are asked for (pipeline.h).
//   - A barrier stands wherever a thread may touch what another touched before, one of them writing.
// The interpreter runs such a program with its threads side by side and looks for races (interp/interpreter.h).
#pragma once

#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// InvalidArgument when the program does not pass the verifier; FailedPrecondition when it is none that threads can run:
// loops of several extents over one axis, registers that several threads would have to share, blocks that need what
// other blocks of their launch make, a barrier that would have to stand where only some threads come by.
absl::StatusOr<PrimFunc> LowerThreads(const PrimFunc& scheduled);

// The passes of it, in order, by name.
struct ThreadPass {
  const char* name;
  std::function<absl::StatusOr<PrimFunc>(PrimFunc)> run;
};
std::span<const ThreadPass> ThreadPasses();

// What `rewrite` makes of every outermost loop that `is_one`; loops inside of those are left to `rewrite`. Fails as it
// does.
absl::StatusOr<Stmt> RewriteOutermostLoops(const Stmt& body, const std::function<bool(const For&)>& is_one,
                                           const std::function<absl::StatusOr<Stmt>(const Stmt&)>& rewrite);
// What `rewrite` makes of what stands in every launch, as MakeLaunches leaves it, under its loops over axes: `axes`,
// outermost first, which stay. Fails as it does.
absl::StatusOr<Stmt> RewriteLaunches(
    const Stmt& body,
    const std::function<absl::StatusOr<Stmt>(const std::vector<For>& axes, const Stmt& inside)>& rewrite);

// ---- The passes that other lowering does not have, each in a file of its own.

// Of every outermost loop over blockIdx or threadIdx one launch; allocations stand where PlaceAllocations puts them.
//   for b in blockIdx.x: for k: (for i in threadIdx.x: S[i] = ..);  (for j in threadIdx.x: .. = S[31 - j])
//   =>  for blockIdx_x: for threadIdx_x: for k: S[threadIdx_x] = ..;  .. = S[31 - threadIdx_x]
absl::StatusOr<Stmt> MakeLaunches(const Stmt& body);

// A block that reduces over an axis of threads: each thread reduces what is its own, and rounds in shared memory, in
// each of which a thread adds up 8 parts, give the sum (+, *, min or max) of all.
//   for tx in threadIdx.x: C[0] += A[tx]
//   =>  for tx: part[0] = 0;  part[0] += A[tx];  all[0, tx] = part[0];
//       if tx < 4: part[0] += all[0, tx + 4];  ..  part[0] += all[0, tx + 28];  parts[0, tx] = part[0];
//       part[0] = parts[0, 0];  ..  part[0] += parts[0, 3];  if tx == 0: C[0] = part[0]
// Where threads along threadIdx.x reduce other elements those are neighbours in memory: all[tx, threadIdx_x].
absl::StatusOr<Stmt> ReduceAcrossThreads(const Stmt& body);

// Memory of warps is shared memory that has an instance for each warp of a block.
//   for ty in 4: for tx in 32: (S = alloc(32) of each warp;  S[tx] = ..)
//   =>  for ty in 4: for tx in 32: (S = alloc(4, 32) shared;  S[ty, tx] = ..)
absl::StatusOr<Stmt> ShareWarps(const Stmt& body);

// Puts barriers between what threads of a launch write and others read or write after it, as few as a walk in order
// finds: in front of the outermost statement that needs one, and in loops whose next iteration needs one.
absl::StatusOr<Stmt> InsertBarriers(const Stmt& body);

}  // namespace hone
