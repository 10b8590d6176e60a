// Whether registers that several loops over threads use are each one thread's own.
#pragma once

#include "compiler/ir/stmt.h"

namespace hone {

// True only when every thread of the launch `nest` reads of `buffer`, memory of one thread, what it wrote itself, all
// loops over an axis being one axis. Along each axis one of two things holds:
//   - An index of the buffer tells the thread's place, in every access the same way:
//       for t: R[b * 8 + t] = ..;  for u: .. = R[b * 8 + u]
//   - No write depends on the place: each thread makes them all, and the sum of a reduction along the axis is stored by
//     each thread.
//       for t: (R[0] += A[t]);  for u: .. = R[0]
bool IsOwnOfEachThread(const Stmt& nest, const Buffer& buffer);

}  // namespace hone
