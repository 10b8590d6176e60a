// Keys of annotations that more than one folder reads.
#pragma once

#include "compiler/ir/stmt.h"

namespace hone {

// Of a block: [buffer_index, axis, factor, offset, ..], four numbers for each buffer that the block writes and whose
// stride of `axis` is to be k * factor + offset elements. Made by storage_align, honoured by lowering. While lowering,
// of the function: "NAME axis factor offset" for each buffer.
inline constexpr char kStorageAlign[] = "buffer_dim_align";

// Of a block: [buffer_index, ..], the buffers that it writes to shared memory with the pieces of 16 bytes of each row,
// the last dimension, in an order that puts those of neighbouring rows into different banks. Honoured by lowering for
// threads. While lowering, of the function: the names of such buffers.
inline constexpr char kStorageSwizzle[] = "storage_swizzle";

// Of a block that tensorize makes an operation of a warp: for each operand that it multiplies the intrinsic that loads
// its registers; "": each element by itself.
inline constexpr char kFragmentLoads[] = "fragment_loads";

// Of a block: the numbers of the buffers that it writes past the caches. Made by stream, honoured by lowering. While
// lowering, of the function: the numbers of such params.
inline constexpr char kStreamed[] = "streamed";

// Of a loop that is lowered for threads, as TVM names them: for each statement of its body the stage of a software
// pipeline that it is in (a statement of stage s runs s iterations later), and its place among the statements that run
// together (that in which they stand when absent); the stages whose statements are asynchronous copies.
inline constexpr char kPipelinePrefix[] = "software_pipeline_";
inline constexpr char kPipelineStage[] = "software_pipeline_stage";
inline constexpr char kPipelineOrder[] = "software_pipeline_order";
inline constexpr char kPipelineAsyncStages[] = "software_pipeline_async_stages";
inline constexpr int64_t kMostPipelineStages = 16;

// Of a function, 1: between two calls the model reads more than a cache holds, so that every call reads its constants
// from memory. Drafts and measurements of its schedules go by that.
inline constexpr char kColdConstants[] = "cold_constants";
inline bool IsColdConstant(const PrimFunc& func, int param) {
  return func.IsConstant(param) && func.attrs.count(kColdConstants) != 0;
}
// Likewise the numbers of the params that are outputs of such a model: what it writes there goes to memory in the end.
inline constexpr char kColdOutputs[] = "cold_outputs";
inline bool IsColdOutput(const PrimFunc& func, int param) { return func.IsListed(kColdOutputs, param); }

inline bool IsCold(const PrimFunc& func, int param) { return IsColdConstant(func, param) || IsColdOutput(func, param); }

}  // namespace hone
