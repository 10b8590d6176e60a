#include "tests/compiler/schedule/mutants.h"

#include <functional>
#include <utility>
#include <vector>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"

namespace hone::testing {
namespace {

// Places are counted in one walk, and one of them is changed in a second: `edit` says what a statement or expression
// becomes, or nothing where it is no place.
using StmtEdit = std::function<std::optional<Stmt>(const Stmt&)>;
using ExprEdit = std::function<std::optional<Expr>(const Expr&)>;

class Walk {
 public:
  Walk(StmtEdit on_stmt, ExprEdit on_expr) : on_stmt_(std::move(on_stmt)), on_expr_(std::move(on_expr)) {}

  std::optional<Stmt> ChangeOne(const Stmt& root, Random& random) {
    chosen_ = -1;
    places_ = 0;
    (void)Of(root);
    if (places_ == 0) return std::nullopt;
    chosen_ = static_cast<int64_t>(random.Below(static_cast<uint64_t>(places_)));
    places_ = 0;
    return Of(root);
  }

 private:
  Stmt Of(const Stmt& stmt) {
    if (on_stmt_) {
      if (std::optional<Stmt> changed = on_stmt_(stmt); changed.has_value() && places_++ == chosen_) return *changed;
    }
    return MapChildren(
        stmt, [this](const Stmt& child) { return Of(child); }, [this](const Expr& e) { return Of(e); });
  }
  Expr Of(const Expr& e) {
    if (on_expr_) {
      if (std::optional<Expr> changed = on_expr_(e); changed.has_value() && places_++ == chosen_) return *changed;
    }
    return MapChildren(e, [this](const Expr& child) { return Of(child); });
  }

  StmtEdit on_stmt_;
  ExprEdit on_expr_;
  int64_t places_ = 0, chosen_ = -1;
};

bool IsComparison(BinaryOp op) {
  return op == BinaryOp::kLt || op == BinaryOp::kLe || op == BinaryOp::kGt || op == BinaryOp::kGe;
}

Walk BoundOff(int64_t by) {
  return Walk(
      [by](const Stmt& stmt) -> std::optional<Stmt> {
        const For* loop = stmt.As<For>();
        const std::optional<int64_t> extent = loop == nullptr ? std::nullopt : ConstantValue(loop->extent);
        if (!extent.has_value() || *extent + by < 1) return std::nullopt;
        For changed = *loop;
        changed.extent = IntConst(*extent + by, loop->extent.type());
        return Stmt::Make(std::move(changed));
      },
      [by](const Expr& e) -> std::optional<Expr> {
        const Binary* compare = e.As<Binary>();
        if (compare == nullptr || !IsComparison(compare->op) || !compare->b.type().is_int()) return std::nullopt;
        const std::optional<int64_t> bound = ConstantValue(compare->b);
        if (!bound.has_value()) return std::nullopt;
        return MakeBinary(compare->op, compare->a, IntConst(*bound + by, compare->b.type()));
      });
}

// A block that sets to a constant what another block goes on from: the half of a decomposed reduction.
bool IsInitBlock(const BlockRealize& realize) { return realize.block.name.ends_with("_init"); }

Walk LostInit() {
  return Walk(
      [](const Stmt& stmt) -> std::optional<Stmt> {
        const BlockRealize* realize = stmt.As<BlockRealize>();
        if (realize == nullptr) return std::nullopt;
        BlockRealize changed = *realize;
        if (realize->block.init) {
          changed.block.init = Stmt();
        } else if (IsInitBlock(*realize)) {
          changed.predicate = IntConst(0, kBool);
        } else {
          return std::nullopt;
        }
        return Stmt::Make(std::move(changed));
      },
      nullptr);
}

bool SwapSome(std::vector<Expr>& list, Random& random) {
  if (list.size() < 2) return false;
  const size_t i = random.Below(list.size()), j = random.Below(list.size() - 1);
  std::swap(list[i], list[j < i ? j : j + 1]);
  return true;
}

Walk SwappedAxes(Random& random) {
  return Walk(
      [&random](const Stmt& stmt) -> std::optional<Stmt> {
        if (const Store* store = stmt.As<Store>()) {
          Store changed = *store;
          if (SwapSome(changed.indices, random)) return Stmt::Make(std::move(changed));
        }
        if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
          BlockRealize changed = *realize;
          if (SwapSome(changed.values, random)) return Stmt::Make(std::move(changed));
        }
        return std::nullopt;
      },
      [&random](const Expr& e) -> std::optional<Expr> {
        const Load* load = e.As<Load>();
        if (load == nullptr) return std::nullopt;
        Load changed = *load;
        if (!SwapSome(changed.indices, random)) return std::nullopt;
        return MakeLoad(changed.buffer, changed.indices);
      });
}

Walk MissingPredicate() {
  return Walk(
      [](const Stmt& stmt) -> std::optional<Stmt> {
        if (const BlockRealize* realize = stmt.As<BlockRealize>();
            realize != nullptr && !IsConst(realize->predicate, 1)) {
          BlockRealize changed = *realize;
          changed.predicate = True();
          return Stmt::Make(std::move(changed));
        }
        if (const IfThen* branch = stmt.As<IfThen>()) return branch->yes;
        return std::nullopt;
      },
      [](const Expr& e) -> std::optional<Expr> {
        if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) return choice->yes;
        if (const Select* select = e.As<Select>()) return select->yes;
        return std::nullopt;
      });
}

