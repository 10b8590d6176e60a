#include "compiler/schedule/primitives/fuse_reduction_epilogue.h"

#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/element_map.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
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

// A reduction x, and behind it a block y = x OP e.
struct Pair {
  const ProgramIndex& index;
  int node, last;  // the reduction, the epilogue
  const Store& update_store;
  const Store& init;
  ReductionUpdate update;
  const Store& result;        // of the epilogue
  const Load* use = nullptr;  // of x in it
  Expr other = {};            // e
  bool minus = false;         // y = x - e

  const Block& block() const { return index.block(node); }
  const Block& epilogue() const { return index.block(last); }
  const Buffer& sum() const { return update_store.buffer; }
};

absl::StatusOr<Pair> FindPair(const ProgramIndex& index, int node, int last, const std::string& where) {
  const Block &block = index.block(node), &epilogue = index.block(last);
  const Store *store = block.body.As<Store>(), *init = block.init.As<Store>();
  const std::optional<ReductionUpdate> update = store == nullptr ? std::nullopt : MatchUpdate(*store);
  if (init == nullptr || !update.has_value() || block.writes.size() != 1) {
    return Refused(where, ": ", block.name, " is no reduction x = x + v, x * v, min(x, v) or max(x, v) with an init");
  }
  if (index.EnclosingBlock(last) != index.EnclosingBlock(node) || last < node)
    return Refused(where, ": ", epilogue.name, " does not follow ", block.name, " in the same block");
  HONE_RETURN_IF_ERROR(CheckRunsWhole(index, last, where));
  const Store* result = epilogue.body.As<Store>();
  if (HasReduction(epilogue) || result == nullptr || result->mask || epilogue.writes.size() != 1 ||
      !epilogue.allocs.empty() || !epilogue.matches.empty() || Reads(epilogue, result->buffer)) {
    return Refused(where, ": ", epilogue.name, " does more than store one element of a buffer that it does not read");
  }
  if (!PredicateFollowsFromDomain(index.realize(last), RangesAround(index, last)))
    return Refused(where, ": ", epilogue.name, " has a condition of its own, ", index.realize(last).predicate);
  return Pair{.index = index,
              .node = node,
              .last = last,
              .update_store = *store,
              .init = *init,
              .update = *update,
              .result = *result};
}

// The epilogue goes on with the operation of the reduction.
absl::Status MatchEpilogue(Pair& pair, const std::string& where) {
  const std::string& name = pair.epilogue().name;
  const Buffer& sum = pair.sum();
  const Binary* binary = pair.result.value.As<Binary>();
  const Load* left = binary == nullptr ? nullptr : binary->a.As<Load>();
  const Load* right = binary == nullptr ? nullptr : binary->b.As<Load>();
  const bool on_left = left != nullptr && left->buffer.SameAs(sum);
  const bool on_right = right != nullptr && right->buffer.SameAs(sum);
  pair.use = on_left ? left : on_right ? right : nullptr;
  pair.minus = pair.use != nullptr && on_left && binary->op == BinaryOp::kSub && pair.update.op == BinaryOp::kAdd;
  if (pair.use == nullptr || pair.use->mask || (binary->op != pair.update.op && !pair.minus)) {
    return Refused(where, ": ", name, " is not ", sum, " ", NameOf(pair.update.op),
                   " something, so it must see the finished value; reverse_compute_at keeps it near");
  }
  pair.other = on_left ? binary->b : binary->a;
  if (LoadsFrom(pair.other, sum)) return Refused(where, ": ", name, " uses ", sum, " twice");
  const Buffer& buffer = pair.result.buffer;
  if (buffer.type() != sum.type())
    return Refused(where, ": ", buffer, " is ", ToText(buffer.type()), ", the reduction ", ToText(sum.type()));
  return absl::OkStatus();
}

