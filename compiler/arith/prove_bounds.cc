#include "compiler/arith/prove_bounds.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

bool IsIndex(DType type) { return type.is_int() && type.lanes == 1; }

class Prover {
 public:
  Prover(const PrimFunc& func, const std::map<Buffer, Bounds>& values) : values_(values) {
    const auto written = [this](const Buffer& buffer) { written_.insert(buffer); };
    ForEachStmt(func.body, [&](const Stmt& stmt) {
      if (const Store* store = stmt.As<Store>()) written(store->buffer);
      if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
        if (const std::optional<Store> update = EffectStore(*evaluate)) written(update->buffer);
      }
      if (const TileOp* op = stmt.As<TileOp>()) {
        for (const BufferRegion& operand : op->operands) written(operand.buffer);
      }
      if (const BlockRealize* realize = stmt.As<BlockRealize>()) {  // what is matched may be written by another name
        for (const MatchBuffer& match : realize->block.matches) {
          written(match.buffer);
          written(match.source.buffer);
        }
      }
      return true;
    });
  }

  absl::Status Visit(const Stmt& stmt) {
    if (!stmt) return absl::OkStatus();
    return std::visit([this](const auto& node) { return Do(node); }, stmt.node().kind);
  }

 private:
  // What is learned while it lives is forgotten afterwards.
  class Scope {
   public:
    explicit Scope(Prover& prover) : prover_(prover), mark_(prover.known_.Save()) {}
    ~Scope() { prover_.known_.Restore(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Prover& prover_;
    size_t mark_;
  };

  // ---- Statements

  absl::Status Do(const For& loop) {
    HONE_RETURN_IF_ERROR(Visit(loop.min));
    HONE_RETURN_IF_ERROR(Visit(loop.extent));
    const Scope scope(*this);
    known_.Bind(loop.var, Range{Stable(loop.min), Stable(loop.extent)});
    return Visit(loop.body);
  }
  absl::Status Do(const BlockRealize& realize) {
    const Block& block = realize.block;
    const std::string outer = std::exchange(block_, block.name);
    const Scope scope(*this);
    if (realize.predicate) {
      HONE_RETURN_IF_ERROR(Visit(realize.predicate));
      const Expr predicate = Stable(realize.predicate);
      if (known_.CanProve(MakeNot(predicate))) {  // never runs
        block_ = outer;
        return absl::OkStatus();
      }
      known_.Assume(predicate);
    }
    for (size_t i = 0; i < block.iters.size(); ++i) {
      const IterVar& iter = block.iters[i];
      HONE_RETURN_IF_ERROR(Visit(realize.values[i]));
      const Expr value = Stable(realize.values[i]), low = Stable(iter.domain.min);
      const Expr end = low + Stable(iter.domain.extent);
      // The domain holds where it is proven: compiled code does not ask.
      if (known_.CanProveLessEqual(low, value)) known_.Assume(low <= value);
      if (known_.CanProveLess(value, end)) known_.Assume(value < end);
      known_.Bind(iter.var, value);
    }
    for (const MatchBuffer& match : block.matches) HONE_RETURN_IF_ERROR(CheckRegion(match.source));
    if (block.init) {
      const Scope first(*this);
      for (const IterVar& iter : block.iters) {
        if (iter.kind == IterKind::kReduce) known_.Assume(Eq(iter.var, Stable(iter.domain.min)));
      }
      HONE_RETURN_IF_ERROR(Visit(block.init));
    }
    HONE_RETURN_IF_ERROR(Visit(block.body));
    block_ = outer;
    return absl::OkStatus();
  }
  absl::Status Do(const Store& store) {
    HONE_RETURN_IF_ERROR(Visit(store.value));
    return CheckAccess(store.buffer, store.indices, store.mask, store.value.type().lanes);
  }
  absl::Status Do(const Seq& seq) {
    for (const Stmt& stmt : seq.stmts) HONE_RETURN_IF_ERROR(Visit(stmt));
    return absl::OkStatus();
  }
  absl::Status Do(const IfThen& choice) {
    HONE_RETURN_IF_ERROR(Visit(choice.condition));
    const Expr condition = Stable(choice.condition);
    HONE_RETURN_IF_ERROR(Under(condition, [&] { return Visit(choice.yes); }));
    return Under(MakeNot(condition), [&] { return Visit(choice.no); });
  }
  absl::Status Do(const While& loop) {
    HONE_RETURN_IF_ERROR(Visit(loop.condition));
    const Expr condition = Stable(loop.condition);
    return Under(condition, [&] { return Visit(loop.body); });
  }
  absl::Status Do(const Let& let) {
    HONE_RETURN_IF_ERROR(Visit(let.value));
    const Scope scope(*this);
    if (let.value.type().lanes == 1) known_.Bind(let.var, Stable(let.value));
    return Visit(let.body);
  }
  absl::Status Do(const Alloc& alloc) { return Visit(alloc.body); }
  absl::Status Do(const TileOp& op) {
    for (const BufferRegion& operand : op.operands) HONE_RETURN_IF_ERROR(CheckRegion(operand));
    return absl::OkStatus();
  }
  absl::Status Do(const Evaluate& evaluate) { return Visit(evaluate.value); }

  // ---- Expressions: the loads in them. Both sides of Select, `and` and `or` are evaluated.

  absl::Status Visit(const Expr& e) {
    if (!e) return absl::OkStatus();
    if (const Load* load = e.As<Load>()) return CheckAccess(load->buffer, load->indices, load->mask, e.type().lanes);
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      HONE_RETURN_IF_ERROR(Visit(choice->condition));
      return GuardedBy(*choice);
    }
    if (const LetExpr* let = e.As<LetExpr>()) {
      HONE_RETURN_IF_ERROR(Visit(let->value));
      const Scope scope(*this);
      if (let->value.type().lanes == 1) known_.Bind(let->var, Stable(let->value));
      return Visit(let->body);
    }
    absl::Status status;
    ForEachChild(e, [&](const Expr& child) {
      if (status.ok()) status = Visit(child);
    });
    return status;
  }

  absl::Status GuardedBy(const IfThenElseExpr& choice) {
    const int lanes = choice.condition.type().lanes;
    if (lanes == 1) {
      const Expr condition = Stable(choice.condition);
      HONE_RETURN_IF_ERROR(Under(condition, [&] { return Visit(choice.yes); }));
      return Under(MakeNot(condition), [&] { return Visit(choice.no); });
    }
    // A vector: what holds for the lane that is looked at (CheckAccess) is the condition at that lane.
    guards_.emplace_back(choice.condition, true);
    absl::Status status = Visit(choice.yes);
    guards_.back().second = false;
    if (status.ok()) status = Visit(choice.no);
    guards_.pop_back();
    return status;
  }

  template <class Body>
  absl::Status Under(const Expr& condition, const Body& body) {
    if (known_.CanProve(MakeNot(condition))) return absl::OkStatus();  // never comes here
    const Scope scope(*this);
    known_.Assume(condition);
    return body();
  }

  // ---- Accesses

  absl::Status CheckAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, int lanes) {
    for (const Expr& index : indices) HONE_RETURN_IF_ERROR(Visit(index));
    HONE_RETURN_IF_ERROR(Visit(mask));
    const Scope scope(*this);
    std::vector<Expr> at;
    if (lanes == 1) {
      for (const Expr& index : indices) at.push_back(Stable(index));
      if (mask) known_.Assume(Stable(mask));
    } else {  // any one lane
      const Var lane("lane");
      known_.Bind(lane, Range{0, lanes});
      for (const Expr& index : indices) at.push_back(AtLane(Stable(index), lane));
      if (mask) known_.Assume(AtLane(Stable(mask), lane));
      for (const auto& [condition, holds] : guards_) {
        if (condition.type().lanes != lanes) continue;
        const Expr here = AtLane(Stable(condition), lane);
        known_.Assume(holds ? here : MakeNot(here));
      }
    }
    const auto text = [&] {
      return absl::StrCat(
          buffer.name(), "[",
          absl::StrJoin(indices, ", ", [](std::string* out, const Expr& e) { absl::StrAppend(out, ToText(e)); }), "]");
    };
    for (size_t d = 0; d < at.size(); ++d) {
      HONE_RETURN_IF_ERROR(CheckIndex(text, d, indices[d], at[d], at[d] + 1, buffer.shape()[d]));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRegion(const BufferRegion& region) {
    const Scope scope(*this);
    for (const Range& range : region.region) {  // an empty region touches nothing
      HONE_RETURN_IF_ERROR(Visit(range.min));
      HONE_RETURN_IF_ERROR(Visit(range.extent));
      known_.Assume(Stable(range.extent) > 0);
    }
    const auto text = [&] {
      return absl::StrCat(region.buffer.name(), "[",
                          absl::StrJoin(region.region, ", ",
                                        [](std::string* out, const Range& r) {
                                          absl::StrAppend(out, ToText(r.min), ":", ToText(Simplify(r.min + r.extent)));
                                        }),
                          "]");
    };
    for (size_t d = 0; d < region.region.size(); ++d) {
      const Range& range = region.region[d];
      const Expr low = Stable(range.min);
      HONE_RETURN_IF_ERROR(CheckIndex(text, d, range.min, low, low + Stable(range.extent), region.buffer.shape()[d]));
    }
    return absl::OkStatus();
  }

  // 0 <= low and end <= extent, or a message about `shown`.
  template <class Text>
  absl::Status CheckIndex(const Text& text, size_t dimension, const Expr& shown, const Expr& low, const Expr& end,
                          const Expr& extent) {
    const bool above = known_.CanProveLessEqual(IntConst(0, low.type()), low);
    if (above && known_.CanProveLessEqual(end, Stable(extent))) return absl::OkStatus();
    const Bounds bounds = known_.ConstBounds(above ? end - 1 : low);
    std::string lies = "nothing is known of it";
    if (bounds.bounded()) {
      lies = absl::StrCat("it lies in [", bounds.min, ", ", bounds.max, "]");
    } else if (bounds.bounded_below()) {
      lies = absl::StrCat("it is at least ", bounds.min);
    } else if (bounds.bounded_above()) {
      lies = absl::StrCat("it is at most ", bounds.max);
    }
    return absl::FailedPreconditionError(
        absl::StrCat(block_.empty() ? "" : absl::StrCat("block ", block_, ": "), text(), ": index ", dimension, ", `",
                     ToText(shown), "`, is not proven to stay ",
                     above ? absl::StrCat("below ", ToText(extent)) : std::string("at or above 0"), ": ", lies));
  }

  // ---- Values

  // An expression that means the same for as long as the facts about it are kept: what is loaded from memory that the
  // program writes becomes a variable of its own each time, what is loaded from an integer input a variable with
  // bounds.
  Expr Stable(const Expr& e) {
    if (!e) return e;
    if (const Load* load = e.As<Load>()) return Loaded(e, *load);
    return MapChildren(e, [this](const Expr& child) { return Stable(child); });
  }

  Expr Loaded(const Expr& e, const Load& load) {
    if (!IsIndex(e.type())) return e.type().lanes == 1 && written_.contains(load.buffer) ? Unknown(e.type()) : e;
    if (written_.contains(load.buffer)) return Unknown(e.type());
    const auto same = std::find_if(inputs_.begin(), inputs_.end(),
                                   [&](const auto& input) { return StructuralEqual(input.first, e); });
    const auto given = values_.find(load.buffer);
    const bool bounded = given != values_.end() && given->second.min >= INT32_MIN && given->second.max <= INT32_MAX;
    // What fits 32 bits is a variable of 32 bits: the analyzer sees through casts of those alone.
    const Var var = same != inputs_.end()
                        ? same->second
                        : inputs_.emplace_back(e, Unknown(bounded && e.type() == kInt64 ? kInt32 : e.type())).second;
    // Said again each time: the scope in which it was said before may have ended.
    if (given != values_.end()) known_.BindBounds(var, given->second);
    else BoundByType(var);
    return MakeCast(e.type(), var);
  }

  // A variable of which its type alone is known.
  Var Unknown(DType type) {
    const Var var("loaded", type);
    BoundByType(var);
    return var;
  }
  void BoundByType(const Var& var) {
    const DType type = var.type();
    if (!IsIndex(type) || type.bits >= 32) return;
    const int64_t span = int64_t{1} << type.bits;
    known_.BindBounds(var, type.code == TypeCode::kInt ? Bounds{-span / 2, span / 2 - 1} : Bounds{0, span - 1});
  }

  // One lane of a vector expression.
  Expr AtLane(const Expr& e, const Var& lane) {
    if (e.type().lanes == 1) return e;
    if (const Ramp* ramp = e.As<Ramp>()) {
      const Expr number = ramp->base.type() == lane.type() ? Expr(lane) : MakeCast(ramp->base.type(), lane);
      return ramp->base + ramp->stride * number;
    }
    if (const Broadcast* splat = e.As<Broadcast>()) return splat->value;
    if (const Binary* op = e.As<Binary>()) return MakeBinary(op->op, AtLane(op->a, lane), AtLane(op->b, lane));
    if (const Not* op = e.As<Not>()) return MakeNot(AtLane(op->a, lane));
    if (const Cast* cast = e.As<Cast>()) return MakeCast(e.type().element(), AtLane(cast->a, lane));
    return Unknown(e.type().element());
  }

  const std::map<Buffer, Bounds>& values_;
  Analyzer known_;
  std::set<Buffer> written_;
  std::vector<std::pair<Expr, Var>> inputs_;   // integers loaded from inputs, and what stands for them
  std::vector<std::pair<Expr, bool>> guards_;  // conditions over vectors, and whether they hold here
  std::string block_;
};

}  // namespace

absl::Status ProveInBounds(const PrimFunc& func, const std::map<Buffer, Bounds>& values) {
  return Prover(func, values).Visit(func.body);
}

}  // namespace hone
