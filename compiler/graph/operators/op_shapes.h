// Shape functions that many operators share, for their OpInfo.
#pragma once

#include <functional>
#include <string_view>

#include "compiler/graph/op_groups.h"

namespace hone {

// An element-wise function of floating-point elements.
OpInfo FloatFunction(std::string_view name, std::function<Expr(const Expr&)> f);
// An element-wise function of two operands of one integer type, which broadcast.
OpInfo IntFunction2(std::string_view name, std::function<Expr(const Expr&, const Expr&)> f);

}  // namespace hone
