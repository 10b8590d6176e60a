#include "compiler/schedule/prefetch.h"

#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/stage.h"
#include "compiler/schedule/step_argument.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<BlockRef> Prefetch(Schedule& schedule, BlockRef block_ref, int read_index, LoopRef loop_ref,
                                  int64_t distance) {
  constexpr int64_t kLineBytes = 64, kMostLines = 4096;
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "prefetch"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "prefetch"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const For& loop = index.loop(loop_node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid("prefetch(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
  }
  const Buffer buffer = block.reads[read_index].buffer;
  const std::string where = Message("prefetch(", block.name, ", ", buffer, ", ", loop.var, ")");
  if (distance < 1 || distance > INT32_MAX) return Invalid(where, ": distance is ", distance, ", below 1 or too far");
  if (!index.Contains(loop_node, node) || index.EnclosingBlock(node) != index.EnclosingBlock(loop_node)) {
    return Refused(where, ": the loop is not around the block");
  }
  for (int n = loop_node; n >= 0 && !index.IsBlock(n); n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    const ForKind kind = index.loop(n).kind;
    if (kind == ForKind::kVectorized || (n == loop_node && kind != ForKind::kSerial && kind != ForKind::kUnrolled)) {
      return Refused(where, ": loop ", index.loop(n).var, " is ", Describe(kind),
                     ", so no iteration of it follows another; choose a serial loop inside");
    }
  }
  if (buffer.scope() == Scope::kRegister) return Refused(where, ": it lives in registers, which are not fetched");
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer.shape()) {
    const std::optional<int64_t> value = ConstantValue(extent);
    if (!value.has_value()) return Refused(where, ": the shape is symbolic: ", extent);
    shape.push_back(*value);
  }
  if (shape.empty()) return Refused(where, ": the buffer has no dimensions");
  std::vector<Range> all;
  for (const Expr& extent : buffer.shape()) all.push_back(Range{IntConst(0), extent});
  HONE_RETURN_IF_ERROR(CheckThereBefore(index, node, buffer, all, where));

  VarRanges around = RangesAround(index, loop_node);
  around[loop.var] = Range{loop.min, loop.extent};
  Analyzer known(around);
  std::vector<IntervalSet> region = UnionOf(TouchedWithin(index, loop_node, node, buffer, false, known), known);
  const int64_t line = std::max<int64_t>(1, kLineBytes / buffer.type().bytes());
  const int last = buffer.rank() - 1;
  bool moves = false;
  int64_t lines = 1;
  std::vector<int64_t> extents, domains;
  for (int d = 0; d <= last; ++d) {
    IntervalSet& set = region[d];
    bool usable = set.bounded();
    for (const Expr& end : {set.min, set.max}) {
      if (!usable) break;
      ForEachExpr(end, [&](const Expr& e) {
        usable &= e.As<Load>() == nullptr;
        return usable;
      });
      for (const Var& var : FreeVars(end)) usable &= around.count(var) != 0;
    }
    domains.push_back(shape[d]);
    if (!usable) set = {IntConst(0), IntConst(shape[d] - 1)};
    moves |= UsesVar(set.min, loop.var);
    const VarMap later = [&](const Var& var) -> std::optional<Expr> {
      return var.SameAs(loop.var) ? std::optional<Expr>(Expr(var) + IntConst(distance, var.type())) : std::nullopt;
    };
    set = {Substitute(set.min, later), Substitute(set.max, later)};
    if (d == last) {  // in lines
      domains[d] = (shape[d] + line - 1) / line;
      set = {FloorDiv(set.min, IntConst(line)), FloorDiv(set.max, IntConst(line))};
    }
    set = {known.Simplify(set.min), known.Simplify(set.max)};
    const std::optional<int64_t> extent = MaxExtent(set, known);
    if (!extent.has_value())
      return Refused(where, ": how much of dimension ", d, " one iteration reads has no constant bound");
    extents.push_back(std::min(std::max<int64_t>(*extent, 1), domains[d]));
    lines = lines > kMostLines ? lines : lines * extents[d];
  }
  if (!moves) return Refused(where, ": every iteration reads the same part, which stays in the cache by itself");
  if (lines > kMostLines) {
    return Refused(where, ": one iteration reads more than ", kMostLines,
                   " cache lines, more than a cache near the core holds; choose a loop further in");
  }

  // ---- nothing below fails ----
  BlockRealize fetch;
  fetch.block.name = FreshBlockName(index, Message(buffer.name(), "_prefetch"));
  fetch.predicate = known.Simplify(Expr(loop.var) + IntConst(distance, loop.var.type()) < loop.min + loop.extent);
  std::vector<std::pair<Var, int64_t>> loops;
  std::vector<Expr> indices;
  for (int d = 0; d <= last; ++d) {
    const IterVar iter = SpatialIter(Message("v", d), IntConst(domains[d]));
    Expr value = region[d].min;
    if (extents[d] != 1) {
      const Var ax(Message("ax", loops.size()));
      loops.push_back({ax, extents[d]});
      known.Bind(ax, Range{IntConst(0), IntConst(extents[d])});
      value = value + Expr(ax);
    }
    value = MakeCast(iter.var.type(), known.Simplify(value));
    ConstraintScope inside(known, fetch.predicate);
    fetch.predicate = Conjoin(fetch.predicate, known.Simplify(value >= IntConst(0)));
    fetch.predicate = Conjoin(fetch.predicate, known.Simplify(value < IntConst(domains[d])));
    fetch.block.iters.push_back(iter);
    fetch.values.push_back(value);
    indices.push_back(d == last ? Expr(iter.var) * IntConst(line) : Expr(iter.var));
  }
  fetch.block.reads = {{buffer, {}}};
  for (const Expr& e : indices) fetch.block.reads[0].region.push_back(Range{e, IntConst(1)});
  fetch.block.body = Stmt::Make(Evaluate{MakeCall("prefetch", {MakeLoad(buffer, indices)})});
  const std::string name = fetch.block.name;
  Stmt nest = Stmt::Make(std::move(fetch));
  for (size_t i = loops.size(); i-- > 0;) nest = MakeLoop(loops[i].first, IntConst(loops[i].second), std::move(nest));
  const Stmt body = index.Replace(loop_node + 1, MakeSeq({std::move(nest), index.stmt(loop_node + 1)}));
  schedule.SetBody(WithReads(body, index.block(index.EnclosingBlock(node)).name, buffer, all));
  const int number = schedule.Record(
      PrefetchStep{.block = block_ref, .read_buffer_index = read_index, .loop = loop_ref, .distance = distance},
      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const PrefetchStep& step) {
  return Prefetch(schedule, step.block, AsIndex(step.read_buffer_index), step.loop, step.distance).status();
}

}  // namespace hone
