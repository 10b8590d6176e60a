#include "compiler/schedule/reindex.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/dataflow.h"
#include "compiler/schedule/layout.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/stage.h"
#include "compiler/schedule/touched_regions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The places at which a statement accesses a buffer.
struct Accesses {
  std::vector<const std::vector<Expr>*> places;
  bool conditional = false;  // one of them need not happen
};

class Collector {
 public:
  Collector(const Buffer& buffer, Accesses& found) : buffer_(buffer), found_(found) {}

  void Visit(const Stmt& stmt) {
    if (!stmt) return;
    if (const IfThen* branch = stmt.As<IfThen>()) {
      Visit(branch->condition);
      ++depth_;
      Visit(branch->yes);
      Visit(branch->no);
      --depth_;
      return;
    }
    if (const Store* store = stmt.As<Store>(); store != nullptr && store->buffer.SameAs(buffer_)) Add(store->indices);
    ForEachChild(
        stmt, [&](const Stmt& child) { Visit(child); }, [&](const Expr& e) { Visit(e); });
  }

 private:
  void Visit(const Expr& e) {
    if (const auto* choice = e.As<IfThenElseExpr>()) {
      Visit(choice->condition);
      ++depth_;
      Visit(choice->yes);
      Visit(choice->no);
      --depth_;
      return;
    }
    if (const Load* load = e.As<Load>(); load != nullptr && load->buffer.SameAs(buffer_)) Add(load->indices);
    ForEachChild(e, [&](const Expr& child) { Visit(child); });
  }
  void Add(const std::vector<Expr>& indices) {
    found_.places.push_back(&indices);
    found_.conditional |= depth_ > 0;
  }

