// Blocks that minimal filtering computes too (minimal_filtering.h): windows of 3x3 taps.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone::error_analysis {

// The iteration variables of one dimension of a window, by their places in the block, and how far apart the taps are.
struct WindowAxis {
  size_t output = 0, tap = 0;
  int64_t dilation = 1;
};

// y += x * weights over 3x3 taps, in float32, with constant weights: what minimal filtering computes too.
struct FilterWindow {
  std::vector<IterVar> iters;
  Buffer x, weights, y;
  std::vector<Expr> x_indices, weights_indices, y_indices;
  WindowAxis rows, columns;

  int64_t extent(size_t iter) const { return *ConstantValue(iters[iter].domain.extent); }
  const Var& var(size_t iter) const { return iters[iter].var; }
  size_t PlaceOf(const Var& var) const;  // among `iters`; their number where it is none of them
};

// nullopt for a block that is no such window, or not one in every instance.
std::optional<FilterWindow> MatchFilterWindow(const PrimFunc& func, const BlockRealize& realize);

}  // namespace hone::error_analysis
