// Loads without which a value cannot be computed.
#pragma once

#include <functional>
#include <map>

#include "compiler/ir/expr.h"

namespace hone {

// Whether some load of which `is` says yes is made whenever the value is computed: none that is masked, nor one for
// which a condition decides whether its value is used. `lets` are the values of variables, which are looked through.
bool NeedsLoad(const Expr& value, const std::map<Var, Expr>& lets, const std::function<bool(const Load&)>& is);

}  // namespace hone
