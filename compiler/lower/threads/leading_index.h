// Buffers that get a dimension in front: versions of a pipeline, instances of warps.
#pragma once

#include <functional>
#include <map>

#include "compiler/ir/stmt.h"

namespace hone {

// The statement with `grown` in the place of the buffers that are its keys, at `first(the new buffer)` of its first
// dimension. Allocations stay as they are; there are no blocks.
//   S[i]  =>  S[first, i]
Stmt WithLeadingIndex(const Stmt& stmt, const std::map<Buffer, Buffer>& grown,
                      const std::function<Expr(const Buffer&)>& first);

}  // namespace hone