// The init runs where one of the block's spatial variables, or one of the loops around a decomposed init, is at its
// start.
Walk StaleAccumulator(Random& random, const std::vector<const For*>& loops) {
  return Walk(
      [&random, &loops](const Stmt& stmt) -> std::optional<Stmt> {
        const BlockRealize* realize = stmt.As<BlockRealize>();
        if (realize == nullptr) return std::nullopt;
        BlockRealize changed = *realize;
        std::vector<Expr> turns;
        if (realize->block.init) {
          for (const IterVar& iter : realize->block.iters) {
            if (iter.kind == IterKind::kSpatial && !IsConst(iter.domain.extent, 1)) turns.push_back(iter.var);
          }
        } else if (IsInitBlock(*realize)) {
          for (const For* loop : loops) {
            if (!IsConst(loop->extent, 1) && UsesVar(MakeSeq({stmt}), loop->var)) turns.push_back(loop->var);
          }
        }
        if (turns.empty()) return std::nullopt;
        const Expr first = turns[random.Below(turns.size())] < 1;
        if (realize->block.init) {
          changed.block.init = Stmt::Make(IfThen{first, realize->block.init, Stmt()});
        } else {
          changed.predicate = And(realize->predicate, first);
        }
        return Stmt::Make(std::move(changed));
      },
      nullptr);
}

}  // namespace

std::optional<PrimFunc> WithDefect(const PrimFunc& program, Defect defect, Random& random) {
  std::vector<const For*> loops;
  ForEachStmt(program.body, [&](const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) loops.push_back(loop);
    return true;
  });
  const auto walk = [&]() -> Walk {
    switch (defect) {
      case Defect::kBound: return BoundOff(random.Chance(0.5) ? 1 : -1);
      case Defect::kLostInit: return LostInit();
      case Defect::kSwappedAxes: return SwappedAxes(random);
      case Defect::kMissingPredicate: return MissingPredicate();
      case Defect::kStaleAccumulator: return StaleAccumulator(random, loops);
    }
    return MissingPredicate();
  };
  std::optional<Stmt> body = walk().ChangeOne(program.body, random);
  if (!body.has_value()) return std::nullopt;
  PrimFunc changed = program;
  changed.body = RewriteBottomUp(*body, [](const Stmt& stmt) -> std::optional<Stmt> {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || realize->block.iters.empty()) return std::nullopt;
    BlockRealize declared = *realize;
    DeclareRegions(declared.block);
    return Stmt::Make(std::move(declared));
  });
  return changed;
}

}  // namespace hone::testing
