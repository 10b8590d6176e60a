#include <set>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// Conditions of the form outer + inner <= 0: `outer` is known once a tile, `inner` is a sum over the unrolled and
// vectorised loops of the tile, which takes values between `least` and `most`.
struct TailCondition {
  Expr outer;
  int64_t least = 0, most = 0;
  friend bool operator==(const TailCondition& a, const TailCondition& b) {
    return a.least == b.least && a.most == b.most && StructuralEqual(a.outer, b.outer);
  }
};

bool IsTileLoop(const For& loop) { return loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized; }

// Walks a tile's body and knows which loops it is inside of.
class Tile {
 public:
  explicit Tile(Analyzer& known) : known_(known) {}

  // The condition as seen at this place of the walk; nullopt when it has another form, or nothing would be gained.
  std::optional<TailCondition> Read(const Expr& part) {
    if (loops_ == 0 || !IsPure(part)) return std::nullopt;
    const std::optional<Expr> value = AtMostZero(part);
    if (!value.has_value()) return std::nullopt;
    std::vector<Var> tile_vars;
    bool any_outer = false;
    for (const Var& v : FreeVars(*value)) {
      if (hidden_.count(v) != 0) return std::nullopt;  // changes inside the tile, but not by unrolling
      if (tile_.count(v) != 0) {
        tile_vars.push_back(v);
      } else {
        any_outer = true;
      }
    }
    if (!any_outer) return std::nullopt;  // decided when the loops are unrolled
    const std::optional<LinearForm> form = DetectLinear(*value, tile_vars);
    if (!form.has_value()) return std::nullopt;
    TailCondition condition{known_.Simplify(form->base)};
    for (size_t i = 0; i < tile_vars.size(); ++i) {
      const auto& [min, extent] = tile_.at(tile_vars[i]);
      const int64_t a = form->coefficients[i] * min, b = form->coefficients[i] * (min + extent - 1);
      condition.least += std::min(a, b);
      condition.most += std::max(a, b);
    }
    return condition;
  }

  // Calls `on_branch` for every IfThen with the walk's state set for Read.
  template <class OnBranch>
  Stmt Map(const Stmt& stmt, const OnBranch& on_branch) {
    const auto child = [&](const Stmt& s) { return Map(s, on_branch); };
    const auto same = [](const Expr& e) { return e; };
    if (const For* loop = stmt.As<For>()) {
      const std::optional<int64_t> min = ConstantValue(loop->min), extent = ConstantValue(loop->extent);
      if (IsTileLoop(*loop) && min.has_value() && extent.has_value()) {
        tile_[loop->var] = {*min, *extent};
      } else {
        hidden_.insert(loop->var);
      }
      ++loops_;
      const Stmt mapped = MapChildren(stmt, child, same);
      --loops_;
      return mapped;
    }
    if (const Let* let = stmt.As<Let>()) hidden_.insert(let->var);
    if (const IfThen* branch = stmt.As<IfThen>()) {
      if (std::optional<Stmt> replaced = on_branch(*branch)) return child(*replaced);
    }
    return MapChildren(stmt, child, same);
  }

 private:
  Analyzer& known_;
  std::map<Var, std::pair<int64_t, int64_t>> tile_;
  std::set<Var> hidden_;
  int loops_ = 0;
};

