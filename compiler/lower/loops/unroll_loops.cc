#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

struct Unrolled {
  Stmt stmt;
  int64_t size;  // statements
};

class Unroll {
 public:
  explicit Unroll(int64_t max_copies) : max_copies_(max_copies) {}

  Unrolled Visit(const Stmt& stmt) {
    int64_t size = 1;
    const auto child = [&](const Stmt& s) {
      Unrolled inner = Visit(s);
      size += inner.size;
      return inner.stmt;
    };
    const Stmt mapped = MapChildren(stmt, child, [](const Expr& e) { return e; });
    const For* loop = mapped.As<For>();
    if (loop == nullptr || loop->kind != ForKind::kUnrolled) return {Pruned(mapped), size};
    const std::optional<int64_t> trips = ConstantValue(loop->extent);
    if (!trips.has_value() || *trips * size > max_copies_) {
      For serial = *loop;
      serial.kind = ForKind::kSerial;
      return {Stmt::Make(std::move(serial)), size};
    }
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *trips; ++i) {
      const Expr value = loop->min + IntConst(i, loop->var.type());
      const Stmt copy = Substitute(loop->body, loop->var, value);
      copies.push_back(Prune(i == 0 ? copy : RenewDefinitions(copy)));
    }
    return {MakeSeq(std::move(copies)), *trips * size};
  }

 private:
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
