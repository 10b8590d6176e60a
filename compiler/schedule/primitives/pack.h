// pack: what a block reads is copied into panels, at a loop.
//   for n0: for k, n1: .. B[k, n0*16 + n1] ..        by lambda k, n: (n // 16, k, n % 16)
//   =>  for n0: { for k, r: B_pack[n0, k, r] = B[k, n0*16 + r];   for k, n1: .. B_pack[n0, k, n1] .. }
// Every read of the inner loops is then contiguous and aligned. Constants are better packed once for all, by
// layout_constant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/pad_value.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct PackStep {
  BlockRef block;
  int64_t read_buffer_index = 0;
  LoopRef loop;
  IndexMap index_map;
  std::string tails = "zero";
  std::string storage_scope = "local.thread";
  PadValue pad_value;
  static constexpr StepInfo kInfo{.name = "pack", .output = OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &PackStep::block), Field("read_buffer_index", &PackStep::read_buffer_index),
                      Field("loop", &PackStep::loop), Field("index_map", &PackStep::index_map),
                      Field("tails", &PackStep::tails), Field("storage_scope", &PackStep::storage_scope),
                      Field("pad_value", &PackStep::pad_value));
  }
};
absl::Status Apply(Schedule& schedule, const PackStep& step);

// What lies beyond the buffer in a panel that the map does not fill.
enum class PanelTails {
  kZero,  // "zero": is written as the pad value, 0 where there is none, so that whole panels may be read
  kMask,  // "mask": is neither written nor to be read
};

// The map gives the panel layout of the whole buffer; what is copied at the loop is the part that one iteration reads.
// Gives the copying block, NAME_pack. Refused: whatever cache_read and compute_at refuse (a stale copy, a loop that is
// not around the block), a map that cannot be inverted, a buffer that is not complete before the nest, a pad value
// together with kMask or that is none of the buffer's type (pad_value.h).
absl::StatusOr<BlockRef> Pack(Schedule& schedule, BlockRef block, int read_index, LoopRef loop, IndexMap map,
                              PanelTails tails, Scope scope, PadValue pad_value = {});

}  // namespace hone
