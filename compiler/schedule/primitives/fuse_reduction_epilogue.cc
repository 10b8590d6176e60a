#include "compiler/schedule/primitives/fuse_reduction_epilogue.h"

#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/layout.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/analysis/stage.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::string_view NameOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kMul: return "*";
    case BinaryOp::kMin: return "min";
    default: return "max";
  }
}

}  // namespace

absl::Status FuseReductionEpilogue(Schedule& schedule, BlockRef reduction_ref, BlockRef epilogue_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(reduction_ref, "fuse_reduction_epilogue"));
  HONE_ASSIGN_OR_RETURN(const int last, schedule.BlockNode(epilogue_ref, "fuse_reduction_epilogue"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const Block& epilogue = index.block(last);
  const std::string where = Message("fuse_reduction_epilogue(", block.name, ", ", epilogue.name, ")");
  const Store* store = block.body.As<Store>();
  const Store* init = block.init.As<Store>();
  const std::optional<ReductionUpdate> update = store == nullptr ? std::nullopt : MatchUpdate(*store);
  if (init == nullptr || !update.has_value() || block.writes.size() != 1) {
    return Refused(where, ": ", block.name, " is no reduction x = x + v, x * v, min(x, v) or max(x, v) with an init");
  }
  const Buffer& sum = store->buffer;
  const int scope = index.EnclosingBlock(node);
  if (index.EnclosingBlock(last) != scope || last < node)
    return Refused(where, ": ", epilogue.name, " does not follow ", block.name, " in the same block");
  HONE_RETURN_IF_ERROR(CheckRunsWhole(index, last, where));
  const Store* result = epilogue.body.As<Store>();
  if (HasReduction(epilogue) || result == nullptr || result->mask || epilogue.writes.size() != 1 ||
      !epilogue.allocs.empty() || !epilogue.matches.empty() || Reads(epilogue, result->buffer)) {
    return Refused(where, ": ", epilogue.name, " does more than store one element of a buffer that it does not read");
  }
  if (!PredicateFollowsFromDomain(index.realize(last), RangesAround(index, last)))
    return Refused(where, ": ", epilogue.name, " has a condition of its own, ", index.realize(last).predicate);

  // y = x OP e.
  const Binary* binary = result->value.As<Binary>();
  const Load* left = binary == nullptr ? nullptr : binary->a.As<Load>();
  const Load* right = binary == nullptr ? nullptr : binary->b.As<Load>();
  const bool on_left = left != nullptr && left->buffer.SameAs(sum);
  const bool on_right = right != nullptr && right->buffer.SameAs(sum);
  const Load* use = on_left ? left : on_right ? right : nullptr;
  const bool minus = use != nullptr && on_left && binary->op == BinaryOp::kSub && update->op == BinaryOp::kAdd;
  if (use == nullptr || use->mask || (binary->op != update->op && !minus)) {
    return Refused(where, ": ", epilogue.name, " is not ", sum, " ", NameOf(update->op),
                   " something, so it must see the finished value; reverse_compute_at keeps it near");
  }
  const Expr other = on_left ? binary->b : binary->a;
  if (LoadsFrom(other, sum)) return Refused(where, ": ", epilogue.name, " uses ", sum, " twice");
  if (result->buffer.type() != sum.type())
    return Refused(where, ": ", result->buffer, " is ", ToText(result->buffer.type()), ", the reduction ",
                   ToText(sum.type()));

  // Nobody else sees the sum, and what the epilogue writes.
  if (!IsIntermediate(index, scope, sum)) return Refused(where, ": ", sum, " is seen outside, so it must be written");
  for (const int b : index.BlocksBelow(scope)) {
    const Block& another = index.block(b);
    if (b != node && Writes(another, sum)) return Refused(where, ": block ", another.name, " writes ", sum, " too");
    if (b != node && b != last && Reads(another, sum))
      return Refused(where, ": block ", another.name, " reads ", sum, " too");
    if (b == last) continue;
    if (Writes(another, result->buffer))
      return Refused(where, ": block ", another.name, " writes ", result->buffer, " too");
    if (b < last && Reads(another, result->buffer))
      return Refused(where, ": block ", another.name, " reads ", result->buffer, " before the epilogue writes it");
  }
  const int outermost = Outermost(index, node);
  for (const int p : ProducersOf(index, last)) {
    if (p != node && p >= outermost) {
      return Refused(where, ": ", epilogue.name, " also reads what block ", index.block(p).name,
                     " writes, which is not there before the nest of ", block.name);
    }
  }
  if (IsMatched(schedule.func().body, sum)) return Refused(where, ": ", sum, " is an operand of a tile operation");

  // The epilogue's variables as functions of the element of the sum.
  IndexMap map;
  std::vector<int64_t> shape;
  for (const IterVar& iter : epilogue.iters) {
    const std::optional<int64_t> extent = ConstantValue(iter.domain.extent);
    if (!extent.has_value() || !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " is not [0, a number)");
    map.inputs.push_back(iter.var);
    shape.push_back(*extent);
  }
  map.outputs = use->indices;
  const absl::StatusOr<InverseMap> inverse = Invert(map, shape);
  bool whole = inverse.ok() && IsConst(inverse->inside, 1);
  for (size_t d = 0; whole && d < inverse->shape.size(); ++d) whole = IsConst(sum.shape()[d], inverse->shape[d]);
  if (!whole) {
    return Refused(where, ": ", epilogue.name, " does not read every element of ", sum, " exactly once",
                   inverse.ok() ? "" : ": ", inverse.ok() ? absl::string_view() : inverse.status().message());
  }

  // ---- nothing below fails ----
  VarRanges domains;
  for (const IterVar& iter : block.iters) domains[iter.var] = iter.domain;
  Analyzer known(domains);
  const auto at = [&](const Expr& e,
                      const std::vector<Expr>& element) {  // the epilogue's `e` for an element of the sum
    return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < epilogue.iters.size(); ++i) {
        if (!epilogue.iters[i].var.SameAs(var)) continue;
        return known.Simplify(Substitute(inverse->original[i], [&](const Var& p) -> std::optional<Expr> {
          for (size_t d = 0; d < inverse->indices.size(); ++d) {
            if (inverse->indices[d].SameAs(p)) return element[d];
          }
          return std::nullopt;
        }));
      }
      return std::nullopt;
    });
  };
  const auto place = [&](const std::vector<Expr>& element) {
    std::vector<Expr> indices;
    for (const Expr& e : result->indices) indices.push_back(known.Simplify(at(e, element)));
    return indices;
  };
  BlockRealize fused = index.realize(node);
  const FloatImm* from = init->value.As<FloatImm>();
  const bool from_zero = IsConst(init->value, 0) || (from != nullptr && from->value == 0);
  Expr start = at(other, init->indices);
  if (minus || update->op != BinaryOp::kAdd || !from_zero)
    start = MakeBinary(minus ? BinaryOp::kSub : update->op, init->value, start);
  fused.block.init =
      RenewDefinitions(Stmt::Make(Store{result->buffer, place(init->indices), known.Simplify(start), Expr()}));
  const std::vector<Expr> target = place(store->indices);
  fused.block.body = Stmt::Make(
      Store{result->buffer, target, MakeBinary(update->op, MakeLoad(result->buffer, target), update->value), Expr()});
  fused.block.writes.clear();
  DeclareRegions(fused.block);
  const std::string name = epilogue.name;
  const ProgramIndex replaced(index.Replace(node, Stmt::Make(std::move(fused))));
  const ProgramIndex without(replaced.Replace(replaced.FindBlock(name), Stmt()));
  const int home = AllocatingBlock(without, sum);
  BlockRealize allocating = without.realize(home);
  std::erase_if(allocating.block.allocs, [&](const Buffer& b) { return b.SameAs(sum); });
  schedule.SetBody(without.Replace(home, Stmt::Make(std::move(allocating))));
  schedule.Record(FuseReductionEpilogueStep{.reduction_block = reduction_ref, .epilogue_block = epilogue_ref}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const FuseReductionEpilogueStep& step) {
  return FuseReductionEpilogue(schedule, step.reduction_block, step.epilogue_block);
}

HONE_PRIMITIVES(fuse_reduction_epilogue, FuseReductionEpilogueStep)

}  // namespace hone
