#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

// One touch of memory that other threads see. Its indices mention axes of threads and of blocks, which stand for the
// thread's own, and loops: those around it, or copies of them where the loop is over or in another iteration.
struct SharedAccess {
  Buffer buffer;
  std::vector<Expr> indices;
  bool writes = false, atomic = false;
  bool lands_later = false;   // of an asynchronous copy: at its thread's wait at the latest
  std::map<Var, int64_t> at;  // axes whose index a condition gives: if threadIdx_x == 0
};
using Accesses = std::vector<SharedAccess>;

// What the walk of one launch's body shares.
class Launch {
 public:
  // `own`: buffers of which each thread has its own.
  Launch(std::vector<Var> axes, std::map<Var, int64_t> extents, std::set<Buffer> own)
      : axes_(std::move(axes)), extents_(std::move(extents)), own_(std::move(own)) {
    for (const auto& [axis, extent] : extents_)
      known_.Bind(axis, Range{IntConst(0, axis.type()), IntConst(extent, axis.type())});
  }

  absl::StatusOr<Stmt> Run(const Stmt& body) {
    Stmt with_barriers = Visit(body);
    HONE_RETURN_IF_ERROR(status_);
    return with_barriers;
  }

 private:
  // ---- What a statement touches

  bool SeenByOthers(const Buffer& buffer) const { return !own_.contains(buffer); }

  void Note(Accesses& all, const Buffer& buffer, std::vector<Expr> indices, bool writes, bool atomic = false,
            bool lands_later = false) const {
    if (SeenByOthers(buffer)) all.push_back({buffer, std::move(indices), writes, atomic, lands_later, at_});
  }
  void NoteReads(Accesses& all, const Expr& root, bool lands_later = false) const {
    ForEachExpr(root, [&](const Expr& e) {
      if (const Load* load = e.As<Load>()) Note(all, load->buffer, load->indices, false, false, lands_later);
      return true;
    });
  }

