// From what a tensor function is at some sizes to what it is at all.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan/size_polynomial.h"
#include "compiler/ir/stmt.h"

namespace hone {

struct SymbolicFunction {
  PrimFunc func;
  std::vector<int> sizes;  // which of the sizes are func.dims
};

// `funcs[i]` is an operator's function at fit.points()[i]. They have to be one program but for numbers (extents,
// indices, counts); the result has in each number's place the polynomial over `sizes` that gives it at every point, or
// one divided by it. Params in `fixed` keep the shape that they have at the first point: constants of which smaller
// sizes use a part. FailedPrecondition says where the functions differ, or which number is no polynomial.
absl::StatusOr<SymbolicFunction> GeneraliseFunction(std::span<const PrimFunc* const> funcs, const std::set<int>& fixed,
                                                    std::span<const Var> sizes, PolynomialFit& fit);

}  // namespace hone
