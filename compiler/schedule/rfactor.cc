#include "compiler/schedule/rfactor.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/dataflow.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/reduction.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/step_argument.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

VarMap MapOf(const std::vector<std::pair<Var, Expr>>& pairs) {
  return [&pairs](const Var& var) -> std::optional<Expr> {
    for (const auto& [from, to] : pairs) {
      if (from.SameAs(var)) return to;
    }
    return std::nullopt;
  };
}

bool IsNumber(const Expr& e, int64_t value) {
  const FloatImm* real = e.As<FloatImm>();
  return real == nullptr ? IsConst(e, value) : real->value == static_cast<double>(value);
}

}  // namespace

absl::StatusOr<BlockRef> Rfactor(Schedule& schedule, LoopRef ref, int factor_axis) {
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(ref, "rfactor"));
  const ProgramIndex& index = schedule.index();
  const For& factor = index.loop(loop_node);
  const std::string where = Message("rfactor(", factor.var, ")");
  const std::vector<int> blocks = index.BlocksBelow(loop_node);
  if (blocks.size() != 1)
    return Refused(where, ": ", blocks.size(), " blocks are under the loop; it must be exactly one");
  const int node = blocks[0];
  const BlockRealize& realize = index.realize(node);
  const Block& block = realize.block;
  if (factor.kind != ForKind::kSerial || !IsConst(factor.min, 0) || !ConstantValue(factor.extent).has_value()) {
    return Refused(where, ": the loop is not a serial one from 0 to a number");
  }
  if (!block.init)
    return Refused(where, ": block ", block.name, " has no init; use rfactor before decompose_reduction");
  const Store* store = block.body.As<Store>();
  const std::optional<ReductionUpdate> update = store == nullptr ? std::nullopt : MatchUpdate(*store);
  if (!update.has_value() || block.writes.size() != 1 || block.init.As<Store>() == nullptr) {
    return Refused(where, ": the update of block ", block.name,
                   " is not x = x + v, x * v, min(x, v) or max(x, v) of one element");
  }
  // Every partial result starts as the whole does: it must do no harm to begin from that value twice.
  const Expr start = block.init.As<Store>()->value;
  const bool constant = start.As<IntImm>() != nullptr || start.As<FloatImm>() != nullptr;
  const bool idempotent = update->op == BinaryOp::kMin || update->op == BinaryOp::kMax;
  if (!constant || (!idempotent && !IsNumber(start, update->op == BinaryOp::kAdd ? 0 : 1))) {
    return Refused(where, ": block ", block.name, " starts from ", start,
                   ", which every partial result would count once more; use rfactor before fuse_reduction_epilogue");
  }
  const Buffer buffer = store->buffer;
  const int rank = buffer.rank();
  const int axis = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  if (axis < 0 || axis > rank) {
    return Invalid(where, ": factor_axis is ", factor_axis, ", the new buffer has ", rank + 1, " dimensions");
  }
  const auto uses = [&](const Var& var, bool reduce) {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if ((block.iters[i].kind != IterKind::kSpatial) == reduce && UsesVar(realize.values[i], var)) return true;
    }
    return false;
  };
  if (!uses(factor.var, true)) return Refused(where, ": the loop does not reduce");
  // The nest: from the outermost loop that holds nothing but this block.
  const std::vector<int> loops = index.LoopsAbove(node);
  size_t top = loops.size() - 1;
  while (top > 0 && index.BlocksBelow(loops[top - 1]).size() == 1) --top;
  std::vector<std::pair<Var, Expr>> at_start;  // the other reduce loops, standing at their start
  std::vector<const For*> reducing;
  for (size_t i = 0; i < loops.size(); ++i) {
    const For& loop = index.loop(loops[i]);
    if (!uses(loop.var, true)) continue;
    if (uses(loop.var, false))
      return Refused(where, ": loop ", loop.var, " runs over spatial and reduce variables at once");
    if (i < top) return Refused(where, ": reduce loop ", loop.var, " holds other blocks too");
    if (loop.var.SameAs(factor.var)) continue;
    if (!IsConst(loop.min, 0)) return Refused(where, ": reduce loop ", loop.var, " starts at ", loop.min, ", not at 0");
    at_start.push_back({loop.var, IntConst(0, loop.var.type())});
    reducing.push_back(&loop);
  }
  const VarRanges ranges = RangesAround(index, node);
  std::vector<Expr> spatial_conditions;
  for (const Expr& part : Conjuncts(realize.predicate)) {
    bool about_reduction = UsesVar(part, factor.var);
    for (const For* loop : reducing) about_reduction |= UsesVar(part, loop->var);
    if (!about_reduction) {
      spatial_conditions.push_back(part);
      continue;
    }
    Analyzer known(ranges);
    if (!known.CanProve(Substitute(part, MapOf(at_start)))) {
      return Refused(where, ": where ", part,
                     " fails, some partial results would stay without a value; "
                     "choose factors that divide the reduction");
    }
  }

  // ---- nothing below fails ----
  const int64_t parts = *ConstantValue(factor.extent);
  std::vector<Expr> rf_shape = buffer.shape();
  rf_shape.insert(rf_shape.begin() + axis, IntConst(parts));
  const Buffer rf(Message(buffer.name(), "_rf"), buffer.type(), rf_shape);
  const std::string rf_name = FreshBlockName(index, block.name + "_rf");

  // The partial results: the loops stay, the reduce variables are made of them.
  BlockRealize partial;
  partial.predicate = realize.predicate;
  partial.block.name = rf_name;
  partial.block.annotations = block.annotations;
  const Var vr(Message("v", factor.var), factor.var.type());
  partial.block.iters.push_back({vr, Range{factor.min, factor.extent}, IterKind::kSpatial});
  partial.values.push_back(factor.var);
  std::vector<std::pair<Var, Expr>> loop_to_iter = {{factor.var, Expr(vr)}};
  std::vector<std::pair<Var, Expr>> iter_to_new;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    const Var v(block.iters[i].var.name(), block.iters[i].var.type());
    partial.block.iters.push_back({v, block.iters[i].domain, IterKind::kSpatial});
    partial.values.push_back(realize.values[i]);
    iter_to_new.push_back({block.iters[i].var, Expr(v)});
  }
  for (const For* loop : reducing) {
    const Var v(Message("v", loop->var), loop->var.type());
    partial.block.iters.push_back({v, Range{loop->min, loop->extent}, IterKind::kReduce});
    partial.values.push_back(loop->var);
    loop_to_iter.push_back({loop->var, Expr(v)});
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind == IterKind::kSpatial) continue;
    iter_to_new.push_back({block.iters[i].var, Substitute(realize.values[i], MapOf(loop_to_iter))});
  }
  const auto rf_indices = [&](const std::vector<Expr>& indices, const VarMap& map, const Expr& part) {
    std::vector<Expr> at;
    for (const Expr& i : indices) at.push_back(Substitute(i, map));
    at.insert(at.begin() + axis, part);
    return at;
  };
  const VarMap to_partial = MapOf(iter_to_new);
  const std::vector<Expr> partial_at = rf_indices(store->indices, to_partial, vr);
  const Expr partial_value = Substitute(update->value, to_partial);
  const Expr identity = Substitute(block.init.As<Store>()->value, to_partial);
  if (reducing.empty()) {  // each partial result is one term
    partial.block.body = Stmt::Make(Store{rf, partial_at, partial_value, Expr()});
  } else {
    partial.block.init = Stmt::Make(Store{rf, partial_at, identity, Expr()});
    partial.block.body =
        Stmt::Make(Store{rf, partial_at, MakeBinary(update->op, MakeLoad(rf, partial_at), partial_value), Expr()});
  }
  DeclareRegions(partial.block);

  // The reduction of those: the spatial loops again, and one over the parts.
  BlockRealize final;
  final.block.name = block.name;
  final.predicate = True();
  std::vector<std::pair<Var, Expr>> fresh_loops;
  std::vector<std::pair<const For*, Var>> final_loops;
  Analyzer known(RangesAround(index, loops[top]));
  for (size_t i = top; i < loops.size(); ++i) {
    const For& loop = index.loop(loops[i]);
    if (!loop.var.SameAs(factor.var) && !uses(loop.var, false)) {
      fresh_loops.push_back({loop.var, loop.min});  // left out, at its start
      continue;
    }
    const Var fresh(loop.var.name(), loop.var.type());
    final_loops.push_back({&loop, fresh});
    fresh_loops.push_back({loop.var, Expr(fresh)});
    known.Bind(fresh, Range{loop.min, loop.extent});
  }
  std::vector<std::pair<Var, Expr>> iter_to_final;
  const Var vr_final(Message("v", factor.var), factor.var.type());
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    const Var v(block.iters[i].var.name(), block.iters[i].var.type());
    final.block.iters.push_back({v, block.iters[i].domain, IterKind::kSpatial});
    final.values.push_back(Substitute(realize.values[i], MapOf(fresh_loops)));
    iter_to_final.push_back({block.iters[i].var, Expr(v)});
  }
  final.block.iters.push_back({vr_final, Range{factor.min, factor.extent}, IterKind::kReduce});
  final.values.push_back(Substitute(Expr(factor.var), MapOf(fresh_loops)));
  for (const Expr& part : spatial_conditions)
    final.predicate = Conjoin(final.predicate, Substitute(part, MapOf(fresh_loops)));
  final.predicate = known.Simplify(final.predicate);
  const VarMap to_final = MapOf(iter_to_final);
  std::vector<Expr> at;
  for (const Expr& i : store->indices) at.push_back(Substitute(i, to_final));
  final.block.init = Stmt::Make(Store{buffer, at, Substitute(block.init.As<Store>()->value, to_final), Expr()});
  final.block.body = Stmt::Make(
      Store{buffer, at,
            MakeBinary(update->op, MakeLoad(buffer, at), MakeLoad(rf, rf_indices(store->indices, to_final, vr_final))),
            Expr()});
  DeclareRegions(final.block);
  Stmt final_nest = Stmt::Make(std::move(final));
  for (size_t i = final_loops.size(); i-- > 0;) {
    For copy = *final_loops[i].first;
    copy.var = final_loops[i].second;
    copy.body = std::move(final_nest);
    final_nest = Stmt::Make(std::move(copy));
  }

  const int scope = index.EnclosingBlock(node);
  const std::string scope_name = index.block(scope).name;
  const Var top_var = index.loop(loops[top]).var;
  const ProgramIndex replaced(index.Replace(node, Stmt::Make(std::move(partial))));
  const ProgramIndex both(replaced.InsertBeside(replaced.FindLoop(top_var), Stmt(), std::move(final_nest)));
  const int home = both.FindBlock(scope_name);
  BlockRealize allocating = both.realize(home);
  allocating.block.allocs.push_back(rf);
  schedule.SetBody(both.Replace(home, Stmt::Make(std::move(allocating))));
  const int number =
      schedule.Record(RfactorStep{.loop = ref, .factor_axis = factor_axis}, {Schedule::Output::Block(rf_name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const RfactorStep& step) {
  return Rfactor(schedule, step.loop, AsIndex(step.factor_axis)).status();
}

}  // namespace hone