// No other block reads the sum, nor, before the epilogue, what it writes; what it reads is there before the reduction.
absl::Status CheckOtherBlocks(const Pair& pair, const std::string& where) {
  const ProgramIndex& index = pair.index;
  const Buffer &sum = pair.sum(), &result = pair.result.buffer;
  const int scope = index.EnclosingBlock(pair.node);
  if (!IsIntermediate(index, scope, sum)) return Refused(where, ": ", sum, " is seen outside, so it must be written");
  for (const int b : index.BlocksBelow(scope)) {
    const Block& another = index.block(b);
    if (b != pair.node && Writes(another, sum))
      return Refused(where, ": block ", another.name, " writes ", sum, " too");
    if (b != pair.node && b != pair.last && Reads(another, sum))
      return Refused(where, ": block ", another.name, " reads ", sum, " too");
    if (b == pair.last) continue;
    if (Writes(another, result)) return Refused(where, ": block ", another.name, " writes ", result, " too");
    if (b < pair.last && Reads(another, result))
      return Refused(where, ": block ", another.name, " reads ", result, " before the epilogue writes it");
  }
  const int outermost = Outermost(index, pair.node);
  for (const int p : ProducersOf(index, pair.last)) {
    if (p != pair.node && p >= outermost) {
      return Refused(where, ": ", pair.epilogue().name, " also reads what block ", index.block(p).name,
                     " writes, which is not there before the nest of ", pair.block().name);
    }
  }
  return absl::OkStatus();
}

// The reduction in the epilogue's buffer: it begins from e.
BlockRealize Fused(const Pair& pair, const ElementMap& elements) {
  Analyzer known;
  for (const IterVar& iter : pair.block().iters) known.Bind(iter.var, iter.domain);
  const auto place = [&](const std::vector<Expr>& element) {
    std::vector<Expr> indices;
    for (const Expr& e : pair.result.indices) indices.push_back(known.Simplify(elements.At(element, e, known)));
    return indices;
  };
  const BinaryOp op = pair.update.op;
  const Buffer& buffer = pair.result.buffer;
  Expr start = elements.At(pair.init.indices, pair.other, known);
  if (pair.minus || op != BinaryOp::kAdd || !IsNumber(pair.init.value, 0))
    start = MakeBinary(pair.minus ? BinaryOp::kSub : op, pair.init.value, start);
  BlockRealize fused = pair.index.realize(pair.node);
  fused.block.init =
      RenewDefinitions(Stmt::Make(Store{buffer, place(pair.init.indices), known.Simplify(start), Expr()}));
  const std::vector<Expr> target = place(pair.update_store.indices);
  fused.block.body =
      Stmt::Make(Store{buffer, target, MakeBinary(op, MakeLoad(buffer, target), pair.update.value), Expr()});
  fused.block.writes.clear();
  DeclareRegions(fused.block);
  return fused;
}

}  // namespace

absl::Status FuseReductionEpilogue(Schedule& schedule, BlockRef reduction_ref, BlockRef epilogue_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(reduction_ref, "fuse_reduction_epilogue"));
  HONE_ASSIGN_OR_RETURN(const int last, schedule.BlockNode(epilogue_ref, "fuse_reduction_epilogue"));
  const ProgramIndex& index = schedule.index();
  const std::string name = index.block(last).name;
  const std::string where = Message("fuse_reduction_epilogue(", index.block(node).name, ", ", name, ")");
  HONE_ASSIGN_OR_RETURN(Pair pair, FindPair(index, node, last, where));
  const Buffer sum = pair.sum();
  HONE_RETURN_IF_ERROR(MatchEpilogue(pair, where));
  HONE_RETURN_IF_ERROR(CheckOtherBlocks(pair, where));
  if (IsMatched(schedule.func().body, sum)) return Refused(where, ": ", sum, " is an operand of a tile operation");
  HONE_ASSIGN_OR_RETURN(const ElementMap elements, ElementMap::Find(pair.epilogue(), sum, pair.use->indices, where));

  // ---- nothing below fails ----
  const ProgramIndex replaced(index.Replace(node, Stmt::Make(Fused(pair, elements))));
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
