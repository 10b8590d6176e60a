// Instructions that the 32 lanes of a warp execute together, from the records of their intrinsics: mma.sync, ldmatrix.
#pragma once

#include <string>

#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// A helper of the intrinsic's name that takes pointers to the first registers of its operands: mma.sync for a product
// C[m, n] += A[m, k] * B[k, n], and the instruction that the record names for a load of matrices. Sizes, types and
// numbers of registers are those of the record. "" for other operations.
//   mma_m16n8k16_bf16bf16_f32(float* c, const unsigned short* a, const unsigned short* b)
//   ldmatrix_x4_bf16(unsigned short* d, const unsigned short* row)
std::string WarpOperation(const TileIntrinsic& intrinsic);

}  // namespace hone
