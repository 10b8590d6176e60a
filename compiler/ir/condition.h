// Conditions taken apart and put together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// The parts of a conjunction, left to right; none for True and for an absent condition.
std::vector<Expr> Conjuncts(const Expr& condition);
// The conjunction of the parts; True for none.
Expr Conjunction(std::span<const Expr> parts);

// What of a statement's condition holds in all that runs under it: the parts that read no memory, which may be written
// there.
Expr LastingPart(const Expr& condition);

// For a comparison of scalar integers, an expression that is at most 0 exactly when it holds: a < b gives a - b + 1.
// nullopt for anything else, equalities included.
std::optional<Expr> AtMostZero(const Expr& comparison);

// Reads no memory: may be evaluated elsewhere.
bool IsPure(const Expr& e);

}  // namespace hone
