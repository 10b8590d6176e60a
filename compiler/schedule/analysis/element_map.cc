#include "compiler/schedule/analysis/element_map.h"

#include <optional>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"

namespace hone {

absl::StatusOr<ElementMap> ElementMap::Find(const Block& block, const Buffer& buffer, const std::vector<Expr>& at,
                                            const std::string& where) {
  IndexMap map;
  std::vector<Expr> shape;
  for (const IterVar& iter : block.iters) {
    if (!ConstantValue(iter.domain.extent).has_value() || !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " is not [0, a number)");
    map.inputs.push_back(iter.var);
    shape.push_back(iter.domain.extent);
  }
  map.outputs = at;
  absl::StatusOr<InverseMap> inverse = Invert(map, shape);
  bool whole = inverse.ok() && IsConst(inverse->inside, 1);
  for (size_t d = 0; whole && d < inverse->shape.size(); ++d)
    whole = StructuralEqual(buffer.shape()[d], inverse->shape[d]);
  if (!whole) {
    return Refused(where, ": ", block.name, " does not read every element of ", buffer, " exactly once",
                   inverse.ok() ? "" : ": ", inverse.ok() ? absl::string_view() : inverse.status().message());
  }
  return ElementMap(block, *std::move(inverse));
}

Expr ElementMap::At(const std::vector<Expr>& element, const Expr& e, Analyzer& known) const {
  const VarMap indices = [&](const Var& index) -> std::optional<Expr> {
    for (size_t d = 0; d < inverse_.indices.size(); ++d) {
      if (inverse_.indices[d].SameAs(index)) return element[d];
    }
    return std::nullopt;
  };
  return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block_->iters.size(); ++i) {
      if (block_->iters[i].var.SameAs(var))
        return MakeCast(var.type(), known.Simplify(Substitute(inverse_.original[i], indices)));
    }
    return std::nullopt;
  });
}

}  // namespace hone