class SplitTile {
 public:
  Stmt Visit(const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    if (loop == nullptr)
      return MapChildren(
          stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
    const ConstraintScope inside(known_, True());  // that the loop runs at all is known inside it alone
    known_.Bind(loop->var, Range{loop->min, loop->extent});
    if (IsTileLoop(*loop))
      return MapChildren(
          stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
    For changed = *loop;
    changed.body = Split(loop->body, kMostConditions);
    return Stmt::Make(std::move(changed));
  }

 private:
  static constexpr int kMostConditions = 2;     // each multiplies the code by up to three
  static constexpr int64_t kMostCopies = 1024;  // stores of the unrolled tile

  Stmt Split(const Stmt& stmt, int conditions) {
    std::optional<TailCondition> found;
    if (conditions > 0 && Copies(stmt) <= kMostCopies) found = FirstCondition(stmt);
    if (!found.has_value()) return Visit(stmt);
    // The smallest part with all occurrences; allocations around it stay shared by the versions.
    if (const Seq* seq = stmt.As<Seq>()) {
      size_t first = seq->stmts.size(), last = 0;
      for (size_t i = 0; i < seq->stmts.size(); ++i) {
        if (!Occurs(seq->stmts[i], *found)) continue;
        first = std::min(first, i);
        last = i;
      }
      if (first > 0 || last + 1 < seq->stmts.size()) {
        std::vector<Stmt> out;
        for (size_t i = 0; i < first; ++i) out.push_back(Split(seq->stmts[i], conditions));
        out.push_back(Split(MakeSeq({seq->stmts.begin() + first, seq->stmts.begin() + last + 1}), conditions));
        for (size_t i = last + 1; i < seq->stmts.size(); ++i) out.push_back(Split(seq->stmts[i], conditions));
        return MakeSeq(std::move(out));
      }
    }
    if (const Alloc* alloc = stmt.As<Alloc>()) return Stmt::Make(Alloc{alloc->buffer, Split(alloc->body, conditions)});
    return Versions(stmt, *found, conditions);
  }

  Stmt Versions(const Stmt& stmt, const TailCondition& c, int conditions) {
    const auto version = [&](const std::function<Expr(const Expr&)>& part) {
      return Split(RenewDefinitions(Replace(stmt, c, part)), conditions - 1);
    };
    const Expr full = known_.Simplify(c.outer + Expr(c.most) <= 0);
    const Expr any = known_.Simplify(c.outer + Expr(c.least) <= 0);
    const Stmt always = version([](const Expr&) { return True(); });
    if (IsConst(full, 1)) return always;
    Stmt edge;
    if (const std::optional<int64_t> value = OnlyPartial(c)) {
      edge =
          version([&](const Expr& part) { return known_.Simplify(*AtMostZero(part) - c.outer + Expr(*value)) <= 0; });
    } else if (c.least != c.most) {
      edge = version([](const Expr& part) { return part; });
    }
    const Stmt none = Visit(RenewDefinitions(Replace(stmt, c, [](const Expr&) { return IntConst(0, kBool); })));
    const bool empty = none.As<Seq>() != nullptr && none.As<Seq>()->stmts.empty();
    if (!edge) return Stmt::Make(IfThen{full, always, empty ? Stmt() : none});
    if (!IsConst(any, 1)) edge = Stmt::Make(IfThen{any, edge, empty ? Stmt() : none});
    return Stmt::Make(IfThen{full, always, edge});
  }

  // The value of `outer` where the condition holds for a part of the tile, if it can be but one.
  std::optional<int64_t> OnlyPartial(const TailCondition& c) {
    const Analyzer::Residue residue = known_.ResidueOf(c.outer);
    const Bounds bounds = known_.ConstBounds(c.outer);
    const int64_t low = std::max(bounds.min, -c.most + 1), high = std::min(bounds.max, -c.least);
    if (high - low > kMostCopies) return std::nullopt;
    std::optional<int64_t> only;
    for (int64_t v = low; v <= high; ++v) {
      const bool fits =
          residue.modulus == 0 ? v == residue.remainder : ((v - residue.remainder) % residue.modulus) == 0;
      if (!fits) continue;
      if (only.has_value()) return std::nullopt;
      only = v;
    }
    return only;
  }

  std::optional<TailCondition> FirstCondition(const Stmt& stmt) {
    std::optional<TailCondition> found;
    Tile tile(known_);
    tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      for (const Expr& part : Conjuncts(branch.condition)) {
        if (!found.has_value()) found = tile.Read(part);
      }
      return std::nullopt;
    });
    return found;
  }

  bool Occurs(const Stmt& stmt, const TailCondition& c) {
    bool occurs = false;
    Tile tile(known_);
    tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      for (const Expr& part : Conjuncts(branch.condition)) {
        const std::optional<TailCondition> read = tile.Read(part);
        occurs |= read.has_value() && *read == c;
      }
      return std::nullopt;
    });
    return occurs;
  }

  // Every occurrence of the condition replaced by `by(part)`.
  Stmt Replace(const Stmt& stmt, const TailCondition& c, const std::function<Expr(const Expr&)>& by) {
    Tile tile(known_);
    return tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      bool changed = false;
      Expr condition = True();
      for (const Expr& part : Conjuncts(branch.condition)) {
        const std::optional<TailCondition> read = tile.Read(part);
        const bool match = read.has_value() && *read == c;
        const Expr replaced = match ? by(part) : part;
        changed |= !replaced.SameAs(part);
        condition = And(condition, replaced);
      }
      if (!changed) return std::nullopt;
      if (IsConst(condition, 1)) return branch.yes;
      if (IsConst(condition, 0)) return branch.no ? branch.no : MakeSeq({});
      return Stmt::Make(IfThen{condition, branch.yes, branch.no});
    });
  }

  // How many stores the tile has once it is unrolled.
  static int64_t Copies(const Stmt& stmt) {
    if (stmt.As<Store>() != nullptr) return 1;
    int64_t sum = 0;
    ForEachChild(
        stmt, [&](const Stmt& s) { sum += Copies(s); }, [](const Expr&) {});
    const For* loop = stmt.As<For>();
    if (loop != nullptr && loop->kind == ForKind::kUnrolled) sum *= ConstantValue(loop->extent).value_or(1);
    return sum;
  }

  Analyzer known_;
};

}  // namespace

Stmt SplitTails(const Stmt& body) { return SplitTile().Visit(body); }

}  // namespace hone
