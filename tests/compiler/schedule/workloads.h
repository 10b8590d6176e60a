// Small workloads for schedule tests, of any size: odd, prime and unit ones included.
#pragma once

#include "compiler/ir/stmt.h"

namespace hone::testing {

// C = A x B, block "C".
PrimFunc Matmul(int64_t m, int64_t n, int64_t k);
// C = relu(A x B + bias), blocks "C", "D"; B (param 1) and bias (param 2) are constants.
PrimFunc DenseRelu(int64_t m, int64_t n, int64_t k);

struct ConvShape {
  int64_t height, width, in, out, kernel = 3, stride = 1, padding = 1;
};
// NHWC: blocks "pad", "conv", "out" (bias + residual + relu); params data, weight (HWIO, constant), bias (constant),
// residual, result.
PrimFunc ConvBiasResidualRelu(const ConvShape& shape);

// Blocks "B" and "C": B = A * 2, C = B + 1.
PrimFunc TwoElementwise(int64_t n, int64_t m);
// Blocks "up" (A * 2), "t" (transposed, + B), "out" (t * t, then - up).
PrimFunc ThreeStages(int64_t n, int64_t m);
// Blocks "max", "exp", "sum", "softmax" over rows.
PrimFunc Softmax(int64_t n, int64_t m);
// Blocks "up" (A * 3), "blur" (the sum of `taps` neighbours), "out" (blur - A).
PrimFunc Blur(int64_t n, int64_t taps);

}  // namespace hone::testing
