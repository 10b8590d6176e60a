// prefetch: what a later iteration of a loop will read is asked for now, a cache line at a time.
//   for i: S(A[i, 0:64])   =>   for i: { for l in [0, 4): prefetch A[i + 1, l * 16]  where i + 1 < n;   S(A[i, 0:64]) }
// The new block reads and writes nothing that counts: results are the same without it. In the program it is
// T.evaluate(T.prefetch(A[..])), in machine code a prefetch instruction.
//
// prefetch_across: what the next iteration of an outer loop will read is asked for all the while this one runs.
//   for p: for r in [0, R): for i: S(A[p, i * 8 : i * 8 + 8])
//     =>  for p: for r in [0, R): for i in [0, I):
//           { for l in [0, 8 / R): prefetch A[p + 1, (r * I + i) * 8 / R + l]  where p + 1 < n;   S }
// For operands that are read over and over while p stands, and come from memory when it moves: the memory then works in
// all R passes over them and not in the first alone, along A from its beginning to its end. Where R follows a symbolic
// size, in as many passes as there are at the least one.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct PrefetchStep {
  BlockRef block;
  int64_t read_buffer_index = 0;
  LoopRef loop;
  int64_t distance = 1;
  static constexpr StepInfo kInfo{.name = "prefetch", .output = OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &PrefetchStep::block),
                      Field("read_buffer_index", &PrefetchStep::read_buffer_index), Field("loop", &PrefetchStep::loop),
                      Field("distance", &PrefetchStep::distance));
  }
};
absl::Status Apply(Schedule& schedule, const PrefetchStep& step);

struct PrefetchAcrossStep {
  BlockRef block;
  int64_t read_buffer_index = 0;
  LoopRef loop;    // where it is asked for
  LoopRef across;  // whose next iteration reads it
  LoopRef share;   // each iteration asks for a part
  static constexpr StepInfo kInfo{.name = "prefetch_across", .output = OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &PrefetchAcrossStep::block),
                      Field("read_buffer_index", &PrefetchAcrossStep::read_buffer_index),
                      Field("loop", &PrefetchAcrossStep::loop), Field("across", &PrefetchAcrossStep::across),
                      Field("share", &PrefetchAcrossStep::share));
  }
};
absl::Status Apply(Schedule& schedule, const PrefetchAcrossStep& step);

// At the start of every iteration of `loop`: the lines of the region of the buffer that the block reads `distance`
// iterations later. Gives the new block, NAME_prefetch. Refused: a loop that is not around the block, or is parallel or
// vectorized (no iteration follows another there); a region that does not move with the loop, has no constant size or
// is above 4096 lines; a buffer that is not complete before the nest.
absl::StatusOr<BlockRef> Prefetch(Schedule& schedule, BlockRef block, int read_index, LoopRef loop, int64_t distance);

// At the start of every iteration of `loop`: of the lines that the block reads one iteration of `across` later, a part:
// the iterations of `share` each take as many of the longest dimension, in the order of memory where the runs that
// `loop` reads follow each other, else of the run that it reads then. `across` stands around `share`, and that around
// `loop`. Refused: as above, and loops that do not stand so.
absl::StatusOr<BlockRef> PrefetchAcross(Schedule& schedule, BlockRef block, int read_index, LoopRef loop,
                                        LoopRef across, LoopRef share);

}  // namespace hone
