// storage_align: rows of an intermediate buffer start at places that suit the caches.
//   B: (64, 32), axis 0, factor 32, offset 8: a step along axis 0 is 40
//   elements, the next k * 32 + 8
// Stated as an annotation of the block that writes the buffer, kStorageAlign:
// [buffer_index, axis, factor, offset] for each aligned buffer, one after the other. Programs index the buffer as
// before; lowering pads the dimension behind the axis once it has shrunk the buffer to what is alive
// (compiler/lower/buffers/align_storage.cc).
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct StorageAlignStep {
  BlockRef block;
  int64_t buffer_index = 0;
  int64_t axis = 0;
  int64_t factor = 1;
  int64_t offset = 0;
  static constexpr StepInfo kInfo{.name = "storage_align"};
  static constexpr auto Fields() {
    using S = StorageAlignStep;
    return std::tuple(Field("block", &S::block), Field("buffer_index", &S::buffer_index), Field("axis", &S::axis),
                      Field("factor", &S::factor), Field("offset", &S::offset));
  }
};
absl::Status Apply(Schedule& schedule, const StorageAlignStep& step);

// The stride of `axis` (negative counts from the end) becomes the least k * factor + offset, in elements, that holds a
// row. Doing it again for an axis replaces what was said. Refused: a param, a register buffer, the last axis (its
// stride is 1), an offset for an axis that is not the last but one (its stride is a multiple of the one behind it).
absl::Status StorageAlign(Schedule& schedule, BlockRef block, int buffer_index, int axis, int64_t factor,
                          int64_t offset);

}  // namespace hone
