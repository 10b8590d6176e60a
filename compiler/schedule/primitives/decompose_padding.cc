#include "compiler/schedule/primitives/decompose_padding.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// A part of the condition as a bound of one variable: first <= v, or v < end.
struct Bound {
  int iter = -1;
  std::optional<int64_t> first, end;
};

std::optional<Bound> BoundOf(const Expr& part, const std::vector<IterVar>& iters) {
  const std::optional<Expr> value = AtMostZero(part);
  if (!value.has_value()) return std::nullopt;
  std::vector<Var> vars;
  for (const IterVar& iter : iters) vars.push_back(iter.var);
  const std::optional<LinearForm> form = DetectLinear(*value, vars);
  const std::optional<int64_t> base = form.has_value() ? ConstantValue(Simplify(form->base)) : std::nullopt;
  if (!base.has_value()) return std::nullopt;
  Bound bound;
  int64_t scale = 0;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (form->coefficients[i] == 0) continue;
    if (bound.iter >= 0) return std::nullopt;
    bound.iter = static_cast<int>(i);
    scale = form->coefficients[i];
  }
  if (bound.iter < 0) return std::nullopt;
  const int64_t limit = -*base;  // scale * v <= limit
  if (scale > 0) {
    bound.end = FloorDivide(limit, scale) + 1;
  } else {
    bound.first = -FloorDivide(limit, -scale);  // v >= limit / scale, rounded up
  }
  return bound;
}

// A loop that shrinks to [first, end) of its iteration variable's domain.
struct Shrunk {
  Var loop;
  int64_t first = 0, end = 0;
};

// What is known of a block that pads.
struct Padding {
  const ProgramIndex& index;
  int node, loop_node;  // of the block, of the loop around which it is taken apart
  const Store& store;
  const IfThenElseExpr& choice;
  std::vector<Shrunk> shrunk = {};  // by the block's variables; those without a loop stay
  Expr rest = True();               // what is left of the condition

  const BlockRealize& realize() const { return index.realize(node); }
  const Block& block() const { return realize().block; }
};

// A block that stores if_then_else(condition, value, a constant), each element once.
absl::StatusOr<Padding> FindPadding(const ProgramIndex& index, int node, int loop_node, const std::string& where) {
  const Block& block = index.block(node);
  if (!index.Contains(loop_node, node) || index.EnclosingBlock(node) != index.EnclosingBlock(loop_node)) {
    return Refused(where, ": the loop is not around the block");
  }
  const Store* store = block.body.As<Store>();
  const IfThenElseExpr* choice = store == nullptr ? nullptr : store->value.As<IfThenElseExpr>();
  const bool constant =
      choice != nullptr && (choice->no.As<IntImm>() != nullptr || choice->no.As<FloatImm>() != nullptr);
  if (!constant || block.init || store->mask) {
    return Refused(where, ": the block does not pad: it does not store if_then_else(condition, value, a constant)");
  }
  if (!IsPure(choice->condition)) {  // as the block's predicate it would be read for instances that do not run, too
    return Refused(where, ": the condition ", choice->condition, " reads memory");
  }
  if (Reads(block, store->buffer)) return Refused(where, ": the block reads ", store->buffer, ", which it writes");
  VarRanges domains;
  for (const IterVar& iter : block.iters) {
    domains[iter.var] = iter.domain;
    if (iter.kind != IterKind::kSpatial) return Refused(where, ": ", iter.var, " is no spatial variable");
  }
  if (!IsInjective(store->indices, domains, True())) {
    return Refused(where,
                   ": two instances may write one element, and the copy might come before the constant of another");
  }
  return Padding{.index = index, .node = node, .loop_node = loop_node, .store = *store, .choice = *choice};
}

// The constant comes before all that the loop runs: no other block there may write the buffer, and one may read it only
// where nothing but this block has given it a value by then.
absl::Status CheckOthersInLoop(const Padding& p, const std::string& where) {
  const Buffer& buffer = p.store.buffer;
  const int scope = p.index.EnclosingBlock(p.node);
  bool alone = AllocatingBlock(p.index, buffer) == scope && WritersOf(p.index, scope, buffer).size() == 1;
  for (int n = p.index.parent(p.loop_node); n > scope; n = p.index.parent(n)) alone = alone && !p.index.IsLoop(n);
  for (const int other : p.index.BlocksBelow(p.loop_node)) {
    const Block& block = p.index.block(other);
    if (other == p.node) continue;
    if (Writes(block, buffer)) return Refused(where, ": block ", block.name, " in the loop writes ", buffer, " too");
    if (Reads(block, buffer) && (other < p.node || !alone)) {
      return Refused(where, ": block ", block.name, " in the loop reads ", buffer,
                     ", maybe what was there before the constant");
    }
  }
  return absl::OkStatus();
}

// Whether the loop runs nothing but this variable of the block, whose domain it has.
bool RunsAlone(const Padding& p, size_t iter, int loop) {
  const Var& var = p.index.loop(loop).var;
  if (p.index.BlocksBelow(loop).size() != 1 || UsesVar(p.realize().predicate, var)) return false;
  for (size_t k = 0; k < p.realize().values.size(); ++k) {
    if (k != iter && UsesVar(p.realize().values[k], var)) return false;
  }
  for (int k = loop + 1; k < p.node; ++k) {
    if (p.index.IsLoop(k) && (UsesVar(p.index.loop(k).extent, var) || UsesVar(p.index.loop(k).min, var))) return false;
  }
  return true;
}

