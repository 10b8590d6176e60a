#include <algorithm>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/tile_condition.h"

namespace hone {
namespace {

bool Same(const TileCondition& a, const TileCondition& b) {
  return a.least == b.least && a.most == b.most && SameOuter(a, b);
}

bool IsTileLoop(const For& loop) { return loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized; }

// Walks a tile's body and knows which loops it is inside of.
class Tile {
 public:
  explicit Tile(Analyzer& known) : known_(known) {}

  // The condition as seen at this place of the walk; nullopt when it has another form, or nothing would be gained: what
  // no outer loop decides is decided when the loops are unrolled.
  std::optional<TileCondition> Read(const Expr& part) {
    return inside_ == 0 ? std::nullopt : ReadTileCondition(part, loops_, known_);
  }

  // Calls `on_branch` for every IfThen with the walk's state set for Read.
  template <class OnBranch>
  Stmt Map(const Stmt& stmt, const OnBranch& on_branch) {
    const auto child = [&](const Stmt& s) { return Map(s, on_branch); };
    const auto same = [](const Expr& e) { return e; };
    if (const For* loop = stmt.As<For>()) {
      const std::optional<int64_t> min = ConstantValue(loop->min), extent = ConstantValue(loop->extent);
      if (IsTileLoop(*loop) && min.has_value() && extent.has_value()) {
        loops_.ranges[loop->var] = {*min, *extent};
      } else {
        loops_.hidden.insert(loop->var);
      }
      ++inside_;
      const Stmt mapped = MapChildren(stmt, child, same);
      --inside_;
      return mapped;
    }
    if (const Let* let = stmt.As<Let>()) loops_.hidden.insert(let->var);
    if (const IfThen* branch = stmt.As<IfThen>()) {
      if (std::optional<Stmt> replaced = on_branch(*branch)) return child(*replaced);
    }
    return MapChildren(stmt, child, same);
  }

 private:
  Analyzer& known_;
  TileLoops loops_;
  int inside_ = 0;  // of how many
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
  static constexpr int kMostConditions = 2;     // each multiplies the code by its versions: whole, of an edge, empty
  static constexpr int64_t kMostCopies = 1024;  // stores of the unrolled tile
  static constexpr size_t kMostEdges = 7;       // versions of a tile at an edge that a size decides

  Stmt Split(const Stmt& stmt, int conditions) {
    std::optional<TileCondition> found;
    if (conditions > 0 && StoresOfTile(stmt) <= kMostCopies) found = FirstCondition(stmt);
    if (!found.has_value()) return Visit(stmt);
    // The smallest part with all occurrences; allocations around more than that stay shared by the versions.
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
    if (const Alloc* alloc = stmt.As<Alloc>()) return Allocated(alloc->buffer, Split(alloc->body, conditions));
    return Versions(stmt, *found, conditions);
  }

  // Each version of a whole allocation has registers of its own: what one stores says nothing about those of another,
  // so that masks of the tile at the edge may go (UnmaskRegisters).
  static Stmt Allocated(const Buffer& buffer, const Stmt& body) {
    const IfThen* branch = body.As<IfThen>();
    if (branch == nullptr || buffer.scope() != Scope::kRegister || LoadsFrom(branch->condition, buffer))
      return Stmt::Make(Alloc{buffer, body});
    const Stmt no = branch->no ? RenewDefinitions(Allocated(buffer, branch->no)) : Stmt();
    return Stmt::Make(IfThen{branch->condition, Allocated(buffer, branch->yes), no});
  }

  Stmt Versions(const Stmt& stmt, const TileCondition& c, int conditions) {
    const auto version = [&](const std::function<Expr(const Expr&)>& part) {
      return Split(RenewDefinitions(Replace(stmt, c, part)), conditions - 1);
    };
    const Expr full = known_.Simplify(c.outer + Expr(c.most) <= 0);
    const Expr any = known_.Simplify(c.outer + Expr(c.least) <= 0);
    const Stmt always = version([](const Expr&) { return True(); });
    if (IsConst(full, 1)) return always;
    Stmt edge;
    const auto edge_of = [&](int64_t value) {
      return version([&](const Expr& part) { return known_.Simplify(*AtMostZero(part) - c.outer + Expr(value)) <= 0; });
    };
    if (const std::vector<int64_t> values = PartialValues(c); !values.empty()) {
      edge = edge_of(values[0]);
      for (size_t i = 1; i < values.size(); ++i)
        edge = Stmt::Make(IfThen{Eq(c.outer, IntConst(values[i], c.outer.type())), edge_of(values[i]), edge});
    } else if (c.least != c.most) {
      edge = version([](const Expr& part) { return part; });
    }
    const Stmt none = Visit(RenewDefinitions(Replace(stmt, c, [](const Expr&) { return IntConst(0, kBool); })));
    const bool empty = none.As<Seq>() != nullptr && none.As<Seq>()->stmts.empty();
    if (!edge) return Stmt::Make(IfThen{full, always, empty ? Stmt() : none});
    if (!IsConst(any, 1)) edge = Stmt::Make(IfThen{any, edge, empty ? Stmt() : none});
    return Stmt::Make(IfThen{full, always, edge});
  }

  // The values of `outer` where the condition holds for a part of the tile, if it can be but one, or it follows a size
  // and can be but few; else none.
  std::vector<int64_t> PartialValues(const TileCondition& c) {
    const Analyzer::Residue residue = known_.ResidueOf(c.outer);
    const Bounds bounds = known_.ConstBounds(c.outer);
    const int64_t low = std::max(bounds.min, -c.most + 1), high = std::min(bounds.max, -c.least);
    if (high - low > kMostCopies) return {};
    std::vector<int64_t> values;
    for (int64_t v = low; v <= high; ++v) {
      const bool fits =
          residue.modulus == 0 ? v == residue.remainder : ((v - residue.remainder) % residue.modulus) == 0;
      if (fits) values.push_back(v);
    }
    if (values.size() > (MentionsSize(c.outer) ? kMostEdges : 1)) values.clear();
    return values;
  }

  std::optional<TileCondition> FirstCondition(const Stmt& stmt) {
    std::optional<TileCondition> found;
    Tile tile(known_);
    tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      for (const Expr& part : Conjuncts(branch.condition)) {
        if (!found.has_value()) found = tile.Read(part);
      }
      return std::nullopt;
    });
    return found;
  }

  bool Occurs(const Stmt& stmt, const TileCondition& c) {
    bool occurs = false;
    Tile tile(known_);
    tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      for (const Expr& part : Conjuncts(branch.condition)) {
        const std::optional<TileCondition> read = tile.Read(part);
        occurs |= read.has_value() && Same(*read, c);
      }
      return std::nullopt;
    });
    return occurs;
  }

  // Every occurrence of the condition replaced by `by(part)`.
  Stmt Replace(const Stmt& stmt, const TileCondition& c, const std::function<Expr(const Expr&)>& by) {
    Tile tile(known_);
    return tile.Map(stmt, [&](const IfThen& branch) -> std::optional<Stmt> {
      bool changed = false;
      Expr condition = True();
      for (const Expr& part : Conjuncts(branch.condition)) {
        const std::optional<TileCondition> read = tile.Read(part);
        const bool match = read.has_value() && Same(*read, c);
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

  Analyzer known_;
};

}  // namespace

Stmt SplitTails(const Stmt& body) { return SplitTile().Visit(body); }

}  // namespace hone
