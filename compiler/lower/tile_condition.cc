#include "compiler/lower/tile_condition.h"

#include <algorithm>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"

namespace hone {

bool SameOuter(const TileCondition& a, const TileCondition& b) { return StructuralEqual(a.outer, b.outer); }

std::optional<TileCondition> ReadTileCondition(const Expr& condition, const TileLoops& loops, Analyzer& known) {
  if (!IsPure(condition)) return std::nullopt;
  const std::optional<Expr> value = AtMostZero(condition);
  if (!value.has_value()) return std::nullopt;
  std::vector<Var> inner;
  bool any_outer = false;
  for (const Var& v : FreeVars(*value)) {
    if (loops.hidden.count(v) != 0) return std::nullopt;
    if (loops.ranges.count(v) != 0) {
      inner.push_back(v);
    } else {
      any_outer = true;
    }
  }
  if (!any_outer) return std::nullopt;
  const std::optional<LinearForm> form = DetectLinear(*value, inner);
  if (!form.has_value()) return std::nullopt;
  TileCondition found{known.Simplify(form->base)};
  for (size_t i = 0; i < inner.size(); ++i) {
    const auto& [min, extent] = loops.ranges.at(inner[i]);
    const int64_t a = form->coefficients[i] * min, b = form->coefficients[i] * (min + extent - 1);
    found.least += std::min(a, b);
    found.most += std::max(a, b);
  }
  return found;
}

int64_t StoresOfTile(const Stmt& stmt) {
  if (stmt.As<Store>() != nullptr) return 1;
  int64_t sum = 0;
  ForEachChild(
      stmt, [&](const Stmt& s) { sum += StoresOfTile(s); }, [](const Expr&) {});
  const For* loop = stmt.As<For>();
  if (loop != nullptr && loop->kind == ForKind::kUnrolled) sum *= ConstantValue(loop->extent).value_or(1);
  return sum;
}

}  // namespace hone
