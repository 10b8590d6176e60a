// layout_constant: a constant operand is stored in another layout, made once when the kernel is deployed.
//   main(A, W: (K, N), C): .. W[k, n] ..    =>   main(A, W: (N/32, K, 32), C): .. W[n // 32, k, n % 32] ..
//                                                prepare(W: (K, N), W_packed: (N/32, K, 32))
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/pad_value.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct LayoutConstantStep {
  BlockRef block;
  int64_t read_buffer_index = 0;
  IndexMap index_map;
  PadValue pad_value;
  static constexpr StepInfo kInfo{"layout_constant", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(
        Field("block", &LayoutConstantStep::block), Field("read_buffer_index", &LayoutConstantStep::read_buffer_index),
        Field("index_map", &LayoutConstantStep::index_map), Field("pad_value", &LayoutConstantStep::pad_value));
  }
};
absl::Status Apply(Schedule& schedule, const LayoutConstantStep& step);

// The param keeps its position and its name; its buffer changes in place, in every block that reads it. Padding (where
// a factor does not divide) holds `pad_value`, zero where it is absent. Doing it twice composes: there is one prepare
// function a param, from the original. Refused: a buffer that is not a param listed in the attribute "constants", a map
// that cannot be inverted, a pad value that is none of the buffer's type (pad_value.h).
absl::Status LayoutConstant(Schedule& schedule, BlockRef block, int read_index, IndexMap map, PadValue pad_value = {});

}  // namespace hone
