// A block that reads (or writes) every element of a buffer exactly once: its iteration variables as functions of the
// element.
//   for i, j: .. = B[j, i]     the element B[x, y] is read where i = y, j = x
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/analysis/index_map.h"

namespace hone {

class ElementMap {
 public:
  // `at`: where the block reads or writes `buffer`. Refused when that is not every element exactly once; the message
  // begins with `where`. `block` must outlive the result.
  static absl::StatusOr<ElementMap> Find(const Block& block, const Buffer& buffer, const std::vector<Expr>& at,
                                         const std::string& where);

  // What the block says for the element of these indices: `e` with its variables replaced.
  Expr At(const std::vector<Expr>& element, const Expr& e, Analyzer& known) const;

 private:
  ElementMap(const Block& block, InverseMap inverse) : block_(&block), inverse_(std::move(inverse)) {}

  const Block* block_;
  InverseMap inverse_;
};

}  // namespace hone
