#include "compiler/schedule/primitives/reindex.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
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

// What is known of the access once nothing stands against copying it.
struct Reindexing {
  const ProgramIndex& index;
  int node;  // of the block
  bool writes;
  Buffer buffer;
  std::vector<Expr> at = {};       // where the block accesses it
  std::vector<IterVar> used = {};  // the variables of the block that say where: the dimensions of the new buffer
  std::vector<Buffer> read = {};   // by the block that copies to the new buffer

  const BlockRealize& realize() const { return index.realize(node); }
  const Block& block() const { return realize().block; }
};

absl::StatusOr<Buffer> FindBuffer(const ProgramIndex& index, int node, int buffer_index, bool writes) {
  if (node == 0) return Refused("reindex(root): the root block cannot be reindexed");
  const Block& block = index.block(node);
  const std::vector<BufferRegion>& regions = writes ? block.writes : block.reads;
  if (buffer_index < 0 || buffer_index >= static_cast<int>(regions.size())) {
    return Invalid("reindex(", block.name, "): it ", writes ? "writes " : "reads ", regions.size(),
                   " buffers, there is no number ", buffer_index);
  }
  return regions[buffer_index].buffer;
}

absl::Status CheckBlock(const Reindexing& r, const std::string& where) {
  if (!r.index.BlocksBelow(r.node).empty()) return Refused(where, ": the block holds other blocks");
  if (!r.writes && Writes(r.block(), r.buffer))
    return Refused(where, ": the block writes it too; reindex it as a write");
  if (IsMatched(r.index.stmt(r.node), r.buffer)) return Refused(where, ": it is an operand of a tile operation");
  if (r.writes && Reads(r.block(), r.buffer)) {
    return Refused(where,
                   ": the block goes on from what is in the buffer before it, which the copy would not hold; reindex "
                   "before decompose_reduction");
  }
  return absl::OkStatus();
}

// The one place at which every instance accesses the buffer.
absl::StatusOr<std::vector<Expr>> FindPlace(const Reindexing& r, const std::string& where) {
  Accesses accesses;
  Collector collector(r.buffer, accesses);
  collector.Visit(r.block().init);
  collector.Visit(r.block().body);
  if (accesses.conditional) return Refused(where, ": it is accessed under a condition, so not in every instance");
  if (accesses.places.empty()) return Refused(where, ": no load or store of it is in the block");
  const std::vector<Expr>& at = *accesses.places[0];
  for (const std::vector<Expr>* other : accesses.places) {
    for (size_t d = 0; d < at.size(); ++d) {
      if (StructuralEqual(at[d], (*other)[d])) continue;
      return Refused(where, ": it is accessed at more than one place, ", at[d], " and ", (*other)[d], " in dimension ",
                     d);
    }
  }
  return at;
}

// The variables that say where; every instance has a place of its own where it writes.
absl::Status FindUsed(Reindexing& r, const std::string& where) {
  VarRanges domains;
  for (const IterVar& iter : r.block().iters) {
    const bool uses = std::any_of(r.at.begin(), r.at.end(), [&](const Expr& e) { return UsesVar(e, iter.var); });
    if (r.writes ? iter.kind == IterKind::kSpatial : uses) domains[iter.var] = iter.domain;
    if (uses) r.used.push_back(iter);
    if (uses && !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " starts at ", iter.domain.min, ", not at 0");
    if (uses && r.writes && iter.kind != IterKind::kSpatial)
      return Refused(where, ": ", iter.var, " is no spatial variable, and indexes what is written");
  }
  for (const Expr& e : r.at) {
    for (const Var& var : FreeVars(e)) {
      if (std::none_of(r.used.begin(), r.used.end(), [&](const IterVar& it) { return it.var.SameAs(var); }))
        return Refused(where, ": the index ", e, " uses ", var, ", which is no iteration variable of the block");
    }
  }
  if (r.used.empty()) return Refused(where, ": it is one element, whatever the instance");
  if (r.writes && !IsInjective(r.at, domains, True())) {
    return Refused(where, ": two instances may write one element, and the copy back would not know whose to take");
  }
  return absl::OkStatus();
}

// The loops run the whole of the new buffer, and what the copy reads is there before it.
absl::Status CheckNest(Reindexing& r, const std::string& where) {
  const VarRanges around = RangesAround(r.index, r.node);
  Analyzer known(around);
  if (const absl::Status whole = CheckBindings(r.realize(), around, known); !whole.ok()) {
    return Refused(where, ": the loops do not run the block's domain exactly once: ", whole.message());
  }
  if (r.writes) {
    const int outermost = Outermost(r.index, r.node);
    for (const int b : r.index.BlocksBelow(r.index.EnclosingBlock(r.node))) {
      if (b == r.node || !r.index.Contains(outermost, b)) continue;
      if (Reads(r.index.block(b), r.buffer) || Writes(r.index.block(b), r.buffer))
        return Refused(where, ": block ", r.index.block(b).name, " in the same nest uses it too");
    }
    return absl::OkStatus();
  }
  r.read = {r.buffer};
  for (const Expr& e : r.at) {  // the copy also reads what says where
    ForEachExpr(e, [&](const Expr& part) {
      const Load* load = part.As<Load>();
      const bool seen = load == nullptr || std::any_of(r.read.begin(), r.read.end(),
                                                       [&](const Buffer& b) { return b.SameAs(load->buffer); });
      if (!seen) r.read.push_back(load->buffer);
      return true;
    });
  }
  for (const Buffer& b : r.read) {
    if (!Reads(r.block(), b))
      return Refused(where, ": an index reads ", b.name(),
                     ", which the block itself allocates; the copy cannot know it");
    HONE_RETURN_IF_ERROR(CheckThereBefore(r.index, r.node, b, TouchedRegion(r.index, r.node, b, false), where));
  }
  return absl::OkStatus();
}

