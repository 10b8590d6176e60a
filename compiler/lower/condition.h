// Conditions taken apart: what tighten_loops and split_tails know of them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// The parts of a conjunction, left to right.
std::vector<Expr> ConditionParts(const Expr& condition);
Expr JoinCondition(const std::vector<Expr>& parts);

// For a comparison of scalar integers, an expression that is at most 0 exactly when it holds: a < b gives a - b + 1.
// nullopt for anything else, equalities included.
std::optional<Expr> AtMostZero(const Expr& comparison);

// Reads no memory: may be evaluated elsewhere.
bool IsPure(const Expr& e);

}  // namespace hone
