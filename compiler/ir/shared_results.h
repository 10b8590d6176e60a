// What became of expressions that stand in several places of one program: worked out once, and shared again by the
// result. A transform of Winograd's reads each element in several of its rows; without this, every rewrite would make a
// copy of the element for each.
#pragma once

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/expr.h"

namespace hone {

class SharedResults {
 public:
  // Whether several handles hold the node, so that it may stand in several places.
  static bool Applies(const Expr& e) { return e.node().count.load(std::memory_order_relaxed) > 1; }

  const Expr* Find(const Expr& e) const {
    const auto found = results_.find(&e.node());
    return found == results_.end() ? nullptr : &found->second.second;
  }
  void Keep(const Expr& e, const Expr& result) { results_.insert({&e.node(), {e, result}}); }

  // compute(), or what it was for the same node before. For as long as compute depends on the node alone.
  template <class Compute>
  Expr Of(const Expr& e, const Compute& compute) {
    if (!Applies(e)) return compute();
    if (const Expr* found = Find(e)) return *found;
    Expr result = compute();
    Keep(e, result);
    return result;
  }

 private:
  absl::flat_hash_map<const ExprNode*, std::pair<Expr, Expr>> results_;  // the first of the pair keeps the node alive
};

}  // namespace hone