  // Everything under the statement; inner loops are bound on the way.
  void Collect(const Stmt& stmt, Accesses& all) {
    if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      if (const std::optional<Store> update = AtomicUpdate(*evaluate)) {
        Note(all, update->buffer, update->indices, true, true);
        NoteReads(all, evaluate->value.As<Call>()->args[1]);
        return;
      }
      if (const std::optional<Store> copy = AsyncCopy(*evaluate)) {
        Note(all, copy->buffer, copy->indices, true, false, true);
        NoteReads(all, copy->value, true);
        return;
      }
    }
    if (const Store* store = stmt.As<Store>()) Note(all, store->buffer, store->indices, true);
    if (const TileOp* op = stmt.As<TileOp>()) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        std::vector<Expr> indices;
        for (const Range& range : op->operands[i].region) indices.push_back(range.min + Expr(Roaming(range.extent)));
        Note(all, op->operands[i].buffer, indices, i == 0);
      }
    }
    const For* loop = stmt.As<For>();
    if (loop != nullptr) known_.Bind(loop->var, Range{loop->min, loop->extent});
    const std::map<Var, int64_t> outer = at_;
    if (const IfThen* branch = stmt.As<IfThen>(); branch != nullptr && !branch->no) Learn(branch->condition);
    ForEachChild(
        stmt, [&](const Stmt& s) { Collect(s, all); }, [&](const Expr& e) { NoteReads(all, e); });
    at_ = outer;
    if (loop != nullptr) Leave(*loop, all);
  }

  Var Roaming(const Expr& extent) {
    const Var var("i", extent.type());
    known_.Bind(var, Range{IntConst(0, extent.type()), extent});
    return var;
  }

  // The loop is over: its variable stands for any of its iterations from here on, and bounds that mention other loops
  // for any of theirs.
  void Leave(const For& loop, Accesses& accesses) {
    const Var any(loop.var.name(), loop.var.type());
    known_.BindBounds(any, known_.ConstBounds(loop.var));
    for (SharedAccess& access : accesses) {
      for (Expr& index : access.indices) index = Substitute(index, loop.var, Expr(any));
    }
  }

  // tx == 3, and tx < 1, say where the thread stands.
  void Learn(const Expr& condition) {
    for (const Expr& part : Conjuncts(condition)) {
      const Binary* compared = part.As<Binary>();
      const VarRef* axis = compared == nullptr ? nullptr : compared->a.As<VarRef>();
      if (axis == nullptr || !extents_.contains(axis->var)) continue;
      const std::optional<int64_t> value = ConstantValue(compared->b);
      if (compared->op == BinaryOp::kEq && value.has_value()) at_[axis->var] = *value;
      if (compared->op == BinaryOp::kLt && value == 1) at_[axis->var] = 0;
    }
  }

  // ---- Whether two threads may meet in one element

  bool NeedsBarrier(const Accesses& before, const Accesses& now) {
    for (const SharedAccess& a : before) {
      for (const SharedAccess& b : now) {
        const bool order_counts = (a.writes || b.writes) && !(a.atomic && b.atomic) && a.buffer == b.buffer;
        if (order_counts && !OneThreadAlone(a, b) && !NeverMeet(a, b)) return true;
      }
    }
    return false;
  }

  // Variables that say together which thread it is: of each axis itself, or its quotient and its remainder.
  using Places = std::map<Var, int64_t>;  // with how many values each has

  // Returns whether it is proven that an element both touch is touched by one thread: its indices give the thread's
  // place on every axis.
  bool OneThreadAlone(const SharedAccess& a, const SharedAccess& b) {
    Places places;
    for (const Var& axis : axes_) {
      const auto in_a = a.at.find(axis), in_b = b.at.find(axis);
      const bool same = in_a != a.at.end() && in_b != b.at.end() && in_a->second == in_b->second;
      if (extents_.at(axis) > 1 && !same) places[axis] = extents_.at(axis);
    }
    if (ArePlacesGiven(a, b, places)) return true;
    SharedAccess divided_a = a, divided_b = b;
    return DivideAxes(divided_a, divided_b, places) && ArePlacesGiven(divided_a, divided_b, places);
  }

  bool ArePlacesGiven(const SharedAccess& a, const SharedAccess& b, const Places& places) {
    std::set<Var> open;
    for (const auto& [place, values] : places) open.insert(place);
    for (size_t d = 0; d < a.indices.size() && d < b.indices.size() && !open.empty(); ++d)
      EraseGiven(a.indices[d], b.indices[d], places, open);
    // Or its place in memory, as where loops were fused: (f // 8, f % 8).
    if (!open.empty()) EraseGiven(FlatIndex(a.buffer, a.indices), FlatIndex(b.buffer, b.indices), places, open);
    return open.empty();
  }

  // Where indices mention t // c or t % c, t becomes q * c + r. Returns whether any did.
  bool DivideAxes(SharedAccess& a, SharedAccess& b, Places& places) {
    std::map<Var, int64_t> divisors;
    for (const SharedAccess* access : {&a, &b}) {
      for (const Expr& index : access->indices) {
        ForEachExpr(index, [&](const Expr& e) {
          const Binary* binary = e.As<Binary>();
          if (binary == nullptr || (binary->op != BinaryOp::kFloorDiv && binary->op != BinaryOp::kFloorMod))
            return true;
          const VarRef* axis = binary->a.As<VarRef>();
          const std::optional<int64_t> divisor = ConstantValue(binary->b);
          if (axis != nullptr && places.contains(axis->var) && divisor.value_or(0) > 1)
            divisors.emplace(axis->var, *divisor);
          return true;
        });
      }
    }
    for (const auto& [axis, divisor] : divisors) {
      const Var quotient("q", axis.type()), remainder("r", axis.type());
      const auto bind = [&](const Var& var, int64_t values) {
        known_.Bind(var, Range{IntConst(0, var.type()), IntConst(values, var.type())});
        places[var] = values;
      };
      bind(quotient, (places.at(axis) + divisor - 1) / divisor);
      bind(remainder, divisor);
      places.erase(axis);
      const Expr whole = Expr(quotient) * IntConst(divisor, axis.type()) + Expr(remainder);
      for (SharedAccess* access : {&a, &b}) {
        for (Expr& index : access->indices) index = known_.Simplify(Substitute(index, axis, whole));
      }
    }
    return !divisors.empty();
  }

  // What is multiplied by one coefficient where the indices of two touches are subtracted: a number in [low, high].
  struct Term {
    int64_t low = 0, high = 0;
    Var axis;  // it is how far two threads are apart on that
    int64_t reach() const { return std::max(std::abs(low), std::abs(high)); }
  };
  using Terms = std::map<int64_t, Term>;  // by coefficient; 1 times what stands at 0 has no such form

  // The terms of a - b; false when they have no bounds.
  bool Subtract(const Expr& a, const Expr& b, Terms& terms) {
    const Expr difference = known_.Simplify(a - b);
    const std::set<Var> free = FreeVars(difference);
    const std::vector<Var> vars(free.begin(), free.end());
    const std::optional<LinearForm> form = DetectLinear(difference, vars);
    if (!form.has_value() || !ConstantValue(form->base).has_value()) {
      const Bounds bounds = known_.ConstBounds(difference);
      terms[0] = {bounds.min, bounds.max, Var()};
      return bounds.bounded();
    }
    terms[0].low = terms[0].high = *ConstantValue(form->base);
    for (size_t i = 0; i < vars.size(); ++i) {
      const int64_t c = form->coefficients[i];
      const Bounds bounds = known_.ConstBounds(vars[i]);
      if (c == 0) continue;
      if (!bounds.bounded()) return false;
      Term& term = terms[std::abs(c)];
      term.low += c > 0 ? bounds.min : -bounds.max;
      term.high += c > 0 ? bounds.max : -bounds.min;
    }
    return true;
  }

  // Erases the places that two threads have in common if `a` of one of them is `b` of the other: a sum of terms is 0
  // only if each is, where every coefficient is beyond the reach of the terms with smaller ones. That need not hold of
  // terms smaller than those of threads.
  void EraseGiven(const Expr& a, const Expr& b, const Places& places, std::set<Var>& open) {
    std::vector<Var> vars = axes_;  // those that are known to be one place too: their coefficients must agree
    for (const auto& [place, values] : places) {
      if (std::find(vars.begin(), vars.end(), place) == vars.end()) vars.push_back(place);
    }
    const std::optional<LinearForm> in_a = DetectLinear(known_.Simplify(a), vars);
    const std::optional<LinearForm> in_b = DetectLinear(known_.Simplify(b), vars);
    Terms terms;
    if (!in_a || !in_b || in_a->coefficients != in_b->coefficients || !Subtract(in_a->base, in_b->base, terms)) return;
    for (size_t i = 0; i < vars.size(); ++i) {
      const auto place = places.find(vars[i]);
      const int64_t values = place != places.end() ? place->second : extents_.at(vars[i]);
      const int64_t c = std::abs(in_a->coefficients[i]), farthest = values - 1;
      if (c == 0 || farthest == 0) continue;
      if (terms.contains(c)) return;
      terms[c] = {-farthest, farthest, vars[i]};
    }
    int64_t reach = 0;
    std::vector<Var> given;
    for (const auto& [c, term] : terms) {
      if (c <= reach && (term.axis || !given.empty())) return;
      if (term.axis) given.push_back(term.axis);
      reach += std::max<int64_t>(c, 1) * term.reach();
    }
    for (const Var& place : given) open.erase(place);
  }

  // Returns whether it is proven that no threads' elements are the same: the two halves of a double buffer.
  bool NeverMeet(const SharedAccess& a, const SharedAccess& b) {
    for (size_t d = 0; d < a.indices.size() && d < b.indices.size(); ++d) {
      const Expr difference = a.indices[d] - b.indices[d];
      bool threads = false;
      for (const Var& axis : axes_) threads |= UsesVar(a.indices[d], axis) || UsesVar(b.indices[d], axis);
      if (threads) continue;
      if (known_.CanProve(Ne(difference, IntConst(0, difference.type())))) return true;
      if (DifferModulo(a.indices[d], b.indices[d]) || DifferModulo(b.indices[d], a.indices[d])) return true;
    }
    return false;
  }

  // (k + 2) % 3 is neither k % 3 nor, where k is below 3, k.
  bool DifferModulo(const Expr& a, const Expr& b) {
    const Binary* of_a = a.As<Binary>();
    const std::optional<int64_t> n =
        of_a == nullptr || of_a->op != BinaryOp::kFloorMod ? std::nullopt : ConstantValue(of_a->b);
    if (!n.has_value() || *n < 2) return false;
    const Binary* of_b = b.As<Binary>();
    Expr remainder = b;
    if (of_b != nullptr && of_b->op == BinaryOp::kFloorMod && IsConst(of_b->b, *n)) {
      remainder = of_b->a;
    } else if (const Bounds bounds = known_.ConstBounds(b); bounds.min < 0 || bounds.max >= *n) {
      return false;
    }
    const std::optional<int64_t> apart = ConstantValue(known_.Simplify(of_a->a - remainder));
    return apart.has_value() && *apart % *n != 0;
  }

  // ---- The walk. `pending_`: what was touched since the last barrier; `in_flight_`: what copies touch that may land
  // at the next wait, which is when it counts: whoever comes before that is wrong with a barrier as well.

  void Touched(const Accesses& touched) {
    for (const SharedAccess& access : touched) (access.lands_later ? in_flight_ : pending_).push_back(access);
  }

  bool IsUniform(const Expr& e) const {
    bool uniform = true;
    ForEachExpr(e, [&](const Expr& part) {
      const VarRef* ref = part.As<VarRef>();
      uniform = uniform && part.As<Load>() == nullptr && (ref == nullptr || !varying_.contains(ref->var));
      return uniform;
    });
    return uniform;
  }

  Stmt Visit(const Stmt& stmt) {
    if (const Seq* seq = stmt.As<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& s : seq->stmts) stmts.push_back(Visit(s));
      return MakeSeq(std::move(stmts));
    }
    if (const Alloc* alloc = stmt.As<Alloc>()) return Stmt::Make(Alloc{alloc->buffer, Visit(alloc->body)});
    const Evaluate* evaluate = stmt.As<Evaluate>();
    if (evaluate != nullptr && IsBarrier(*evaluate)) {
      pending_.clear();
      return stmt;
    }
    if (const std::optional<int64_t> left = evaluate == nullptr ? std::nullopt : WaitGroup(*evaluate)) {
      pending_.insert(pending_.end(), in_flight_.begin(), in_flight_.end());
      if (*left == 0) in_flight_.clear();
      return stmt;
    }
    Accesses touched;
    Collect(stmt, touched);
    const bool needs_barrier = NeedsBarrier(pending_, touched);
    if (needs_barrier) pending_.clear();
    if (touched.empty() && !ContainsBarrier(stmt) && !ContainsWait(stmt)) return stmt;
    const Stmt inside = VisitInside(stmt, std::move(touched));
    return needs_barrier ? MakeSeq({MakeBarrier(), inside}) : inside;
  }

  Stmt VisitInside(const Stmt& stmt, Accesses touched) {
    if (const For* loop = stmt.As<For>(); loop != nullptr && IsUniform(loop->min) && IsUniform(loop->extent))
      return VisitLoop(*loop);
    if (const IfThen* branch = stmt.As<IfThen>(); branch != nullptr && IsUniform(branch->condition))
      return VisitBranch(*branch);
    if (const Let* let = stmt.As<Let>()) {
      if (!IsUniform(let->value)) varying_.insert(let->var);
      return Stmt::Make(Let{let->var, let->value, Visit(let->body)});
    }
    if (stmt.As<For>() != nullptr || stmt.As<IfThen>() != nullptr || stmt.As<While>() != nullptr) CheckNeedsNone(stmt);
    Touched(touched);
    if (ContainsWait(stmt)) pending_.insert(pending_.end(), in_flight_.begin(), in_flight_.end());
    return stmt;
  }

  // Only some threads come here, or more often than others: no barrier may stand inside.
  void CheckNeedsNone(const Stmt& stmt) {
    const std::map<Var, int64_t> outer = at_;
    if (const IfThen* branch = stmt.As<IfThen>(); branch != nullptr && !branch->no) Learn(branch->condition);
    if (const Seq* seq = stmt.As<Seq>()) {
      Accesses earlier;
      for (const Stmt& s : seq->stmts) {
        Accesses now;
        Collect(s, now);
        if (NeedsBarrier(earlier, now)) Diverges(s);
        earlier.insert(earlier.end(), now.begin(), now.end());
      }
    }
    if (const For* loop = stmt.As<For>()) {
      known_.Bind(loop->var, Range{loop->min, loop->extent});
      Accesses now, next;
      Collect(loop->body, now);
      next = now;
      Leave(*loop, next);
      if (NeedsBarrier(now, next)) Diverges(loop->body);
    }
    if (stmt.As<While>() != nullptr) {
      Accesses every_round;
      Collect(stmt, every_round);
      if (NeedsBarrier(every_round, every_round)) Diverges(stmt);
    }
    if (const Evaluate* evaluate = stmt.As<Evaluate>(); evaluate != nullptr && IsBarrier(*evaluate)) Diverges(stmt);
    ForEachChild(
        stmt, [&](const Stmt& s) { CheckNeedsNone(s); }, [](const Expr&) {});
    at_ = outer;
  }
  void Diverges(const Stmt& at) {
    const std::string text = ToText(at);
    status_ = absl::FailedPreconditionError(
        absl::StrCat("threads cannot run this program: a barrier would have to stand in front of `",
                     text.substr(0, text.find('\n')), "`, where not all threads of a block come by"));
  }

  Stmt VisitBranch(const IfThen& branch) {
    const Accesses before = pending_;
    const Stmt yes = Visit(branch.yes);
    Accesses after = std::exchange(pending_, before);
    const Stmt no = branch.no ? Visit(branch.no) : Stmt();
    pending_.insert(pending_.end(), after.begin(), after.end());
    return Stmt::Make(IfThen{branch.condition, yes, no});
  }

  Stmt VisitLoop(const For& loop) {
    known_.Bind(loop.var, Range{loop.min, loop.extent});
    const Accesses before = pending_;
    Stmt body = Visit(loop.body);
    // What one iteration leaves behind, or under way, meets what the next one touches.
    Leave(loop, pending_);
    Leave(loop, in_flight_);
    Accesses next;
    Collect(body, next);
    if (!IsConst(loop.extent, 1) && (NeedsBarrier(pending_, next) || NeedsBarrier(in_flight_, next))) {
      body = Visit(body);
      Leave(loop, pending_);
      Leave(loop, in_flight_);
    }
    const bool runs = ConstantValue(loop.extent).value_or(0) > 0;
    if (!runs) pending_.insert(pending_.end(), before.begin(), before.end());
    For with_barriers = loop;
    with_barriers.body = body;
    return Stmt::Make(std::move(with_barriers));
  }

  static bool ContainsWait(const Stmt& root) {
    bool found = false;
    ForEachStmt(root, [&](const Stmt& stmt) {
      const Evaluate* evaluate = stmt.As<Evaluate>();
      found = found || (evaluate != nullptr && WaitGroup(*evaluate).has_value());
      return !found;
    });
    return found;
  }

  const std::vector<Var> axes_;  // of threads
  const std::map<Var, int64_t> extents_;
  const std::set<Buffer> own_;
  std::set<Var> varying_ = {axes_.begin(), axes_.end()};  // differ from thread to thread
  std::map<Var, int64_t> at_;
  Analyzer known_;
  Accesses pending_, in_flight_;
  absl::Status status_;
};

absl::StatusOr<Stmt> InLaunch(const std::vector<For>& loops, const Stmt& body) {
  std::vector<Var> axes;
  std::map<Var, int64_t> extents;
  for (const For& loop : loops) {
    if (!loop.thread.starts_with("threadIdx")) continue;
    axes.push_back(loop.var);
    extents[loop.var] = ConstantValue(loop.extent).value_or(0);
  }
  std::set<Buffer> own;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const Alloc* alloc = s.As<Alloc>(); alloc != nullptr && alloc->buffer.scope() != Scope::kShared)
      own.insert(alloc->buffer);
    return true;
  });
  return Launch(std::move(axes), std::move(extents), std::move(own)).Run(body);
}

}  // namespace

absl::StatusOr<Stmt> InsertBarriers(const Stmt& body) { return RewriteLaunches(body, InLaunch); }

}  // namespace hone
