// Reductions over some axes. Negative axes count from the end; no axes means all of them; with `keepdims` a reduced
// dimension stays with size 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

using Axes = std::vector<int64_t>;

te::Tensor ReduceSum(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "sum");
te::Tensor ReduceMax(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "max");
te::Tensor ReduceMin(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "min");
te::Tensor ReduceProd(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "prod");
// Two blocks: NAME_sum, then NAME = NAME_sum / count.
te::Tensor ReduceMean(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "mean");
te::Tensor ReduceL1(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "l1");
te::Tensor ReduceL2(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "l2");
te::Tensor ReduceSumSquare(const te::Tensor& x, const Axes& axes, bool keepdims,
                           const std::string& name = "sum_square");
// log(sum(exp(x))), with the maximum taken out first.
te::Tensor ReduceLogSumExp(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name = "logsumexp");

// The index (int64) of the greatest (least) value along one axis: the first of equal ones, or the last.
te::Tensor ArgMax(const te::Tensor& x, int64_t axis, bool keepdims, bool select_last = false,
                  const std::string& name = "argmax");
te::Tensor ArgMin(const te::Tensor& x, int64_t axis, bool keepdims, bool select_last = false,
                  const std::string& name = "argmin");

// Running sum along an axis: y[i] = sum of x[k] for k <= i (k < i with `exclusive`; from the other end with `reverse`).
te::Tensor CumSum(const te::Tensor& x, int64_t axis, bool exclusive = false, bool reverse = false,
                  const std::string& name = "cumsum");

// The k greatest (least) elements along an axis in order, and their indices (int64); of equal ones the lower index
// first.
struct TopKResult {
  te::Tensor values, indices;
};
TopKResult TopK(const te::Tensor& x, int64_t k, int64_t axis, bool largest = true, const std::string& name = "topk");

}  // namespace hone::topi
