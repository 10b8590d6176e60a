#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/tile_condition.h"

namespace hone {
namespace {

// The condition under which an expression takes its first side; absent: it has none.
Expr ConditionOf(const Expr& e) {
  if (const IfThenElseExpr* chosen = e.As<IfThenElseExpr>()) return chosen->condition;
  const Select* select = e.As<Select>();
  return select != nullptr ? select->condition : Expr();
}

// Whether no store of a tile is left out; of its versions for an edge, the whole one counts.
bool IsWhole(const Stmt& stmt) {
  if (const IfThen* branch = stmt.As<IfThen>())
    return branch->no ? IsWhole(branch->yes) : StoresOfTile(branch->yes) == 0;
  bool whole = true;
  ForEachChild(
      stmt, [&](const Stmt& s) { whole = whole && IsWhole(s); }, [](const Expr&) {});
  return whole;
}

// Walks a tile and rewrites the parts of conditions inside its expressions.
class TileWalk {
 public:
  explicit TileWalk(Analyzer& known) : known_(known) {}

  // `by` gives what takes the place of a part; the part itself where nothing does.
  using Part = std::function<Expr(const Expr& part, const TileCondition& condition)>;

  Stmt Map(const Stmt& stmt, const Part& by) {
    if (const For* loop = stmt.As<For>()) {
      const std::optional<int64_t> min = ConstantValue(loop->min), extent = ConstantValue(loop->extent);
      if (min.has_value() && extent.value_or(0) > 0) {
        loops_.ranges[loop->var] = {*min, *extent};
      } else {
        loops_.hidden.insert(loop->var);
      }
    }
    if (const Let* let = stmt.As<Let>()) loops_.hidden.insert(let->var);
    return MapChildren(
        stmt, [&](const Stmt& s) { return Map(s, by); }, [&](const Expr& e) { return MapExpr(e, by); });
  }

 private:
  Expr MapExpr(const Expr& root, const Part& by) {
    ForEachExpr(root, [&](const Expr& e) {
      if (const LetExpr* let = e.As<LetExpr>()) loops_.hidden.insert(let->var);
      return true;
    });
    return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
      const Expr condition = ConditionOf(e);
      if (!condition) return std::nullopt;
      std::vector<Expr> parts = Conjuncts(condition);
      bool changed = false;
      for (Expr& part : parts) {
        const std::optional<TileCondition> read = ReadTileCondition(part, loops_, known_);
        if (!read.has_value()) continue;
        const Expr replaced = by(part, *read);
        changed |= !replaced.SameAs(part);
        part = replaced;
      }
      if (!changed) return std::nullopt;
      const Expr rest = Conjunction(parts);
      if (const IfThenElseExpr* chosen = e.As<IfThenElseExpr>())
        return IsConst(rest, 1) ? chosen->yes : IfThenElse(rest, chosen->yes, chosen->no);
      const Select* select = e.As<Select>();
      return IsConst(rest, 1) ? select->yes : MakeSelect(rest, select->yes, select->no);
    });
  }

  Analyzer& known_;
  TileLoops loops_;
};

class SplitBordersOf {
 public:
  Stmt Visit(const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>(); alloc != nullptr && alloc->buffer.scope() == Scope::kRegister)
      return Split(stmt);
    const ConstraintScope inside(known_, True());
    if (const For* loop = stmt.As<For>()) known_.Bind(loop->var, Range{loop->min, loop->extent});
    if (const IfThen* branch = stmt.As<IfThen>()) {
      const auto under = [&](const Expr& condition, const Stmt& s) {
        const ConstraintScope holds(known_, LastingPart(condition));
        return Visit(s);
      };
      return Stmt::Make(
          IfThen{branch->condition, under(branch->condition, branch->yes), branch->no ? Visit(branch->no) : Stmt()});
    }
    return MapChildren(
        stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
  }

 private:
  static constexpr int64_t kMostCopies = 1024;  // stores of the unrolled tile

  // The smallest part of the tile that has conditions becomes two; of a tile that is cut off at the edge of the loops
  // that are whole (split_tails.cc), the whole one.
  Stmt Split(const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>()) return Stmt::Make(Alloc{alloc->buffer, Split(alloc->body)});
    if (const IfThen* branch = stmt.As<IfThen>()) {
      // Both sides are the whole tile where one does something beside it, such as to ask for the next panel.
      const bool both = branch->no && IsWhole(branch->no) && StoresOfTile(branch->no) == StoresOfTile(branch->yes);
      const Stmt no = both ? Split(branch->no) : branch->no;
      const ConstraintScope holds(known_, LastingPart(branch->condition));
      return Stmt::Make(IfThen{branch->condition, Split(branch->yes), no});
    }
    if (const Seq* seq = stmt.As<Seq>()) {
      size_t first = seq->stmts.size(), last = 0;
      for (size_t i = 0; i < seq->stmts.size(); ++i) {
        if (BordersOf(seq->stmts[i]).empty()) continue;
        first = std::min(first, i);
        last = i;
      }
      if (first == seq->stmts.size()) return stmt;
      std::vector<Stmt> parts(seq->stmts.begin(), seq->stmts.begin() + static_cast<int64_t>(first));
      const std::vector<Stmt> own(seq->stmts.begin() + static_cast<int64_t>(first),
                                  seq->stmts.begin() + static_cast<int64_t>(last) + 1);
      parts.push_back(own.size() == 1 ? Split(own[0]) : Versions(MakeSeq(own)));
      parts.insert(parts.end(), seq->stmts.begin() + static_cast<int64_t>(last) + 1, seq->stmts.end());
      return MakeSeq(std::move(parts));
    }
    return Versions(stmt);
  }

  Stmt Versions(const Stmt& stmt) {
    const std::vector<TileCondition> borders = BordersOf(stmt);
    if (borders.empty() || StoresOfTile(stmt) > kMostCopies) return stmt;
    std::vector<Expr> full;
    for (const TileCondition& border : borders) full.push_back(known_.Simplify(border.outer + Expr(border.most) <= 0));
    const Stmt inner = TileWalk(known_).Map(stmt, [&](const Expr& part, const TileCondition& condition) {
      return std::ranges::any_of(borders, [&](const TileCondition& b) { return SameOuter(b, condition); }) ? True()
                                                                                                           : part;
    });
    return Stmt::Make(IfThen{Conjunction(full), RenewDefinitions(inner), stmt});
  }

  // One for each outer part, with the most that the tile adds to it; none that no tile is inside of.
  std::vector<TileCondition> BordersOf(const Stmt& stmt) {
    std::vector<TileCondition> found;
    TileWalk(known_).Map(stmt, [&](const Expr& part, const TileCondition& condition) {
      const auto known =
          std::ranges::find_if(found, [&](const TileCondition& other) { return SameOuter(other, condition); });
      if (known == found.end()) {
        found.push_back(condition);
      } else {
        known->most = std::max(known->most, condition.most);
      }
      return part;
    });
    std::erase_if(found, [&](const TileCondition& c) { return known_.CanProve(c.outer + Expr(c.most) > 0); });
    return found;
  }

  Analyzer known_;
};

}  // namespace

Stmt SplitBorders(const Stmt& body) { return SplitBordersOf().Visit(body); }

}  // namespace hone
