#include "compiler/schedule/primitives/rfactor.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
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

using Substitution = std::vector<std::pair<Var, Expr>>;

// What is known of the reduction once nothing stands against it.
struct Factoring {
  const ProgramIndex& index;
  const For& factor;
  int node;  // of the block
  BlockReduction reduction;
  std::vector<int> axes;           // of the factor in the buffers of partial results
  std::vector<int> loops;          // around the block
  size_t top = 0;                  // the outermost of them that holds nothing but this block
  std::vector<const For*> others;  // the other loops that reduce
  std::vector<Expr> spatial_conditions = {};

  const BlockRealize& realize() const { return index.realize(node); }
  const Block& block() const { return realize().block; }
  bool Uses(const Var& loop, bool reduce) const { return IsMadeOf(realize(), loop, reduce); }
};

// The block, its update and the place of the new dimension.
absl::StatusOr<Factoring> FindReduction(const ProgramIndex& index, int loop_node, int factor_axis,
                                        const std::string& where) {
  const For& factor = index.loop(loop_node);
  const std::vector<int> blocks = index.BlocksBelow(loop_node);
  if (blocks.size() != 1)
    return Refused(where, ": ", blocks.size(), " blocks are under the loop; it must be exactly one");
  const Block& block = index.realize(blocks[0]).block;
  if (factor.kind != ForKind::kSerial || !IsConst(factor.min, 0) || !ConstantValue(factor.extent).has_value()) {
    return Refused(where, ": the loop is not a serial one from 0 to a number");
  }
  if (!block.init)
    return Refused(where, ": block ", block.name, " has no init; use rfactor before decompose_reduction");
  absl::StatusOr<BlockReduction> reduction = MatchReduction(block);
  if (!reduction.ok()) return Refused(where, ": the update of block ", block.name, " ", reduction.status().message());
  std::vector<int> axes;
  for (size_t i = 0; i < reduction->elements.size(); ++i) {
    // Every partial result starts as the whole does: it must do no harm to begin from that value twice.
    if (!reduction->StartCountsOnce(i)) {
      return Refused(where, ": block ", block.name, " starts from ", reduction->starts[i],
                     ", which every partial result would count once more; use rfactor before fuse_reduction_epilogue");
    }
    const Buffer& buffer = reduction->elements[i].buffer;
    const int rank = buffer.rank();
    const int axis = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
    if (axis < 0 || axis > rank) {
      return Invalid(where, ": factor_axis is ", factor_axis, ", the new buffer has ", rank + 1, " dimensions");
    }
    if (static_cast<size_t>(rank) >= kMostBufferDimensions) {
      return Refused(where, ": ", buffer, " has ", rank, " dimensions, and with one for the partial results it would ",
                     "have more than the ", kMostBufferDimensions,
                     " that are supported; fuse some with transform_layout");
    }
    axes.push_back(axis);
  }
  return Factoring{.index = index,
                   .factor = factor,
                   .node = blocks[0],
                   .reduction = *std::move(reduction),
                   .axes = std::move(axes),
                   .loops = index.LoopsAbove(blocks[0]),
                   .others = {}};
}

// The loops of the nest, and which of them reduce.
absl::Status FindLoops(Factoring& f, const std::string& where) {
  if (!f.Uses(f.factor.var, true)) return Refused(where, ": the loop does not reduce");
  f.top = f.loops.size() - 1;
  while (f.top > 0 && f.index.BlocksBelow(f.loops[f.top - 1]).size() == 1) --f.top;
  for (size_t i = 0; i < f.loops.size(); ++i) {
    const For& loop = f.index.loop(f.loops[i]);
    if (!f.Uses(loop.var, true)) continue;
    if (f.Uses(loop.var, false))
      return Refused(where, ": loop ", loop.var, " runs over spatial and reduce variables at once");
    if (i < f.top) return Refused(where, ": reduce loop ", loop.var, " holds other blocks too");
    if (loop.var.SameAs(f.factor.var)) continue;
    if (!IsConst(loop.min, 0)) return Refused(where, ": reduce loop ", loop.var, " starts at ", loop.min, ", not at 0");
    f.others.push_back(&loop);
  }
  return absl::OkStatus();
}

