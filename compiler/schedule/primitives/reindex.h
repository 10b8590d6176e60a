// reindex: a block reads or writes a buffer through a copy that is indexed by its iteration variables, one dimension
// each; another block copies. What is left is a block of the plain form that intrinsics and layouts are stated for.
//   conv[v_h, v_w] += pad[v_h + v_kh, v_w + v_kw] * ..
//   =>  pad_reindex[v_h, v_w, v_kh, v_kw] = pad[v_h + v_kh, v_w + v_kw];  conv[v_h, v_w] += pad_reindex[..] * ..
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ReindexStep {
  BlockRef block;
  BlockBuffer buffer;
  static constexpr StepInfo kInfo{.name = "reindex", .output = OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &ReindexStep::block), Field("buffer", &ReindexStep::buffer));
  }
};
absl::Status Apply(Schedule& schedule, const ReindexStep& step);

// Gives the copying block, NAME_reindex, whose nest stands before the block's nest (a read) or behind it (a write). The
// copy's dimensions are the variables the access uses, in the block's order. Refused: accesses at more than one place
// or under a condition; a write that two instances share; a block whose loops do not run its whole domain (reindex
// before compute_at); a read that a later writer would leave stale.
absl::StatusOr<BlockRef> Reindex(Schedule& schedule, BlockRef block, int buffer_index, BufferKind kind);

}  // namespace hone
