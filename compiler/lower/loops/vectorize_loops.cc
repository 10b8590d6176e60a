#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/checks/lane_conflicts.h"
#include "compiler/lower/loops/lane_conditions.h"
#include "compiler/lower/passes.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

constexpr int64_t kMostVectors = 4;  // of the target, that stand for a whole loop; one longer is cut into pieces

// Bits of the widest elements that a body computes with. Indices do not count: neighbours need one for all lanes.
int WidestElement(const Stmt& body) {
  int bits = 8;
  ForEachStmt(body, [&](const Stmt& s) {
    const Store* store = s.As<Store>();
    if (store == nullptr) return true;
    ForEachExpr(store->value, [&](const Expr& e) {
      bits = std::max<int>(bits, e.type().bits);
      return e.As<Load>() == nullptr;
    });
    return true;
  });
  return bits;
}

// One loop's body with every iteration at once. Where the body cannot be run that way, obstacle() says why afterwards.
class Vectorizer {
 public:
  Vectorizer(const Var& var, const Expr& min, int lanes, const AroundLoop& around) : lanes_(lanes) {
    vectors_[var] = MakeRamp(min, IntConst(1, var.type()), lanes);
    for (const For& loop : around.loops) known_.Bind(loop.var, Range{loop.min, loop.extent});
    for (const Expr& condition : around.conditions) known_.Assume(condition);
  }
  const std::string& obstacle() const { return obstacle_; }  // empty: none

  Stmt OnStmt(const Stmt& stmt) {
    if (failed()) return stmt;
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
      if (!out.min.type().is_scalar() || !out.extent.type().is_scalar())
        return Fail(stmt, absl::StrCat("the bounds of loop ", loop->var.name(), " inside depend on it"));
      known_.Bind(out.var, Range{out.min, out.extent});
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
    if (stmt.As<While>() != nullptr) return Fail(stmt, "a while loop inside may end at another time in each iteration");
    if (const Alloc* alloc = stmt.As<Alloc>())
      return Fail(stmt, absl::StrCat("every iteration has a buffer ", alloc->buffer.name(), " of its own"));
    if (const TileOp* op = stmt.As<TileOp>())
      return Fail(stmt, absl::StrCat("the tile operation ", op->intrinsic, " inside is one instruction"));
    return Fail(stmt, absl::StrCat("there is no vector of ", ToText(stmt)));
  }

 private:
  bool failed() const { return !obstacle_.empty(); }

  Stmt Fail(const Stmt& stmt, std::string obstacle) {
    if (!failed()) obstacle_ = std::move(obstacle);
    return stmt;
  }

  Stmt OnStore(const Store& store) {
    const Expr index = OnExpr(store.indices[0]);
    const Expr value = OnExpr(store.value);
    if (failed()) return Stmt::Make(store);
    if (index.type().is_scalar()) {
      // One element for all lanes: right only when all lanes store the same, at least one does, and none adds to what
      // the one before it left.
      if (!value.type().is_scalar() || mask_ || LoadsFrom(value, store.buffer)) {
        return Fail(Stmt::Make(store), absl::StrCat("all iterations store at ", store.buffer.name(), "[",
                                                    ToText(store.indices[0]), "], and not the same"));
      }
      return Stmt::Make(Store{store.buffer, {index}, value, Expr()});
    }
    return Stmt::Make(Store{store.buffer, {index}, MakeCast(value.type().element().with_lanes(lanes_), value), mask_});
  }

  // What holds for all lanes or for none stays a branch, so that what it guards is left alone; the rest is a mask.
  Stmt OnBranch(const IfThen& branch) {
    Expr for_all, mask;
    if (branch.no) {
      mask = OnExpr(branch.condition);
      if (mask.type().is_scalar()) return Stmt::Make(IfThen{mask, OnStmt(branch.yes), OnStmt(branch.no)});
    } else {
      for (const Expr& part : Conjuncts(branch.condition)) {
        const Expr mapped = OnExpr(part);
        Expr& joined = mapped.type().is_scalar() ? for_all : mask;
        joined = Both(joined, mapped);
      }
    }
    if (failed()) return Stmt::Make(branch);
    const Expr outer = mask_;
    if (mask) mask_ = Both(outer, mask);
    std::vector<Stmt> stmts;
    {
      std::optional<ConstraintScope> scope;
      if (for_all) scope.emplace(known_, for_all);
      stmts.push_back(OnStmt(branch.yes));
    }
    if (branch.no) {
      mask_ = Both(outer, MakeNot(mask));
      stmts.push_back(OnStmt(branch.no));
    }
    mask_ = outer;
    const Stmt lanes = MakeSeq(std::move(stmts));
    return for_all ? Stmt::Make(IfThen{for_all, lanes, Stmt()}) : lanes;
  }