// Which loops shrink, and what is left of the condition.
absl::Status FindShrunk(Padding& p, const std::string& where) {
  const Block& block = p.block();
  Analyzer in_domain;
  for (const IterVar& iter : block.iters) in_domain.Bind(iter.var, iter.domain);
  const Expr condition = in_domain.Simplify(p.choice.condition);
  constexpr char kNeverHolds[] = ": the condition never holds, so the block is nothing but padding";
  if (IsConst(condition, 0)) return Refused(where, kNeverHolds);
  p.shrunk.resize(block.iters.size());
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const std::optional<int64_t> extent = ConstantValue(block.iters[i].domain.extent);
    const VarRef* use = p.realize().values[i].As<VarRef>();
    if (use == nullptr || !extent.has_value() || !IsConst(block.iters[i].domain.min, 0)) continue;
    const int n = p.index.FindLoop(use->var);
    if (n < p.loop_node || !IsConst(p.index.loop(n).min, 0) || !IsConst(p.index.loop(n).extent, *extent)) continue;
    if (RunsAlone(p, i, n)) p.shrunk[i] = {use->var, 0, *extent};
  }
  for (const Expr& part : Conjuncts(condition)) {
    const std::optional<Bound> bound = BoundOf(part, block.iters);
    if (!bound.has_value() || !p.shrunk[bound->iter].loop) {
      p.rest = Conjoin(p.rest, part);
      continue;
    }
    Shrunk& loop = p.shrunk[bound->iter];
    if (bound->first.has_value()) loop.first = std::max(loop.first, *bound->first);
    if (bound->end.has_value()) loop.end = std::min(loop.end, *bound->end);
    if (loop.first >= loop.end) return Refused(where, kNeverHolds);
  }
  return absl::OkStatus();
}

// The constant everywhere, in copies of the loops.
Stmt FillingNest(const Padding& p, const std::string& name) {
  LoopCopies loops;
  for (int n = p.index.parent(p.node); n >= p.loop_node; n = p.index.parent(n)) {
    if (!p.index.IsLoop(n)) continue;
    const For& loop = p.index.loop(n);
    loops.push_back({&loop, Var(loop.var.name() + "_pad", loop.var.type())});
  }
  const VarMap rename = RenameTo(loops);
  BlockRealize fill;
  fill.block.name = name;
  fill.block.iters = p.block().iters;
  fill.block.body = Stmt::Make(Store{p.store.buffer, p.store.indices, p.choice.no, Expr()});
  for (const Expr& value : p.realize().values) fill.values.push_back(Substitute(value, rename));
  fill.predicate = Substitute(p.realize().predicate, rename);
  DeclareRegions(fill.block);
  return WrapInCopies(loops, RenewDefinitions(Stmt::Make(std::move(fill))));
}

// The block where the condition holds.
BlockRealize CopyingBlock(const Padding& p) {
  BlockRealize inside = p.realize();
  std::vector<Expr> moved;
  Analyzer known;
  for (size_t i = 0; i < p.shrunk.size(); ++i) {
    IterVar& iter = inside.block.iters[i];
    const DType type = iter.var.type();
    moved.push_back(Expr(iter.var) + IntConst(p.shrunk[i].first, type));
    if (p.shrunk[i].loop) iter.domain.extent = IntConst(p.shrunk[i].end - p.shrunk[i].first, type);
    known.Bind(iter.var, iter.domain);
  }
  const VarMap shift = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < moved.size(); ++i) {
      if (p.block().iters[i].var.SameAs(var)) return moved[i];
    }
    return std::nullopt;
  };
  inside.block.body =
      known.Simplify(Substitute(Stmt::Make(Store{p.store.buffer, p.store.indices, p.choice.yes, Expr()}), shift));
  // What is left of the condition, first in the block's new variables, then in the loops'.
  Analyzer loops_known(RangesAroundAndBelow(p.index, p.loop_node));
  const Expr left = loops_known.Simplify(Substitute(Substitute(p.rest, shift), BindingsOf(p.realize())));
  inside.predicate = Conjoin(p.realize().predicate, left);
  DeclareRegions(inside.block);
  return inside;
}

// The loops, those that shrink with their new extents, around that block.
Stmt CopyingNest(const Padding& p) {
  const BlockRealize inside = CopyingBlock(p);
  return RewriteBottomUp(p.index.stmt(p.loop_node), [&](const Stmt& stmt) -> std::optional<Stmt> {
    if (const BlockRealize* found = stmt.As<BlockRealize>(); found != nullptr && found->block.name == p.block().name)
      return Stmt::Make(inside);
    const For* loop = stmt.As<For>();
    if (loop == nullptr) return std::nullopt;
    for (const Shrunk& s : p.shrunk) {
      if (!s.loop || !s.loop.SameAs(loop->var)) continue;
      For copy = *loop;
      copy.extent = IntConst(s.end - s.first, loop->var.type());
      return Stmt::Make(std::move(copy));
    }
    return std::nullopt;
  });
}

}  // namespace

absl::StatusOr<BlockRef> DecomposePadding(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "decompose_padding"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "decompose_padding"));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("decompose_padding(", index.block(node).name, ", ", index.loop(loop_node).var, ")");
  HONE_ASSIGN_OR_RETURN(Padding padding, FindPadding(index, node, loop_node, where));
  HONE_RETURN_IF_ERROR(CheckOthersInLoop(padding, where));
  HONE_RETURN_IF_ERROR(FindShrunk(padding, where));

  // ---- nothing below fails ----
  const std::string name = FreshBlockName(index, padding.block().name + "_pad_const");
  schedule.SetBody(index.Replace(loop_node, MakeSeq({FillingNest(padding, name), CopyingNest(padding)})));
  const int number =
      schedule.Record(DecomposePaddingStep{.block = block_ref, .loop = loop_ref}, {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const DecomposePaddingStep& step) {
  return DecomposePadding(schedule, step.block, step.loop).status();
}

HONE_PRIMITIVES(decompose_padding, DecomposePaddingStep)

}  // namespace hone
