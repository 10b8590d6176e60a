#include <algorithm>
#include <map>
#include <set>

#include "compiler/arith/linear.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

constexpr int64_t kMostLanes = 64;
constexpr int64_t kPieceLanes = 16;  // of a longer loop

// One loop's body with every iteration at once. Failed() afterwards means that the body cannot be run that way.
class Vectorizer {
 public:
  Vectorizer(const Var& var, const Expr& min, int lanes) : lanes_(lanes) {
    vectors_[var] = MakeRamp(min, IntConst(1, var.type()), lanes);
  }
  bool failed() const { return failed_; }

  Stmt OnStmt(const Stmt& stmt) {
    if (failed_) return stmt;
    if (const Seq* seq = stmt.As<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& s : seq->stmts) stmts.push_back(OnStmt(s));
      return MakeSeq(std::move(stmts));
    }
    if (const Store* store = stmt.As<Store>()) return OnStore(*store);
    if (const For* loop = stmt.As<For>()) {
      For out = *loop;
      out.min = OnExpr(loop->min);
      out.extent = OnExpr(loop->extent);
      if (!out.min.type().is_scalar() || !out.extent.type().is_scalar()) return Fail(stmt);
      out.body = OnStmt(loop->body);
      return Stmt::Make(std::move(out));
    }
    if (const IfThen* branch = stmt.As<IfThen>()) return OnBranch(*branch);
    if (const Let* let = stmt.As<Let>()) {
      const Expr value = OnExpr(let->value);
      if (value.type().is_scalar()) return Stmt::Make(Let{let->var, value, OnStmt(let->body)});
      const Var wide(let->var.name(), value.type());
      vectors_[let->var] = wide;
      return Stmt::Make(Let{wide, value, OnStmt(let->body)});
    }
    return Fail(stmt);  // an allocation of each lane's own, a tile operation
  }

 private:
  Stmt Fail(const Stmt& stmt) {
    failed_ = true;
    return stmt;
  }

  Stmt OnStore(const Store& store) {
    const Expr index = OnExpr(store.indices[0]);
    const Expr value = OnExpr(store.value);
    if (failed_) return Stmt::Make(store);
    if (index.type().is_scalar()) {
      // One element for all lanes: right only when all lanes store the same, at least one does, and none adds to what
      // the one before it left.
      if (!value.type().is_scalar() || mask_ || LoadsFrom(value, store.buffer)) failed_ = true;
      return Stmt::Make(Store{store.buffer, {index}, value, Expr()});
    }
    return Stmt::Make(Store{store.buffer, {index}, MakeCast(value.type().element().with_lanes(lanes_), value), mask_});
  }

  Stmt OnBranch(const IfThen& branch) {
    const Expr condition = OnExpr(branch.condition);
    if (condition.type().is_scalar()) {
      return Stmt::Make(IfThen{condition, OnStmt(branch.yes), branch.no ? OnStmt(branch.no) : Stmt()});
    }
    const Expr outer = mask_;
    mask_ = Both(outer, condition);
    std::vector<Stmt> stmts = {OnStmt(branch.yes)};
    if (branch.no) {
      mask_ = Both(outer, MakeNot(condition));
      stmts.push_back(OnStmt(branch.no));
    }
    mask_ = outer;
    return MakeSeq(std::move(stmts));
  }

  static Expr Both(const Expr& a, const Expr& b) { return a ? And(a, b) : b; }

  Expr OnExpr(const Expr& e) {
    if (failed_) return e;
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = vectors_.find(ref->var);
      if (found != vectors_.end()) return found->second;
    }
    if (!e.type().is_scalar()) {
      failed_ = true;  // already a vector
      return e;
    }
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      const Expr condition = OnExpr(choice->condition);
      if (condition.type().is_scalar()) return IfThenElse(condition, OnExpr(choice->yes), OnExpr(choice->no));
      const Expr outer = mask_;  // a lane loads only what its side of the choice loads
      mask_ = Both(outer, condition);
      const Expr yes = OnExpr(choice->yes);
      mask_ = Both(outer, MakeNot(condition));
      const Expr no = OnExpr(choice->no);
      mask_ = outer;
      return MakeSelect(condition, yes, no);
    }
    if (const LetExpr* let = e.As<LetExpr>()) {
      const Expr value = OnExpr(let->value);
      if (!value.type().is_scalar()) {
        const Var wide(let->var.name(), value.type());
        vectors_[let->var] = wide;
        const Expr body = OnExpr(let->body);
        return Expr::Make(LetExpr{wide, value, body}, body.type());
      }
    }
    const Expr mapped = MapChildren(e, [&](const Expr& child) { return OnExpr(child); });
    const Load* load = mapped.As<Load>();
    // Registers may be read whole: what the lanes that are off hold is never used.
    if (load == nullptr || !mask_ || mapped.type().is_scalar() || load->buffer.scope() == Scope::kRegister)
      return mapped;
    return MakeLoad(load->buffer, load->indices, mask_);
  }

  int lanes_;
  std::map<Var, Expr> vectors_;
  Expr mask_;  // lanes that run; absent: all
  bool failed_ = false;
};

