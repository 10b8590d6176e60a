// Affine forms of expressions in chosen variables, and the strides that follow from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// base + sum of coefficient * variable, the coefficients in the order the variables were given; `base` mentions none of
// the variables.
struct LinearForm {
  std::vector<int64_t> coefficients;
  Expr base;
};

// nullopt when e is not affine in the variables with constant coefficients.
std::optional<LinearForm> DetectLinear(const Expr& e, std::span<const Var> vars);

// How much e grows when `var` grows by one; nullopt when that is not one constant. 0 when e does not use it.
std::optional<int64_t> StrideOf(const Expr& e, const Var& var);

// The most elements that the buffer has while its symbolic sizes are in their ranges; nullopt beyond int64.
std::optional<int64_t> MostElements(const Buffer& buffer);

// The row-major place of an element, in elements. Shapes may be symbolic.
Expr FlatIndex(const Buffer& buffer, std::span<const Expr> indices);
// By how many elements the place moves when `var` grows by one; nullopt when that is not one constant.
std::optional<int64_t> ElementStride(const Buffer& buffer, std::span<const Expr> indices, const Var& var);

}  // namespace hone
