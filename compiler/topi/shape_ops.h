// Moving elements: nothing is computed. Negative axes count from the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// y.shape[d] = x.shape[permutation[d]]
te::Tensor Transpose(const te::Tensor& x, const std::vector<int64_t>& permutation,
                     const std::string& name = "transpose");
// Row-major order is kept; the sizes are all known (no -1).
te::Tensor Reshape(const te::Tensor& x, const std::vector<int64_t>& shape, const std::string& name = "reshape");
te::Tensor Squeeze(const te::Tensor& x, const std::vector<int64_t>& axes, const std::string& name = "squeeze");
te::Tensor ExpandDims(const te::Tensor& x, const std::vector<int64_t>& axes, const std::string& name = "expand_dims");
te::Tensor Concat(const std::vector<te::Tensor>& parts, int64_t axis, const std::string& name = "concat");
// Parts of one shape, in turn along the axis: element i is element i / n of part i mod n, of n parts.
te::Tensor Interleave(const std::vector<te::Tensor>& parts, int64_t axis, const std::string& name = "interleave");
// Numpy's x[begin:end:step] on the axes named; begins and ends may be negative or out of range, steps negative.
te::Tensor StridedSlice(const te::Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                        const std::vector<int64_t>& step, const std::vector<int64_t>& axes,
                        const std::string& name = "slice");
// Parts of these sizes along `axis`, named NAME_0, NAME_1, ...
std::vector<te::Tensor> Split(const te::Tensor& x, const std::vector<int64_t>& sizes, int64_t axis,
                              const std::string& name = "split");
te::Tensor BroadcastTo(const te::Tensor& x, const std::vector<int64_t>& shape,
                       const std::string& name = "broadcast_to");
te::Tensor Tile(const te::Tensor& x, const std::vector<int64_t>& repeats, const std::string& name = "tile");

enum class PadMode { kConstant, kReflect, kEdge, kWrap };
// before, after: one entry a dimension; negative crops. kReflect does not repeat the border element.
te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
               PadMode mode = PadMode::kConstant, double value = 0, const std::string& name = "pad");

// [N, H, W, C * b * b] -> [N, H * b, W * b, C]. dcr: the channel of the input is (bh, bw, c); else (c, bh, bw).
te::Tensor DepthToSpace(const te::Tensor& x, int64_t block, bool dcr = true,
                        const std::string& name = "depth_to_space");
// The inverse of dcr: [N, H, W, C] -> [N, H / b, W / b, (bh, bw, c)].
te::Tensor SpaceToDepth(const te::Tensor& x, int64_t block, const std::string& name = "space_to_depth");

}  // namespace hone::topi
