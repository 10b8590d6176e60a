// Winograd's minimal filtering for 3x3 convolutions of stride 1, dilated or not (A. Lavin and S. Gray, "Fast Algorithms
// for Convolutional Neural Networks", arXiv 1509.09308): a tile of m x m outputs takes (m + 2)^2 products, not 9 m^2.
//
//   Y[n,h,w,f] += X[n, h+kh, w+kw, c] * W[kh,kw,c,f]      =>      with a = m + 2 and a tile t = (n, h / m, w / m)
//     NAME_input_rows   D[i,l,t,c] = B^T(i) X[.., k, l, c]        a x a numbers of X, transformed down the columns
//     NAME_input        V[i,j,t,c] = D[i,.,t,c] B(j)              and along the rows
//     NAME_product      M[i,j,t,f] += V[i,j,t,c] * U[i,j,c,f]     (m + 2)^2 matrix products
//     NAME_output_rows  R[p,j,t,f] = A^T(p) M[.,j,t,f]
//     NAME              Y[n,h,w,f] = R[h % m,.,t,f] A(w % m)
// With kh and kw dilated by d, every d-th row and column of Y is of those of X alone: as d^2 images (n, h % d, w % d),
// each a convolution that is not dilated. NAME_phases is of them, with t over the tiles of all, and NAME puts them
// together: Y[n,h,w,f] = phases[n, h % d, w % d, h / d, w / d, f].
//
// U = G W G^T is made of the constant W by the prepare function. Which row of a transform an element takes is a
// choice by its index, so that loops over i, j, p, h % m and w % m are meant to be unrolled.
//
// The results differ from those of the sum: about 2 and 10 times the rounding error of the direct form for m = 2 and 4.
//
// Of bytes with sums in int32, m = 2 is exact: with 2 G in place of G every number is an integer, of V at most 4 * 255
// and of U at most 9 * 255, which int16 holds, and the results are four times those of Y, which int32 holds, with all
// that is summed on the way, where channels are not too many (543 of uint8 by int8).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/program.h"

namespace hone {

// A function in which several blocks took the place of one.
struct RewrittenBlock {
  PrimFunc main;
  Prepare prepare;
  std::vector<std::string> blocks;  // in program order
};

// `tile` is m: 2 or 4. Refused: a block that is not such a convolution in float32, or of bytes with m = 2, with
// constant weights, or that is not as the workload has it (a nest of its own, a loop for every iteration variable).
absl::StatusOr<RewrittenBlock> WinogradConvolution(const PrimFunc& func, const ProgramIndex& index, int node, int tile);

}  // namespace hone
