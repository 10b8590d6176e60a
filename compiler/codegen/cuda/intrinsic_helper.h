// The helpers of CUDA C++ for tile intrinsics, from their records: what the 32 lanes of a warp execute together,
// mma.sync and ldmatrix, and the asynchronous copies of a thread, cp.async.
#pragma once

#include <string>

#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// A helper of the intrinsic's name that takes pointers to the first elements of its operands: mma.sync for a product
// C[m, n] += A[m, k] * B[k, n], and the instruction that the record names for a load of matrices or a copy; a copy also
// takes how many bytes are read, zeros taking the place of the others. Sizes, types and numbers of registers are those
// of the record. "" for other operations.
//   mma_m16n8k16_bf16bf16_f32(float* c, const unsigned short* a, const unsigned short* b)
//   ldmatrix_x4_bf16(unsigned short* d, const unsigned short* row)
//   copy_async_16(void* to, const void* from, int bytes)
std::string IntrinsicHelper(const TileIntrinsic& intrinsic);

}  // namespace hone