// Every partial result needs a value: what the predicate says of the reduction holds where the other loops start.
absl::Status CheckEveryPartHasAValue(Factoring& f, const std::string& where) {
  Substitution at_start;
  for (const For* loop : f.others) at_start.push_back({loop->var, IntConst(0, loop->var.type())});
  const VarRanges ranges = RangesAround(f.index, f.node);
  for (const Expr& part : Conjuncts(f.realize().predicate)) {
    bool about_reduction = UsesVar(part, f.factor.var);
    for (const For* loop : f.others) about_reduction |= UsesVar(part, loop->var);
    if (!about_reduction) {
      f.spatial_conditions.push_back(part);
      continue;
    }
    Analyzer known(ranges);
    if (!known.CanProve(Substitute(part, MapOf(at_start)))) {
      return Refused(where, ": where ", part,
                     " fails, some partial results would stay without a value; "
                     "choose factors that divide the reduction");
    }
  }
  return absl::OkStatus();
}

using Indices = std::vector<std::vector<Expr>>;  // of each element of the reduction

Indices ElementIndices(const Factoring& f, const VarMap& map) {
  Indices at;
  for (const Store& element : f.reduction.elements) {
    at.emplace_back();
    for (const Expr& i : element.indices) at.back().push_back(Substitute(i, map));
  }
  return at;
}

Indices PartIndices(const Factoring& f, const VarMap& map, const Expr& part) {
  Indices at = ElementIndices(f, map);
  for (size_t i = 0; i < at.size(); ++i) at[i].insert(at[i].begin() + f.axes[i], part);
  return at;
}

Stmt Set(const std::vector<Buffer>& buffers, const Indices& at, const std::vector<Expr>& values) {
  std::vector<Stmt> stores;
  for (size_t i = 0; i < buffers.size(); ++i) stores.push_back(Stmt::Make(Store{buffers[i], at[i], values[i], Expr()}));
  return MakeSeq(std::move(stores));
}

// The block's spatial variables again, with these values, and what stands for the old ones.
Substitution CopySpatialIters(const Factoring& f, const Substitution& loops, BlockRealize& copy) {
  Substitution old_to_new;
  for (size_t i = 0; i < f.block().iters.size(); ++i) {
    const IterVar& iter = f.block().iters[i];
    if (iter.kind != IterKind::kSpatial) continue;
    const Var v(iter.var.name(), iter.var.type());
    copy.block.iters.push_back({v, iter.domain, IterKind::kSpatial});
    copy.values.push_back(Substitute(f.realize().values[i], MapOf(loops)));
    old_to_new.push_back({iter.var, Expr(v)});
  }
  return old_to_new;
}

// The partial results: the loops stay, the reduce variables are made of them.
BlockRealize PartialBlock(const Factoring& f, const std::vector<Buffer>& rf, const std::string& name) {
  BlockRealize partial;
  partial.predicate = f.realize().predicate;
  partial.block.name = name;
  partial.block.annotations = f.block().annotations;
  const Var part(Message("v", f.factor.var), f.factor.var.type());
  partial.block.iters.push_back({part, Range{f.factor.min, f.factor.extent}, IterKind::kSpatial});
  partial.values.push_back(f.factor.var);
  Substitution loop_to_iter = {{f.factor.var, Expr(part)}};
  Substitution old_to_new = CopySpatialIters(f, {}, partial);
  for (const For* loop : f.others) {
    const Var v(Message("v", loop->var), loop->var.type());
    partial.block.iters.push_back({v, Range{loop->min, loop->extent}, IterKind::kReduce});
    partial.values.push_back(loop->var);
    loop_to_iter.push_back({loop->var, Expr(v)});
  }
  for (size_t i = 0; i < f.block().iters.size(); ++i) {
    if (f.block().iters[i].kind == IterKind::kSpatial) continue;
    old_to_new.push_back({f.block().iters[i].var, Substitute(f.realize().values[i], MapOf(loop_to_iter))});
  }
  const VarMap map = MapOf(old_to_new);
  const Indices at = PartIndices(f, map, part);
  std::vector<Expr> terms;
  for (const Expr& term : f.reduction.terms) terms.push_back(Substitute(term, map));
  if (f.others.empty()) {  // each partial result is one term
    partial.block.body = Set(rf, at, terms);
  } else {
    partial.block.init = Set(rf, at, f.reduction.starts);
    partial.block.body = f.reduction.Update(rf, at, terms);
  }
  DeclareRegions(partial.block);
  return partial;
}

