#include "compiler/lower/loops/lane_conditions.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/tile_condition.h"

namespace hone {
namespace {

// Rewrites the body of a vectorised loop, whose lanes are the tile.
class LaneWalk {
 public:
  LaneWalk(const Var& var, int64_t lanes, Analyzer& known) : var_(var), known_(known) {
    lanes_.ranges[var] = {0, lanes};
  }
  const std::vector<Expr>& taken() const { return taken_; }

  Stmt Map(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) lanes_.hidden.insert(loop->var);
    if (const Let* let = stmt.As<Let>()) lanes_.hidden.insert(let->var);
    if (const IfThen* branch = stmt.As<IfThen>()) {
      const Expr rest = RestOf(branch->condition);
      if (IsConst(rest, 1)) return Map(branch->yes);
      return Stmt::Make(IfThen{rest, Map(branch->yes), branch->no ? Map(branch->no) : Stmt()});
    }
    return MapChildren(
        stmt, [&](const Stmt& s) { return Map(s); }, [&](const Expr& e) { return MapExpr(e); });
  }

 private:
  Expr MapExpr(const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (const LetExpr* let = e.As<LetExpr>()) lanes_.hidden.insert(let->var);
      return true;
    });
    return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
      const IfThenElseExpr* choice = e.As<IfThenElseExpr>();
      if (choice == nullptr) return std::nullopt;
      const Expr rest = RestOf(choice->condition);
      return IsConst(rest, 1) ? choice->yes : IfThenElse(rest, choice->yes, choice->no);
    });
  }

  // The condition without the parts that are taken out.
  Expr RestOf(const Expr& condition) {
    std::vector<Expr> rest;
    for (const Expr& part : Conjuncts(condition)) {
      const std::optional<TileCondition> read =
          UsesVar(part, var_) ? ReadTileCondition(part, lanes_, known_) : std::nullopt;
      if (read.has_value()) {
        taken_.push_back(known_.Simplify(read->outer + Expr(read->most) <= 0));
      } else {
        rest.push_back(part);
      }
    }
    return Conjunction(rest);
  }

  Var var_;
  Analyzer& known_;
  TileLoops lanes_;
  std::vector<Expr> taken_;  // each holds when its part does in all lanes
};

}  // namespace

std::optional<WholeLanes> TakeOutConditions(const For& loop, Analyzer& known) {
  // The variable counts lanes from 0 while conditions are read.
  const Var lane(loop.var.name(), loop.var.type());
  LaneWalk walk(lane, ConstantValue(loop.extent).value(), known);
  const Stmt whole = walk.Map(Substitute(loop.body, loop.var, loop.min + lane));
  if (walk.taken().empty()) return std::nullopt;
  For out = loop;
  out.var = lane;
  out.min = IntConst(0, lane.type());
  out.body = whole;
  return WholeLanes{known.Simplify(Conjunction(walk.taken())), std::move(out)};
}

std::optional<int> NarrowestMasked(const Stmt& vectors) {
  std::optional<int> narrowest;
  const auto see = [&](const Buffer& buffer, const Expr& index, const Expr& mask) {
    if (!mask || index.type().is_scalar() || buffer.scope() == Scope::kRegister) return;
    narrowest = std::min<int>(narrowest.value_or(buffer.type().bits), buffer.type().bits);
  };
  ForEachStmt(vectors, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) see(store->buffer, store->indices[0], store->mask);
    return true;
  });
  ForEachExpr(vectors, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) see(load->buffer, load->indices[0], load->mask);
    return true;
  });
  return narrowest;
}

}  // namespace hone
