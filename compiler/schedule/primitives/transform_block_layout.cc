#include "compiler/schedule/primitives/transform_block_layout.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/plain_nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

// The kind of each new variable: that of the old ones it is made of.
absl::StatusOr<std::vector<IterKind>> KindsOf(const IndexMap& map, const Block& block,
                                              const std::vector<int64_t>& extents, const std::string& where) {
  std::vector<IterKind> kinds;
  for (size_t k = 0; k < map.outputs.size(); ++k) {
    std::optional<IterKind> kind;
    for (size_t i = 0; i < map.inputs.size(); ++i) {
      if (extents[i] == 1 || !UsesVar(map.outputs[k], map.inputs[i])) continue;
      if (kind.has_value() && *kind != block.iters[i].kind) {
        return Refused(where, ": output ", k, " of ", ToText(map), " is made of both spatial and reduce variables");
      }
      kind = block.iters[i].kind;
    }
    kinds.push_back(kind.value_or(IterKind::kSpatial));
  }
  return kinds;
}

absl::Status CheckOrderIsFree(const Block& block, const std::string& where) {
  bool reduces = false;
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kOpaque) return Refused(where, ": the order of ", iter.var, " counts");
    reduces |= iter.kind == IterKind::kReduce;
  }
  if (UpdatesInPlace(block) && !reduces) return Refused(where, ": the block reads what it writes, so its order counts");
  return absl::OkStatus();
}

// The block over new variables `iters`, with each old one replaced by its value.
Block WithValues(const Block& block, std::vector<IterVar> iters, const std::vector<Expr>& values, Analyzer& known) {
  const VarMap to_new = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i].var.SameAs(var)) return values[i];
    }
    return std::nullopt;
  };
  const auto rewrite = [&](const Stmt& stmt) { return stmt ? known.Simplify(Substitute(stmt, to_new)) : stmt; };
  const auto rewrite_regions = [&](std::vector<BufferRegion>& regions) {
    for (BufferRegion& access : regions) {
      for (Range& r : access.region)
        r = Range{known.Simplify(Substitute(r.min, to_new)), known.Simplify(Substitute(r.extent, to_new))};
    }
  };
  Block changed = block;
  changed.iters = std::move(iters);
  changed.init = rewrite(block.init);
  changed.body = rewrite(block.body);
  rewrite_regions(changed.reads);
  rewrite_regions(changed.writes);
  for (MatchBuffer& match : changed.matches) {
    for (Range& r : match.source.region) r = Range{Substitute(r.min, to_new), Substitute(r.extent, to_new)};
  }
  return changed;
}

}  // namespace

absl::Status TransformBlockLayout(Schedule& schedule, BlockRef ref, IndexMap map) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "transform_block_layout"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::string where = Message("transform_block_layout(", block.name, ")");
  if (node == 0) return Refused(where, ": the root block has no iteration variables");
  HONE_ASSIGN_OR_RETURN(const PlainNest nest, FindPlainNest(index, node, where));
  HONE_RETURN_IF_ERROR(CheckOrderIsFree(block, where));
  const absl::StatusOr<InverseMap> inverse = InvertOneToOne(map, nest.extents);
  if (!inverse.ok()) return Annotate(inverse.status(), where);
  HONE_ASSIGN_OR_RETURN(const std::vector<IterKind> kinds, KindsOf(map, block, nest.extents, where));

  // ---- nothing below fails ----
  Analyzer known;
  std::vector<IterVar> iters;
  for (size_t k = 0; k < map.outputs.size(); ++k) {
    iters.push_back({Var(Message("v", k)), Range{IntConst(0), inverse->shape[k]}, kinds[k]});
    known.Bind(iters.back().var, iters.back().domain);
  }
  std::vector<Expr> values;  // of the old variables
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const Expr value = Substitute(inverse->original[i], [&](const Var& var) -> std::optional<Expr> {
      for (size_t k = 0; k < inverse->indices.size(); ++k) {
        if (inverse->indices[k].SameAs(var)) return Expr(iters[k].var);
      }
      return std::nullopt;
    });
    values.push_back(MakeCast(block.iters[i].var.type(), known.Simplify(value)));
  }
  schedule.SetBody(
      index.Replace(Outermost(index, node), NestAround(WithValues(block, std::move(iters), values, known))));
  schedule.Record(TransformBlockLayoutStep{.block = ref, .index_map = std::move(map)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TransformBlockLayoutStep& step) {
  return TransformBlockLayout(schedule, step.block, step.index_map);
}

HONE_PRIMITIVES(transform_block_layout, TransformBlockLayoutStep)

}  // namespace hone
