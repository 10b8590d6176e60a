// Software pipelines: the statements of a loop's body, its parts, run for several iterations at once, as annotations of
// the loop ask (ir/annotations.h). Part of LowerThreads; what a part is, only the program with blocks says, and how
// large its buffers are, only the one without. So the annotations are checked and the parts told apart first.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The parts of every pipelined loop are told apart by T.evaluate(0), which no pass moves or takes away.
// FailedPrecondition when the annotations do not fit the loop.
absl::StatusOr<Stmt> MarkPipelines(const Stmt& body);

// Every pipelined loop becomes a prologue, a steady loop and an epilogue, with as many versions of each buffer between
// parts as are in use at once. What a part of an asynchronous stage stores is copied asynchronously; behind such parts
// the copies are committed as a group. In front of a round that needs earlier ones stand a wait and a barrier.
//   for k in [0, 4): S[t] = A[k, t];  C[t] += S[t]              stages 0 and 1, stage 0 asynchronous
//   =>  S[0, t] <- A[0, t];  commit
//       for k in [0, 3): wait(0);  barrier;  S[(k + 1) % 2, t] <- A[k + 1, t];  commit;  C[t] += S[k % 2, t]
//       wait(0);  barrier;  C[t] += S[1, t]
// FailedPrecondition when the order asked for would let a part come before what it needs, or when a part of an
// asynchronous stage does more than copy from global to shared memory.
absl::StatusOr<Stmt> PipelineLoops(const Stmt& body);

}  // namespace hone