  static Expr Both(const Expr& a, const Expr& b) { return a ? And(a, b) : b; }

  Expr OnExpr(const Expr& e) {
    if (failed()) return e;
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = vectors_.find(ref->var);
      if (found != vectors_.end()) return found->second;
    }
    if (!e.type().is_scalar()) {
      obstacle_ = "a loop inside is vectorised already";
      return e;
    }
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      const Expr condition = OnExpr(choice->condition);
      if (condition.type().is_scalar()) {
        const auto where = [&](const Expr& holds, const Expr& side) {
          const ConstraintScope scope(known_, holds);
          return OnExpr(side);
        };
        const Expr yes = where(condition, choice->yes);
        return IfThenElse(condition, yes, where(MakeNot(condition), choice->no));
      }
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
    if (load == nullptr || !mask_ || IsInRegisters(*load)) return mapped;
    if (!mapped.type().is_scalar()) return MakeLoad(load->buffer, load->indices, mask_);
    // One element for all lanes, which may lie outside where no lane is on.
    return IsInside(load->indices[0], load->buffer)
               ? mapped
               : MakeLoad(load->buffer, {MakeBroadcast(load->indices[0], lanes_)}, mask_);
  }

  // Registers may be read whole, with what is behind them: what the lanes that are off hold is never used.
  bool IsInRegisters(const Load& load) {
    if (load.buffer.scope() != Scope::kRegister) return false;
    const Expr& index = load.indices[0];
    if (index.type().is_scalar()) return IsInside(index, load.buffer, kBehindRegisters);
    const Ramp* ramp = index.As<Ramp>();
    return ramp != nullptr && IsInside(ramp->base, load.buffer, kBehindRegisters) &&
           IsInside(ramp->base + ramp->stride * IntConst(index.type().lanes - 1, ramp->base.type()), load.buffer,
                    kBehindRegisters);
  }

  bool IsInside(const Expr& index, const Buffer& buffer, int64_t behind = 0) {
    const Expr end = MakeCast(index.type(), buffer.shape()[0]) + IntConst(behind, index.type());
    return known_.CanProve(IntConst(0, index.type()) <= index) && known_.CanProve(index < end);
  }

  int lanes_;
  std::map<Var, Expr> vectors_;
  Analyzer known_;
  Expr mask_;  // lanes that run; absent: all
  std::string obstacle_;
};

// Vectorised loops, innermost first, with what stands around each.
class LoopVectorizer {
 public:
  explicit LoopVectorizer(const LowerOptions& options) : options_(options) {}
  const absl::Status& status() const { return status_; }
  const std::vector<std::string>& serial() const { return serial_; }

  Stmt OnStmt(const Stmt& stmt) {
    if (!status_.ok()) return stmt;
    const auto on_child = [&](const Stmt& child) { return OnStmt(child); };
    const auto on_expr = [](const Expr& e) { return e; };
    if (const For* loop = stmt.As<For>()) {
      around_.loops.push_back(*loop);
      const Stmt inside = MapChildren(stmt, on_child, on_expr);
      around_.loops.pop_back();
      return loop->kind == ForKind::kVectorized && status_.ok() ? Vectorize(*inside.As<For>()) : inside;
    }
    if (const IfThen* branch = stmt.As<IfThen>()) {
      const auto where = [&](const Expr& condition, const Stmt& side) {
        around_.conditions.push_back(condition);
        const Stmt inside = OnStmt(side);
        around_.conditions.pop_back();
        return inside;
      };
      return Stmt::Make(IfThen{branch->condition, where(branch->condition, branch->yes),
                               branch->no ? where(MakeNot(branch->condition), branch->no) : Stmt()});
    }
    return MapChildren(stmt, on_child, on_expr);
  }

