#include "compiler/schedule/decompose_padding.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/schedule/dataflow.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/touched_regions.h"
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

}  // namespace

absl::StatusOr<BlockRef> DecomposePadding(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "decompose_padding"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "decompose_padding"));
  const ProgramIndex& index = schedule.index();
  const BlockRealize& realize = index.realize(node);
  const Block& block = realize.block;
  const For& target = index.loop(loop_node);
  const std::string where = Message("decompose_padding(", block.name, ", ", target.var, ")");
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
  Analyzer in_domain(domains);
  const Expr condition = in_domain.Simplify(choice->condition);
  if (IsConst(condition, 0)) return Refused(where, ": the condition never holds, so the block is nothing but padding");

  // Which loops shrink, and what is left of the condition.
  std::vector<Shrunk> shrunk(block.iters.size());
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const std::optional<int64_t> extent = ConstantValue(block.iters[i].domain.extent);
    const VarRef* use = realize.values[i].As<VarRef>();
    if (use == nullptr || !extent.has_value() || !IsConst(block.iters[i].domain.min, 0)) continue;
    const int n = index.FindLoop(use->var);
    if (n < loop_node || !IsConst(index.loop(n).min, 0) || !IsConst(index.loop(n).extent, *extent)) continue;
    bool alone = index.BlocksBelow(n).size() == 1 && !UsesVar(realize.predicate, use->var);
    for (size_t k = 0; k < realize.values.size(); ++k) alone &= k == i || !UsesVar(realize.values[k], use->var);
    for (int k = n + 1; k < node; ++k) {
      if (index.IsLoop(k)) alone &= !UsesVar(index.loop(k).extent, use->var) && !UsesVar(index.loop(k).min, use->var);
    }
    if (alone) shrunk[i] = {use->var, 0, *extent};
  }
  Expr rest = True();
  for (const Expr& part : Conjuncts(condition)) {
    const std::optional<Bound> bound = BoundOf(part, block.iters);
    if (!bound.has_value() || !shrunk[bound->iter].loop) {
      rest = Conjoin(rest, part);
      continue;
    }
    Shrunk& loop = shrunk[bound->iter];
    if (bound->first.has_value()) loop.first = std::max(loop.first, *bound->first);
    if (bound->end.has_value()) loop.end = std::min(loop.end, *bound->end);
    if (loop.first >= loop.end)
      return Refused(where, ": the condition never holds, so the block is nothing but padding");
  }

  // ---- nothing below fails ----
  // The filling block, in copies of the loops.
  std::vector<std::pair<const For*, Var>> loops;
  for (int n = index.parent(node); n >= loop_node; n = index.parent(n)) {
    if (index.IsLoop(n))
      loops.push_back({&index.loop(n), Var(index.loop(n).var.name() + "_pad", index.loop(n).var.type())});
  }
  const VarMap rename = [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [loop, fresh] : loops) {
      if (loop->var.SameAs(var)) return Expr(fresh);
    }
    return std::nullopt;
  };
  BlockRealize fill;
  fill.block.name = FreshBlockName(index, block.name + "_pad_const");
  fill.block.iters = block.iters;
  fill.block.body = Stmt::Make(Store{store->buffer, store->indices, choice->no, Expr()});
  for (const Expr& value : realize.values) fill.values.push_back(Substitute(value, rename));
  fill.predicate = Substitute(realize.predicate, rename);
  DeclareRegions(fill.block);
  const std::string fill_name = fill.block.name;
  Stmt fill_nest = RenewDefinitions(Stmt::Make(std::move(fill)));
  for (const auto& [loop, fresh] : loops) {  // innermost first
    For copy = *loop;
    copy.var = fresh;
    copy.min = Substitute(loop->min, rename);
    copy.extent = Substitute(loop->extent, rename);
    copy.body = std::move(fill_nest);
    fill_nest = Stmt::Make(std::move(copy));
  }

  // The copying block.
  BlockRealize inside = realize;
  std::vector<Expr> moved;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const DType type = block.iters[i].var.type();
    moved.push_back(Expr(block.iters[i].var) + IntConst(shrunk[i].first, type));
    if (shrunk[i].loop) inside.block.iters[i].domain.extent = IntConst(shrunk[i].end - shrunk[i].first, type);
  }
  Analyzer known;
  for (const IterVar& iter : inside.block.iters) known.Bind(iter.var, iter.domain);
  const VarMap shift = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i].var.SameAs(var)) return moved[i];
    }
    return std::nullopt;
  };
  inside.block.body =
      known.Simplify(Substitute(Stmt::Make(Store{store->buffer, store->indices, choice->yes, Expr()}), shift));
  // What is left of the condition, first in the block's new variables, then in the loops'.
  Analyzer loops_known(RangesAroundAndBelow(index, loop_node));
  const Expr left = loops_known.Simplify(Substitute(Substitute(rest, shift), BindingsOf(realize)));
  inside.predicate = Conjoin(realize.predicate, left);
  DeclareRegions(inside.block);
  const std::string name = block.name;
  const Stmt copied = RewriteBottomUp(index.stmt(loop_node), [&](const Stmt& stmt) -> std::optional<Stmt> {
    if (const BlockRealize* found = stmt.As<BlockRealize>(); found != nullptr && found->block.name == name)
      return Stmt::Make(inside);
    const For* loop = stmt.As<For>();
    if (loop == nullptr) return std::nullopt;
    for (const Shrunk& s : shrunk) {
      if (!s.loop || !s.loop.SameAs(loop->var)) continue;
      For copy = *loop;
      copy.extent = IntConst(s.end - s.first, loop->var.type());
      return Stmt::Make(std::move(copy));
    }
    return std::nullopt;
  });
  schedule.SetBody(index.Replace(loop_node, MakeSeq({std::move(fill_nest), copied})));
  const int number =
      schedule.Record(DecomposePaddingStep{.block = block_ref, .loop = loop_ref}, {Schedule::Output::Block(fill_name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const DecomposePaddingStep& step) {
  return DecomposePadding(schedule, step.block, step.loop).status();
}

}  // namespace hone
