#include "compiler/schedule/primitives/fuse.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

// The product of the extents, where the loops lie directly in each other and may become one.
absl::StatusOr<Expr> FusedExtent(const ProgramIndex& index, const std::vector<int>& nodes, const std::string& where) {
  Expr symbolic;  // the extent of the outermost loop, where that is no number
  int64_t product = 1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const For& loop = index.loop(nodes[i]);
    if (loop.kind != ForKind::kSerial) {
      return Refused(where, ": loop ", loop.var, " is ", Describe(loop.kind), "; fuse before it is made so");
    }
    if (!IsConst(loop.min, 0)) return Refused(where, ": loop ", loop.var, " starts at ", loop.min, ", not at 0");
    if (i > 0 && index.parent(nodes[i]) != nodes[i - 1]) {
      return Refused(where, ": loop ", loop.var, " is not the only statement directly inside loop ",
                     index.loop(nodes[i - 1]).var, "; bring the loops together with reorder, outermost first");
    }
    for (size_t k = 0; k < i; ++k) {
      if (UsesVar(loop.extent, index.loop(nodes[k]).var)) {
        return Refused(where, ": the extent of ", loop.var, " depends on ", index.loop(nodes[k]).var);
      }
    }
    const std::optional<int64_t> extent = ConstantValue(loop.extent);
    if (!extent.has_value() && i == 0) {
      symbolic = loop.extent;
      continue;
    }
    if (!extent.has_value()) {
      return Refused(where, ": the extent of ", loop.var, " is symbolic: ", loop.extent,
                     "; only that of the outermost loop may be, so bring it there with reorder");
    }
    if (*extent > 0 && product > (int64_t{1} << 62) / *extent) return Refused(where, ": the fused extent overflows");
    product *= *extent;
  }
  if (!symbolic) return IntConst(product, product > INT32_MAX ? kInt64 : index.loop(nodes[0]).var.type());
  const Bounds most = Analyzer(RangesAround(index, nodes[0])).ConstBounds(symbolic * IntConst(product, kInt64));
  return most.max > INT32_MAX ? MakeCast(kInt64, symbolic) * IntConst(product, kInt64)
                              : symbolic * IntConst(product, symbolic.type());
}

// The value of each loop's variable, over the fused one.
std::vector<Expr> ValuesOver(const Var& fused, const ProgramIndex& index, const std::vector<int>& nodes,
                             Analyzer& known) {
  const DType type = fused.type();
  std::vector<Expr> values(nodes.size());
  int64_t inner = 1;
  for (size_t i = nodes.size(); i-- > 0;) {
    const For& loop = index.loop(nodes[i]);
    Expr value = FloorDiv(Expr(fused), IntConst(inner, type));
    if (i > 0) {
      const int64_t extent = *ConstantValue(loop.extent);
      value = extent == 0 ? IntConst(0, type) : FloorMod(value, IntConst(extent, type));
      inner *= std::max<int64_t>(extent, 1);
    }
    values[i] = MakeCast(loop.var.type(), known.Simplify(value));
  }
  return values;
}

}  // namespace

absl::StatusOr<LoopRef> Fuse(Schedule& schedule, std::vector<LoopRef> loops) {
  if (loops.empty()) return Invalid("fuse(): no loops given");
  const ProgramIndex& index = schedule.index();
  std::vector<int> nodes;
  std::string names, fused_name;
  for (const LoopRef& ref : loops) {
    HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "fuse"));
    nodes.push_back(node);
    names += Message(names.empty() ? "" : ", ", index.loop(node).var);
    fused_name += index.loop(node).var.name() + "_";
  }
  HONE_ASSIGN_OR_RETURN(const Expr extent, FusedExtent(index, nodes, Message("fuse(", names, ")")));

  // ---- nothing below fails ----
  Analyzer known(RangesAround(index, nodes[0]));
  const For& first = index.loop(nodes[0]);
  const DType type = extent.type();
  const Var fused(fused_name + "fused", type);
  known.Bind(fused, Range{IntConst(0, type), extent});
  const std::vector<Expr> values = ValuesOver(fused, index, nodes, known);
  const VarMap map = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (index.loop(nodes[i]).var.SameAs(var)) return values[i];
    }
    return std::nullopt;
  };
  Stmt body = RewriteBindings(index.loop(nodes.back()).body, map, Expr(), known);
  For loop{fused, IntConst(0, type), extent, ForKind::kSerial, "", first.annotations, std::move(body)};
  schedule.SetBody(index.Replace(nodes[0], Stmt::Make(std::move(loop))));
  const int number = schedule.Record(FuseStep{.loops = std::move(loops)}, {Schedule::Output::Loop(fused)});
  return LoopRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const FuseStep& step) { return Fuse(schedule, step.loops).status(); }

HONE_PRIMITIVES(fuse, FuseStep)

}  // namespace hone