// The reduction of those: the spatial loops again, and one over the parts.
Stmt FinalNest(const Factoring& f, const std::vector<Buffer>& rf) {
  BlockRealize final;
  final.block.name = f.block().name;
  final.predicate = True();
  Substitution fresh_loops;
  LoopCopies nest;
  Analyzer known(RangesAround(f.index, f.loops[f.top]));
  for (size_t i = f.top; i < f.loops.size(); ++i) {
    const For& loop = f.index.loop(f.loops[i]);
    if (!loop.var.SameAs(f.factor.var) && !f.Uses(loop.var, false)) {
      fresh_loops.push_back({loop.var, loop.min});  // left out, at its start
      continue;
    }
    const Var fresh(loop.var.name(), loop.var.type());
    nest.push_back({&loop, fresh});
    fresh_loops.push_back({loop.var, Expr(fresh)});
    known.Bind(fresh, Range{loop.min, loop.extent});
  }
  const Substitution old_to_new = CopySpatialIters(f, fresh_loops, final);
  const Var part(Message("v", f.factor.var), f.factor.var.type());
  final.block.iters.push_back({part, Range{f.factor.min, f.factor.extent}, IterKind::kReduce});
  final.values.push_back(Substitute(Expr(f.factor.var), MapOf(fresh_loops)));
  for (const Expr& condition : f.spatial_conditions) {
    final.predicate = Conjoin(final.predicate, Substitute(condition, MapOf(fresh_loops)));
  }
  final.predicate = known.Simplify(final.predicate);
  const VarMap map = MapOf(old_to_new);
  const Indices at = ElementIndices(f, map), part_at = PartIndices(f, map, part);
  std::vector<Buffer> buffers;
  std::vector<Expr> parts;
  for (size_t i = 0; i < rf.size(); ++i) {
    buffers.push_back(f.reduction.elements[i].buffer);
    parts.push_back(MakeLoad(rf[i], part_at[i]));
  }
  final.block.init = Set(buffers, at, f.reduction.starts);
  final.block.body = f.reduction.Update(buffers, at, parts);
  DeclareRegions(final.block);
  std::reverse(nest.begin(), nest.end());
  return WrapInCopies(nest, Stmt::Make(std::move(final)));
}

}  // namespace

absl::StatusOr<BlockRef> Rfactor(Schedule& schedule, LoopRef ref, int factor_axis) {
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(ref, "rfactor"));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("rfactor(", index.loop(loop_node).var, ")");
  HONE_ASSIGN_OR_RETURN(Factoring f, FindReduction(index, loop_node, factor_axis, where));
  HONE_RETURN_IF_ERROR(FindLoops(f, where));
  HONE_RETURN_IF_ERROR(CheckEveryPartHasAValue(f, where));

  // ---- nothing below fails ----
  std::vector<Buffer> rf;
  for (size_t i = 0; i < f.axes.size(); ++i) {
    const Buffer& buffer = f.reduction.elements[i].buffer;
    std::vector<Expr> shape = buffer.shape();
    shape.insert(shape.begin() + f.axes[i], IntConst(*ConstantValue(f.factor.extent)));
    rf.push_back(Buffer(Message(buffer.name(), "_rf"), buffer.type(), shape));
  }
  const std::string name = FreshBlockName(index, f.block().name + "_rf");

  const std::string scope = index.block(index.EnclosingBlock(f.node)).name;
  const Var top = index.loop(f.loops[f.top]).var;
  const ProgramIndex replaced(index.Replace(f.node, Stmt::Make(PartialBlock(f, rf, name))));
  const ProgramIndex both(replaced.InsertBeside(replaced.FindLoop(top), Stmt(), FinalNest(f, rf)));
  const int home = both.FindBlock(scope);
  BlockRealize allocating = both.realize(home);
  allocating.block.allocs.insert(allocating.block.allocs.end(), rf.begin(), rf.end());
  schedule.SetBody(both.Replace(home, Stmt::Make(std::move(allocating))));
  const int number =
      schedule.Record(RfactorStep{.loop = ref, .factor_axis = factor_axis}, {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const RfactorStep& step) {
  return Rfactor(schedule, step.loop, AsIndex(step.factor_axis)).status();
}

HONE_PRIMITIVES(rfactor, RfactorStep)

}  // namespace hone
