// Reading and writing at indices that are data, and tensors made from indices.
//
// Indices are int32 or int64; a negative one counts from the end. One outside [-size, size) is the caller's fault: the
// value domains of the task ("domains", see ir/stmt.h) keep it inside when candidates are verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// ONNX Gather, numpy's take: y[before, i..., after] = x[before, indices[i...], after]
te::Tensor Gather(const te::Tensor& x, const te::Tensor& indices, int64_t axis, const std::string& name = "gather");
// y[i...] = x[i... with indices[i...] at `axis`]; y has the shape of the indices.
te::Tensor GatherElements(const te::Tensor& x, const te::Tensor& indices, int64_t axis,
                          const std::string& name = "gather_elements");
// indices [B..., I..., K]: y[b..., i..., rest] = x[b..., indices[b..., i..., :], rest]; `batch_dims` is the number of
// b's.
te::Tensor GatherNd(const te::Tensor& x, const te::Tensor& indices, int64_t batch_dims = 0,
                    const std::string& name = "gather_nd");

enum class ScatterMode { kReplace, kAdd, kMul, kMin, kMax };
// indices [I..., K], updates [I..., x.shape[K:]]: a copy of x in which x[indices[i...], :] is replaced by (combined
// with) updates[i...]. Each element looks at all index tuples: meant for few of them.
te::Tensor ScatterNd(const te::Tensor& x, const te::Tensor& indices, const te::Tensor& updates,
                     ScatterMode mode = ScatterMode::kReplace, const std::string& name = "scatter_nd");
// updates and indices of one shape: x[i... with indices[i...] at `axis`] is replaced by (combined with) updates[i...].
te::Tensor ScatterElements(const te::Tensor& x, const te::Tensor& indices, const te::Tensor& updates, int64_t axis,
                           ScatterMode mode = ScatterMode::kReplace, const std::string& name = "scatter_elements");

// A new axis of size `depth`: on_value where it equals the index (negative counts from the end), else off_value.
// `values` [2] = {off, on} gives the type.
te::Tensor OneHot(const te::Tensor& indices, int64_t depth, const te::Tensor& values, int64_t axis = -1,
                  const std::string& name = "one_hot");
// The upper (lower) triangle of the last two dimensions, diagonal k; the rest 0.
te::Tensor Trilu(const te::Tensor& x, bool upper, int64_t k = 0, const std::string& name = "trilu");
// start, start + step, ...: `count` of them.
te::Tensor Arange(double start, double step, int64_t count, DType dtype, const std::string& name = "arange");
te::Tensor Full(const std::vector<int64_t>& shape, double value, DType dtype, const std::string& name = "full");

}  // namespace hone::topi
