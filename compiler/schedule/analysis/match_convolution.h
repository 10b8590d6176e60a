// Whether a block is a convolution with windows of 3x3 and stride 1, and what its buffers and variables are in it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// y[y_indices] += x[.. h + kh * dilation_h + base_h, .. w + kw * dilation_w + base_w, c ..] * w[kh, kw, c, f], from 0.
struct WindowConvolution {
  Buffer x, w, y;
  int param = 0;                // of w
  std::vector<Expr> y_indices;  // over the block's iteration variables
  std::vector<IterVar> iters;
  // Iteration variables; batch: -1 when there is none.
  int batch = -1, h = -1, w_out = -1, f = -1, kh = -1, kw = -1, c = -1;
  int x_h = -1, x_w = -1, x_c = -1, x_batch = -1;  // dimensions of x
  int64_t dilation_h = 1, dilation_w = 1;          // x is read at h + kh * dilation_h + base_h and the same for w
  Expr base_h, base_w;
  int w_kh = -1, w_kw = -1, w_c = -1, w_f = -1;  // dimensions of w

  bool of_integers() const { return y.type() == kInt32; }
  const Var& var(int iter) const { return iters[static_cast<size_t>(iter)].var; }
  int64_t extent(int iter) const {
    return iter < 0 ? 1 : *ConstantValue(iters[static_cast<size_t>(iter)].domain.extent);
  }
};

// Refused: a block that is not such a convolution in float32, or of bytes with sums in int32, with constant weights, or
// whose domain or input is symbolic. Dimensions may lie in any order.
absl::StatusOr<WindowConvolution> MatchConvolution(const PrimFunc& func, const Block& block);

}  // namespace hone
