#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

struct Unrolled {
  Stmt stmt;
  int64_t size = 1;      // statements
  bool defines = false;  // variables or buffers, which each copy has of its own
  bool decides = false;  // has conditions or loops, which a copy may have decided
};

bool HasLet(const Expr& e) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& part) {
    found |= part.As<LetExpr>() != nullptr;
    return !found;
  });
  return found;
}

class Unroll {
 public:
  explicit Unroll(int64_t max_copies) : max_copies_(max_copies) {}

  Unrolled Visit(const Stmt& stmt) {
    Unrolled all;
    const auto on_stmt = [&](const Stmt& s) {
      const Unrolled inner = Visit(s);
      all.size += inner.size;
      all.defines |= inner.defines;
      all.decides |= inner.decides;
      return inner.stmt;
    };
    const auto on_expr = [&](const Expr& e) {
      all.defines |= HasLet(e);
      return e;
    };
    all.stmt = MapChildren(stmt, on_stmt, on_expr);
    const For* loop = all.stmt.As<For>();
    const std::optional<int64_t> trips = loop == nullptr ? std::nullopt : ConstantValue(loop->extent);
    if (loop != nullptr && loop->kind == ForKind::kUnrolled && trips.has_value() && *trips * all.size <= max_copies_) {
      all.stmt = Copies(*loop, *trips, all);
      all.size *= *trips;
      return all;
    }
    all.defines |= loop != nullptr || stmt.As<Let>() != nullptr || stmt.As<Alloc>() != nullptr ||
                   stmt.As<BlockRealize>() != nullptr;
    all.decides |= loop != nullptr || stmt.As<IfThen>() != nullptr;
    if (loop != nullptr && loop->kind == ForKind::kUnrolled) {
      For serial = *loop;
      serial.kind = ForKind::kSerial;
      all.stmt = Stmt::Make(std::move(serial));
    } else {
      all.stmt = Pruned(all.stmt);
    }
    return all;
  }

 private:
  static Stmt Copies(const For& loop, int64_t trips, const Unrolled& body) {
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < trips; ++i) {
      Stmt copy = Substitute(loop.body, loop.var, loop.min + IntConst(i, loop.var.type()));
      if (i > 0 && body.defines) copy = RenewDefinitions(copy);
      copies.push_back(body.decides ? Prune(copy) : copy);
    }
    return MakeSeq(std::move(copies));
  }

  // Conditions that unrolling has decided, and loops that never run.
  static Stmt Prune(const Stmt& stmt) {
    return RewriteBottomUp(stmt, [](const Stmt& s) -> std::optional<Stmt> {
      const Stmt pruned = Pruned(s);
      return pruned.SameAs(s) ? std::nullopt : std::optional(pruned);
    });
  }
  static Stmt Pruned(const Stmt& s) {
    if (const For* loop = s.As<For>()) {
      const Seq* body = loop->body.As<Seq>();
      const bool empty = ConstantValue(loop->extent).value_or(1) <= 0 || (body != nullptr && body->stmts.empty());
      return empty ? MakeSeq({}) : s;
    }
    const IfThen* branch = s.As<IfThen>();
    const std::optional<int64_t> known = branch == nullptr ? std::nullopt : ConstantValue(branch->condition);
    if (!known.has_value()) return s;
    if (*known != 0) return branch->yes;
    return branch->no ? branch->no : MakeSeq({});
  }

  int64_t max_copies_;
};

}  // namespace

Stmt UnrollLoops(const Stmt& body, int64_t max_copies) { return Unroll(max_copies).Visit(body).stmt; }

}  // namespace hone
