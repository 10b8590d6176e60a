#include "compiler/schedule/primitives/pack.h"

#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// for the places of the layout: to[place] = from[original], and beyond the buffer `pad`, or nothing where it is absent.
Stmt PanelNest(const std::string& name, const Buffer& from, const Buffer& to, const InverseMap& inverse,
               const Expr& pad) {
  LayoutPlaces places = PlacesOf(inverse);
  Block copy;
  copy.name = name;
  copy.iters = std::move(places.iters);
  Expr value = MakeLoad(from, places.original);
  if (pad) value = IfThenElse(places.inside, value, pad);
  copy.body = Stmt::Make(Store{to, places.indices, value, Expr()});
  if (!pad && !IsConst(places.inside, 1)) copy.body = Stmt::Make(IfThen{places.inside, copy.body, Stmt()});
  return NestAround(std::move(copy));
}

// What the tails are filled with; absent: nothing.
absl::StatusOr<Expr> TailValue(PanelTails tails, const PadValue& pad_value, DType type, const std::string& where) {
  if (tails == PanelTails::kZero) return pad_value.has_value() ? PadConstant(*pad_value, type, where) : Const(0, type);
  if (!pad_value.has_value()) return Expr();
  return Invalid(where, ": tails are \"mask\", which are not written, so they take no pad_value");
}

}  // namespace

absl::StatusOr<BlockRef> Pack(Schedule& schedule, BlockRef block_ref, int read_index, LoopRef loop_ref, IndexMap map,
                              PanelTails tails, Scope scope, PadValue pad_value) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "pack"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "pack"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid("pack(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
  }
  const Buffer buffer = block.reads[read_index].buffer;
  const std::string where = Message("pack(", block.name, ", ", buffer, ", ", index.loop(loop_node).var, ")");
  if (!index.Contains(loop_node, node)) return Refused(where, ": the loop is not around the block");
  std::vector<Range> all;
  for (const Expr& extent : buffer.shape()) all.push_back(Range{IntConst(0), extent});
  const absl::StatusOr<InverseMap> inverse = InvertLayout(map, buffer.shape());
  if (!inverse.ok()) return Annotate(inverse.status(), where);
  HONE_RETURN_IF_ERROR(CheckThereBefore(index, node, buffer, all, where));
  HONE_ASSIGN_OR_RETURN(const Expr pad, TailValue(tails, pad_value, buffer.type(), where));

  // The rest is done on a copy, by the primitives it is made of, and taken over when all of it went well.
  Schedule trial = schedule;
  const absl::StatusOr<BlockRef> cached = CacheRead(trial, block_ref, read_index, scope);
  if (!cached.ok()) return Annotate(cached.status(), where);
  HONE_ASSIGN_OR_RETURN(const int copy_node, trial.BlockNode(*cached, "pack"));
  const std::string name = FreshBlockName(trial.index(), Message(buffer.name(), "_pack"));
  {
    const Buffer plain = trial.index().block(copy_node).writes[0].buffer;
    if (IsMatched(trial.func().body, plain))
      return Refused(where, ": it is an operand of a tile operation, whose layout is fixed");
    const Buffer panels(Message(buffer.name(), "_pack"), buffer.type(), inverse->shape, scope);
    const Stmt packed =
        trial.index().Replace(Outermost(trial.index(), copy_node), PanelNest(name, buffer, panels, *inverse, pad));
    const std::string scope_name = trial.index().block(trial.index().EnclosingBlock(copy_node)).name;
    trial.SetBody(WithReads(WithLayout(packed, plain, panels, map), scope_name, buffer, all));
  }
  const int looked_up = trial.Record(GetBlockStep{.name = name}, {Schedule::Output::Block(name)});
  const absl::Status placed = ComputeAt(trial, BlockRef{looked_up, 0}, loop_ref, false);
  if (!placed.ok()) return Annotate(placed, where);

  // ---- nothing below fails ----
  schedule.SetBody(trial.func().body);
  const int number = schedule.Record(PackStep{.block = block_ref,
                                              .read_buffer_index = read_index,
                                              .loop = loop_ref,
                                              .index_map = std::move(map),
                                              .tails = tails == PanelTails::kZero ? "zero" : "mask",
                                              .storage_scope = std::string(ToText(scope)),
                                              .pad_value = pad_value},
                                     {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const PackStep& step) {
  HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
  if (step.tails != "zero" && step.tails != "mask")
    return Invalid("pack: tails are \"zero\" or \"mask\", not \"", step.tails, "\"");
  return Pack(schedule, step.block, AsIndex(step.read_buffer_index), step.loop, step.index_map,
              step.tails == "zero" ? PanelTails::kZero : PanelTails::kMask, scope, step.pad_value)
      .status();
}

HONE_PRIMITIVES(pack, PackStep)

}  // namespace hone