// Whether an iteration reads or writes what another one writes, as far as strides tell: two accesses to a buffer, one
// of them a store, that move by different numbers of elements from iteration to iteration meet across iterations.
// Vectors would run the first access of all iterations before the second of any.
bool CarriesDependence(const For& loop) {
  std::map<Buffer, std::set<int64_t>> stores, loads;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    const Store* store = stmt.As<Store>();
    if (store == nullptr || store->indices.size() != 1) return true;
    if (const std::optional<int64_t> stride = StrideOf(store->indices[0], loop.var)) {
      stores[store->buffer].insert(*stride);
    }
    return true;
  });
  ForEachExpr(loop.body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    if (load == nullptr || load->indices.size() != 1 || !stores.contains(load->buffer)) return true;
    if (const std::optional<int64_t> stride = StrideOf(load->indices[0], loop.var)) {
      loads[load->buffer].insert(*stride);
    }
    return true;
  });
  return std::ranges::any_of(stores, [&](const auto& of_buffer) {
    std::set<int64_t> strides = of_buffer.second;
    if (const auto found = loads.find(of_buffer.first); found != loads.end()) strides.merge(found->second);
    return strides.size() > 1;
  });
}

// Iterations [begin, begin + lanes) of the loop as vectors; as a serial loop when they cannot be.
Stmt Lanes(const For& loop, const Expr& begin, int64_t lanes) {
  if (lanes == 1) return Substitute(loop.body, loop.var, begin);
  Vectorizer vectorizer(loop.var, begin, static_cast<int>(lanes));
  const Stmt vectors = vectorizer.OnStmt(loop.body);
  if (!vectorizer.failed()) return vectors;
  For serial = loop;
  serial.kind = ForKind::kSerial;
  serial.min = begin;
  serial.extent = Expr(lanes);
  return Stmt::Make(std::move(serial));
}

Stmt Vectorize(const For& loop) {
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  For serial = loop;
  serial.kind = ForKind::kSerial;
  if (!extent.has_value() || CarriesDependence(loop)) return Stmt::Make(std::move(serial));
  if (*extent <= kMostLanes) return Lanes(loop, loop.min, *extent);
  const int64_t pieces = *extent / kPieceLanes, rest = *extent % kPieceLanes;
  const Var piece(loop.var.name() + "_piece", loop.var.type());
  For outer{.var = piece, .min = IntConst(0, piece.type()), .extent = IntConst(pieces, piece.type())};
  outer.body = Lanes(loop, loop.min + piece * Expr(kPieceLanes), kPieceLanes);
  std::vector<Stmt> stmts = {Stmt::Make(std::move(outer))};
  if (rest != 0) stmts.push_back(RenewDefinitions(Lanes(loop, loop.min + Expr(pieces * kPieceLanes), rest)));
  return MakeSeq(std::move(stmts));
}

}  // namespace

Stmt VectorizeLoops(const Stmt& body) {
  return RewriteBottomUp(body, [](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || loop->kind != ForKind::kVectorized) return std::nullopt;
    return Vectorize(*loop);
  });
}

}  // namespace hone
