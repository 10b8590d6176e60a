// cache_write: a block writes into a new buffer, and a new block copies that to where it belongs.
//   C[i] = ...                  =>    C_local[i] = ...;  C[i] = C_local[i]
// cache_read: a new block copies what a block reads into a new buffer, and the block reads that.
//   ... = A[i]                  =>    A_local[i] = A[i];  ... = A_local[i]
// The copy has loops of its own, beside the block's outermost loop; move it with (reverse_)compute_at.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct CacheReadStep {
  BlockRef block;
  int64_t read_buffer_index = 0;
  std::string storage_scope = "global";
  static constexpr StepInfo kInfo{"cache_read", OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &CacheReadStep::block),
                      Field("read_buffer_index", &CacheReadStep::read_buffer_index),
                      Field("storage_scope", &CacheReadStep::storage_scope));
  }
};
absl::Status Apply(Schedule& schedule, const CacheReadStep& step);
struct CacheWriteStep {
  BlockRef block;
  int64_t write_buffer_index = 0;
  std::string storage_scope = "global";
  static constexpr StepInfo kInfo{"cache_write", OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &CacheWriteStep::block),
                      Field("write_buffer_index", &CacheWriteStep::write_buffer_index),
                      Field("storage_scope", &CacheWriteStep::storage_scope));
  }
};
absl::Status Apply(Schedule& schedule, const CacheWriteStep& step);

// Both give the copying block. The new buffer has the shape of the old one.
absl::StatusOr<BlockRef> CacheRead(Schedule& schedule, BlockRef block, int read_index, Scope scope);
absl::StatusOr<BlockRef> CacheWrite(Schedule& schedule, BlockRef block, int write_index, Scope scope);

}  // namespace hone
