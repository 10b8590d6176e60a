// Keys of annotations that more than one folder reads.
#pragma once

#include "compiler/ir/stmt.h"

namespace hone {

// Of a block: [buffer_index, axis, factor, offset, ..], four numbers for each buffer that the block writes and whose
// stride of `axis` is to be k * factor + offset elements. Made by storage_align, honoured by lowering. While lowering,
// of the function: "NAME axis factor offset" for each buffer.
inline constexpr char kStorageAlign[] = "buffer_dim_align";

// Of a function, 1: between two calls the model reads more than a cache holds, so that every call reads its constants
// from memory. Drafts and measurements of its schedules go by that.
inline constexpr char kColdConstants[] = "cold_constants";
inline bool IsColdConstant(const PrimFunc& func, int param) {
  return func.IsConstant(param) && func.attrs.count(kColdConstants) != 0;
}

}  // namespace hone