 private:
  Stmt Vectorize(const For& loop) {
    const std::optional<int64_t> extent = ConstantValue(loop.extent);
    if (!extent.has_value()) {
      return Serial(loop, absl::StrCat("its extent ", ToText(loop.extent),
                                       " is not a constant; split it by the number of lanes"));
    }
    if (const std::optional<std::string> conflict = LaneConflict(loop, around_)) {
      if (options_.plain) return Serial(loop, *conflict);
      status_ = absl::FailedPreconditionError(
          absl::StrCat("loop ", loop.var.name(), " cannot be vectorised: ", *conflict, "; vectorize another loop"));
      return Stmt::Make(loop);
    }
    const int64_t lanes = options_.lanes(WidestElement(loop.body));
    if (*extent <= kMostVectors * lanes) return Lanes(loop, loop.min, *extent);
    const int64_t pieces = *extent / lanes, rest = *extent % lanes;
    const Var piece(loop.var.name() + "_piece", loop.var.type());
    For outer{.var = piece, .min = IntConst(0, piece.type()), .extent = IntConst(pieces, piece.type())};
    outer.body = Lanes(loop, loop.min + piece * Expr(lanes), lanes);
    std::vector<Stmt> stmts = {Stmt::Make(std::move(outer))};
    if (rest != 0) stmts.push_back(RenewDefinitions(Lanes(loop, loop.min + Expr(pieces * lanes), rest)));
    return MakeSeq(std::move(stmts));
  }

  // Iterations [begin, begin + lanes) of the loop as vectors.
  Stmt Lanes(const For& loop, const Expr& begin, int64_t lanes) {
    if (lanes == 1) return Substitute(loop.body, loop.var, begin);
    For piece = loop;
    piece.min = begin;
    piece.extent = Expr(lanes);
    Vectorizer vectorizer(loop.var, begin, static_cast<int>(lanes), around_);
    const Stmt vectors = vectorizer.OnStmt(loop.body);
    if (!vectorizer.obstacle().empty())
      return Serial(piece, absl::StrCat(vectorizer.obstacle(), "; vectorize another loop, or unroll it"));
    const std::optional<int> masked = NarrowestMasked(vectors);
    if (!masked.has_value() || options_.has_masks(*masked)) return vectors;
    if (std::optional<Stmt> versions = WholeOrEach(piece)) return *std::move(versions);
    Say(absl::StrCat("loop ", loop.var.name(), " loads or stores elements of ", *masked,
                     " bits under a mask, which the target does one by one"));
    return vectors;
  }

  // For a target without masks: vectors where all lanes are on, and a copy of the body for each lane where not.
  std::optional<Stmt> WholeOrEach(const For& piece) {
    Analyzer known;
    for (const For& loop : around_.loops) known.Bind(loop.var, Range{loop.min, loop.extent});
    const std::optional<WholeLanes> whole = TakeOutConditions(piece, known);
    if (!whole.has_value()) return std::nullopt;
    const int64_t lanes = *ConstantValue(piece.extent);
    Vectorizer vectorizer(whole->loop.var, whole->loop.min, static_cast<int>(lanes), around_);
    const Stmt vectors = vectorizer.OnStmt(whole->loop.body);
    if (!vectorizer.obstacle().empty() || NarrowestMasked(vectors).has_value()) return std::nullopt;
    For each = piece;
    each.kind = ForKind::kUnrolled;
    each.min = IntConst(0, piece.var.type());
    each.body = Substitute(piece.body, piece.var, piece.min + piece.var);
    return Stmt::Make(IfThen{whole->when, RenewDefinitions(vectors), Stmt::Make(std::move(each))});
  }

  // The loop as it is, and said.
  Stmt Serial(const For& loop, const std::string& why) {
    Say(absl::StrCat("loop ", loop.var.name(), " is not vectorised: ", why));
    For serial = loop;
    serial.kind = ForKind::kSerial;
    return Stmt::Make(std::move(serial));
  }

  void Say(std::string said) {
    if (std::ranges::find(serial_, said) == serial_.end()) serial_.push_back(std::move(said));
  }

  const LowerOptions& options_;
  AroundLoop around_;
  absl::Status status_;
  std::vector<std::string> serial_;
};

}  // namespace

absl::StatusOr<PrimFunc> VectorizeLoops(PrimFunc func, const LowerOptions& options) {
  LoopVectorizer vectorizer(options);
  func.body = vectorizer.OnStmt(func.body);
  HONE_RETURN_IF_ERROR(vectorizer.status());
  if (!vectorizer.serial().empty() && !options.plain) func.attrs[std::string(kSerialLoops)] = vectorizer.serial();
  return func;
}

std::vector<std::string> SerialLoops(const PrimFunc& func) {
  const auto found = func.attrs.find(std::string(kSerialLoops));
  const auto* said = found == func.attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
  return said == nullptr ? std::vector<std::string>() : *said;
}

}  // namespace hone