  const Buffer& buffer_;
  Accesses& found_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<BlockRef> Reindex(Schedule& schedule, BlockRef ref, int buffer_index, BufferKind kind) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "reindex"));
  const ProgramIndex& index = schedule.index();
  const BlockRealize& realize = index.realize(node);
  const Block& block = realize.block;
  const bool writes = kind == BufferKind::kWrite;
  if (node == 0) return Refused("reindex(root): the root block cannot be reindexed");
  const std::vector<BufferRegion>& regions = writes ? block.writes : block.reads;
  if (buffer_index < 0 || buffer_index >= static_cast<int>(regions.size())) {
    return Invalid("reindex(", block.name, "): it ", writes ? "writes " : "reads ", regions.size(),
                   " buffers, there is no number ", buffer_index);
  }
  const Buffer buffer = regions[buffer_index].buffer;
  const std::string where = Message("reindex(", block.name, ", ", buffer, ")");
  if (!index.BlocksBelow(node).empty()) return Refused(where, ": the block holds other blocks");
  if (!writes && Writes(block, buffer)) return Refused(where, ": the block writes it too; reindex it as a write");
  if (IsMatched(index.stmt(node), buffer)) return Refused(where, ": it is an operand of a tile operation");
  if (writes && Reads(block, buffer)) {
    return Refused(where,
                   ": the block goes on from what is in the buffer before it, which the copy would not hold; reindex "
                   "before decompose_reduction");
  }

  Accesses accesses;
  Collector collector(buffer, accesses);
  collector.Visit(block.init);
  collector.Visit(block.body);
  if (accesses.conditional) return Refused(where, ": it is accessed under a condition, so not in every instance");
  if (accesses.places.empty()) return Refused(where, ": no load or store of it is in the block");
  const std::vector<Expr> at = *accesses.places[0];
  for (const std::vector<Expr>* other : accesses.places) {
    for (size_t d = 0; d < at.size(); ++d) {
      if (StructuralEqual(at[d], (*other)[d])) continue;
      return Refused(where, ": it is accessed at more than one place, ", at[d], " and ", (*other)[d], " in dimension ",
                     d);
    }
  }
  std::vector<IterVar> used;
  VarRanges domains;
  for (const IterVar& iter : block.iters) {
    const bool uses = std::any_of(at.begin(), at.end(), [&](const Expr& e) { return UsesVar(e, iter.var); });
    if (writes ? iter.kind == IterKind::kSpatial : uses) domains[iter.var] = iter.domain;
    if (uses) used.push_back(iter);
    if (uses && !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " starts at ", iter.domain.min, ", not at 0");
    if (uses && writes && iter.kind != IterKind::kSpatial)
      return Refused(where, ": ", iter.var, " is no spatial variable, and indexes what is written");
  }
  for (const Expr& e : at) {
    for (const Var& var : FreeVars(e)) {
      if (std::none_of(used.begin(), used.end(), [&](const IterVar& it) { return it.var.SameAs(var); }))
        return Refused(where, ": the index ", e, " uses ", var, ", which is no iteration variable of the block");
    }
  }
  if (used.empty()) return Refused(where, ": it is one element, whatever the instance");
  if (writes && !IsInjective(at, domains, True())) {
    return Refused(where, ": two instances may write one element, and the copy back would not know whose to take");
  }
  const VarRanges around = RangesAround(index, node);
  Analyzer known(around);
  if (const absl::Status whole = CheckBindings(realize, around, known); !whole.ok()) {
    return Refused(where, ": the loops do not run the block's domain exactly once: ", whole.message());
  }
  const int scope = index.EnclosingBlock(node), outermost = Outermost(index, node);
  std::vector<Buffer> read;  // by the copying block
  if (writes) {
    for (const int b : index.BlocksBelow(scope)) {
      if (b == node || !index.Contains(outermost, b)) continue;
      if (Reads(index.block(b), buffer) || Writes(index.block(b), buffer))
        return Refused(where, ": block ", index.block(b).name, " in the same nest uses it too");
    }
  } else {
    read = {buffer};
    for (const Expr& e : at) {  // the copy also reads what says where
      ForEachExpr(e, [&](const Expr& part) {
        const Load* load = part.As<Load>();
        const bool seen = load == nullptr || std::any_of(read.begin(), read.end(),
                                                         [&](const Buffer& b) { return b.SameAs(load->buffer); });
        if (!seen) read.push_back(load->buffer);
        return true;
      });
    }
    for (const Buffer& b : read)
      HONE_RETURN_IF_ERROR(CheckThereBefore(index, node, b, TouchedRegion(index, node, b, false), where));
  }

  // ---- nothing below fails ----
  std::vector<Expr> shape, own;  // of the new buffer; its indices in the block
  Block copy;
  std::vector<Expr> indices;  // the same in the copying block
  for (const IterVar& iter : used) {
    shape.push_back(iter.domain.extent);
    own.push_back(iter.var);
    copy.iters.push_back({Var(iter.var.name(), iter.var.type()), iter.domain, IterKind::kSpatial});
    indices.push_back(copy.iters.back().var);
  }
  const Buffer reindexed(Message(buffer.name(), "_reindex"), buffer.type(), shape);
  const std::string name = FreshBlockName(index, reindexed.name()), block_name = block.name;
  copy.name = name;
  std::vector<Expr> there;  // in the old buffer
  for (const Expr& e : at) {
    there.push_back(Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < used.size(); ++i) {
        if (used[i].var.SameAs(var)) return indices[i];
      }
      return std::nullopt;
    }));
  }
  copy.body = writes ? Stmt::Make(Store{buffer, there, MakeLoad(reindexed, indices), Expr()})
                     : Stmt::Make(Store{reindexed, indices, MakeLoad(buffer, there), Expr()});

  const auto redirect = [&](const Stmt& stmt) {
    if (!stmt) return stmt;
    const Stmt loads = RewriteExprs(stmt, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr || !load->buffer.SameAs(buffer)) return std::nullopt;
      return MakeLoad(reindexed, own, load->mask);
    });
    return RewriteBottomUp(loads, [&](const Stmt& s) -> std::optional<Stmt> {
      const Store* store = s.As<Store>();
      if (store == nullptr || !store->buffer.SameAs(buffer)) return std::nullopt;
      return Stmt::Make(Store{reindexed, own, store->value, store->mask});
    });
  };
  BlockRealize changed = realize;
  changed.block.init = redirect(block.init);
  changed.block.body = redirect(block.body);
  for (BufferRegion& region : writes ? changed.block.writes : changed.block.reads) {  // in its old place in the list
    if (!region.buffer.SameAs(buffer)) continue;
    region = {reindexed, {}};
    for (const Expr& e : own) region.region.push_back(Range{e, IntConst(1, e.type())});
  }
  const std::string scope_name = index.block(scope).name;
  const ProgramIndex redirected(index.Replace(node, Stmt::Make(std::move(changed))));
  const int nest = Outermost(redirected, redirected.FindBlock(block_name));
  Stmt before, after;
  (writes ? after : before) = NestAround(std::move(copy));
  Stmt body = redirected.InsertBeside(nest, std::move(before), std::move(after));
  for (const Buffer& b : read) body = WithReads(body, scope_name, b, TouchedRegion(index, node, b, false));
  schedule.SetBody(WithAlloc(body, scope_name, reindexed));
  const int number =
      schedule.Record(ReindexStep{.block = ref, .buffer = {kind, buffer_index}}, {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const ReindexStep& step) {
  return Reindex(schedule, step.block, step.buffer.index, step.buffer.kind).status();
}

}  // namespace hone
