// Matrix products. Sums are of the type that product.h says: int32 where the operands are integers of 8 or 16
// bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// x [M..., K], w [K, N] -> [M..., N] (weights [N, K] with transpose_w):  y[m, n] = sum_k x[m, k] * w[k, n].
// Leading dimensions of x are kept.
te::Tensor Dense(const te::Tensor& x, const te::Tensor& w, bool transpose_w = false, const std::string& name = "dense");

// a [..., M, K], b [..., K, N] -> [..., M, N]; leading dimensions broadcast against each other as numpy's do. With
// transpose_a its last two dimensions are [K, M], with transpose_b [N, K].
te::Tensor BatchMatmul(const te::Tensor& a, const te::Tensor& b, bool transpose_a = false, bool transpose_b = false,
                       const std::string& name = "batch_matmul");

// The same of tensors whose dimensions lie in memory in another order: dimension d of the matrices is dimension
// order[d] of the tensor. a is [..., M, K], b [..., K, N], the result [..., M, N] once put in order.
te::Tensor BatchMatmulInOrder(const te::Tensor& a, const std::vector<int64_t>& a_order, const te::Tensor& b,
                              const std::vector<int64_t>& b_order, const std::vector<int64_t>& result_order,
                              const std::string& name = "batch_matmul");

// numpy's matmul: ranks 1 and above; a vector is a row on the left, a column on the right, and its dimension vanishes.
te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b, const std::string& name = "matmul");

}  // namespace hone::topi
