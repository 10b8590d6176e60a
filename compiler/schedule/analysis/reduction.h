// What a reduction block does in one step, recognised: x = x OP v, or x = v OP x, for one element or several at once.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

struct ReductionUpdate {
  BinaryOp op;  // +, *, min or max: they may be done in any order
  Expr value;   // v; it does not read x's buffer
};
// nullopt when the store is not of this form.
std::optional<ReductionUpdate> MatchUpdate(const Store& store);

// argmax and argmin: of two tuples the one with the greater (else the lesser) value stays, and of equal values the one
// with the higher index (`last`), else with the lower one. So any order of the tuples gives the same.
struct Ranking {
  size_t value = 0, index = 1;  // which parts of the tuple
  bool greatest = true, last = false;
};

// A reduction to a tuple of elements, each of a buffer of its own: one, several that do not depend on one another, or
// the two of a ranking.
struct BlockReduction {
  std::vector<Store> elements;  // buffers and indices alone
  std::vector<Expr> starts;     // what the init sets
  std::vector<Expr> terms;      // v; they read none of the buffers. Lets are put in.
  std::vector<BinaryOp> ops;    // one for each element; none with a ranking
  std::optional<Ranking> ranking;

  // Whether it does no harm to begin part `i` from its start twice.
  bool StartCountsOnce(size_t i) const;
  // Sets the elements at `at` of `buffers`, one for each part, to what they are combined with `terms`. Everything is
  // computed from the old elements.
  Stmt Update(const std::vector<Buffer>& buffers, const std::vector<std::vector<Expr>>& at,
              const std::vector<Expr>& terms) const;
};
// Takes bodies of lets, then stores without masks. Refused says in the words after "the update of block X " why the
// block is no such reduction.
absl::StatusOr<BlockReduction> MatchReduction(const Block& block);

// Whether a variable of the block that reduces (`reduce`), or one that does not, is made of the loop's variable.
bool IsMadeOf(const BlockRealize& realize, const Var& loop, bool reduce);

bool IsNumber(const Expr& e, int64_t value);  // an integer or a float that is it

}  // namespace hone
