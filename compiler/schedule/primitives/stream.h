// stream: what a block writes goes past the caches.
//   C[i, j] = ..   =>   the same, each line of C written whole to memory, without fetching it first
// A store to a line that is not in cache fetches it first and writes it back later. A result larger than the caches is
// in none of them when it is read again, so of these three ways through memory only one is of use. Stated as an
// annotation of the block, kStreamed: the numbers of the buffers that it writes so. Results are the same; lowering
// makes such stores of the vectors that fill their part of a line, where the target has them
// (compiler/codegen/emit_memory.cc).
#pragma once

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct StreamStep {
  BlockRef block;
  int64_t buffer_index = 0;
  static constexpr StepInfo kInfo{.name = "stream"};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &StreamStep::block), Field("buffer_index", &StreamStep::buffer_index));
  }
};
absl::Status Apply(Schedule& schedule, const StreamStep& step);

// The buffer must be a param that this block alone writes, every element once, and that no block reads. Refused as
// well: rows of a known size that begin inside lines.
absl::Status Stream(Schedule& schedule, BlockRef block, int buffer_index);

}  // namespace hone