// Copies between the old buffer and the new one.
Block CopyingBlock(const Reindexing& r, const Buffer& reindexed, const std::string& name) {
  Block copy;
  copy.name = name;
  std::vector<Expr> indices;
  for (const IterVar& iter : r.used) {
    copy.iters.push_back({Var(iter.var.name(), iter.var.type()), iter.domain, IterKind::kSpatial});
    indices.push_back(copy.iters.back().var);
  }
  std::vector<Expr> there;  // in the old buffer
  for (const Expr& e : r.at) {
    there.push_back(Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < r.used.size(); ++i) {
        if (r.used[i].var.SameAs(var)) return indices[i];
      }
      return std::nullopt;
    }));
  }
  copy.body = r.writes ? Stmt::Make(Store{r.buffer, there, MakeLoad(reindexed, indices), Expr()})
                       : Stmt::Make(Store{reindexed, indices, MakeLoad(r.buffer, there), Expr()});
  return copy;
}

// The block with the new buffer in the old one's place.
BlockRealize Redirected(const Reindexing& r, const Buffer& reindexed, const std::vector<Expr>& own) {
  const auto redirect = [&](const Stmt& stmt) {
    if (!stmt) return stmt;
    const Stmt loads = RewriteExprs(stmt, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr || !load->buffer.SameAs(r.buffer)) return std::nullopt;
      return MakeLoad(reindexed, own, load->mask);
    });
    return RewriteBottomUp(loads, [&](const Stmt& s) -> std::optional<Stmt> {
      const Store* store = s.As<Store>();
      if (store == nullptr || !store->buffer.SameAs(r.buffer)) return std::nullopt;
      return Stmt::Make(Store{reindexed, own, store->value, store->mask});
    });
  };
  BlockRealize changed = r.realize();
  changed.block.init = redirect(r.block().init);
  changed.block.body = redirect(r.block().body);
  for (BufferRegion& region : r.writes ? changed.block.writes : changed.block.reads) {
    if (!region.buffer.SameAs(r.buffer)) continue;
    region = {reindexed, {}};
    for (const Expr& e : own) region.region.push_back(Range{e, IntConst(1, e.type())});
  }
  return changed;
}

}  // namespace

absl::StatusOr<BlockRef> Reindex(Schedule& schedule, BlockRef ref, int buffer_index, BufferKind kind) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "reindex"));
  const ProgramIndex& index = schedule.index();
  const bool writes = kind == BufferKind::kWrite;
  HONE_ASSIGN_OR_RETURN(const Buffer buffer, FindBuffer(index, node, buffer_index, writes));
  Reindexing r{.index = index, .node = node, .writes = writes, .buffer = buffer};
  const std::string where = Message("reindex(", r.block().name, ", ", buffer, ")");
  HONE_RETURN_IF_ERROR(CheckBlock(r, where));
  HONE_ASSIGN_OR_RETURN(r.at, FindPlace(r, where));
  HONE_RETURN_IF_ERROR(FindUsed(r, where));
  HONE_RETURN_IF_ERROR(CheckNest(r, where));

  // ---- nothing below fails ----
  std::vector<Expr> shape, own;  // of the new buffer; its indices in the block
  for (const IterVar& iter : r.used) {
    shape.push_back(iter.domain.extent);
    own.push_back(iter.var);
  }
  const Buffer reindexed(Message(buffer.name(), "_reindex"), buffer.type(), shape);
  const std::string name = FreshBlockName(index, reindexed.name()), block_name = r.block().name;
  const std::string scope = index.block(index.EnclosingBlock(node)).name;
  const ProgramIndex redirected(index.Replace(node, Stmt::Make(Redirected(r, reindexed, own))));
  const int nest = Outermost(redirected, redirected.FindBlock(block_name));
  Stmt before, after;
  (writes ? after : before) = NestAround(CopyingBlock(r, reindexed, name));
  Stmt body = redirected.InsertBeside(nest, std::move(before), std::move(after));
  for (const Buffer& b : r.read) body = WithReads(body, scope, b, TouchedRegion(index, node, b, false));
  schedule.SetBody(WithAlloc(body, scope, reindexed));
  const int number =
      schedule.Record(ReindexStep{.block = ref, .buffer = {kind, buffer_index}}, {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const ReindexStep& step) {
  return Reindex(schedule, step.block, step.buffer.index, step.buffer.kind).status();
}

HONE_PRIMITIVES(reindex, ReindexStep)

}  // namespace hone
