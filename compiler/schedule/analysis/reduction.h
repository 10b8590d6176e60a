// What a reduction block does in one step, recognised: x = x OP v, or x = v OP x.
#pragma once

#include <optional>

#include "compiler/ir/stmt.h"

namespace hone {

struct ReductionUpdate {
  BinaryOp op;  // +, *, min or max: they may be done in any order
  Expr value;   // v; it does not read x's buffer
};
// nullopt when the store is not of this form.
std::optional<ReductionUpdate> MatchUpdate(const Store& store);

// Whether a variable of the block that reduces (`reduce`), or one that does not, is made of the loop's variable.
bool IsMadeOf(const BlockRealize& realize, const Var& loop, bool reduce);

bool IsNumber(const Expr& e, int64_t value);  // an integer or a float that is it

}  // namespace hone
