#include "compiler/schedule/primitives/cache.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::string CacheName(const Buffer& buffer, Scope scope) {
  std::string name = Message(buffer.name(), "_", ToText(scope));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// for ax..: to[v..] = from[v..] over the region.
Stmt CopyNest(const std::string& name, const Buffer& from, const Buffer& to, const std::vector<Range>& region) {
  Block copy;
  copy.name = name;
  std::vector<Expr> indices;
  for (size_t d = 0; d < region.size(); ++d) {
    const Var v(Message("v", d), region[d].extent.type());
    copy.iters.push_back({v, region[d], IterKind::kSpatial});
    indices.push_back(v);
  }
  copy.body = Stmt::Make(Store{to, indices, MakeLoad(from, indices), Expr()});
  return NestAround(std::move(copy));
}

// Parallel iterations that all write the same elements have a buffer each as long as nothing outside the loop reads it.
// The copy back does.
absl::Status CheckIterationsWriteApart(const ProgramIndex& index, int node, int outermost, const std::string& where) {
  const BlockRealize& realize = index.realize(node);
  for (int n = index.parent(node); n >= outermost; n = index.parent(n)) {
    if (!index.IsLoop(n) || IsConst(index.loop(n).extent, 1)) continue;
    const For& loop = index.loop(n);
    if (loop.kind != ForKind::kParallel && loop.kind != ForKind::kVectorized) continue;
    if (std::ranges::any_of(realize.values, [&](const Expr& value) { return UsesVar(value, loop.var); })) continue;
    return Refused(where, ": every iteration of loop ", loop.var, ", which is ", Describe(loop.kind),
                   ", writes the same elements, and the copy back would make them share one buffer; use cache_write "
                   "before compute_at");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BlockRef> CacheRead(Schedule& schedule, BlockRef ref, int read_index, Scope scope) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "cache_read"));
  if (node == 0) return Refused("cache_read(root): the root block cannot be cached");
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid("cache_read(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
  }
  const Buffer buffer = block.reads[read_index].buffer;
  const std::vector<Range> region = TouchedRegion(index, node, buffer, false);
  HONE_RETURN_IF_ERROR(
      CheckThereBefore(index, node, buffer, region, Message("cache_read(", block.name, ", ", buffer, ")")));
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(index.EnclosingBlock(node)).name;
  Stmt copy = CopyNest(name, buffer, cached, region);
  const Stmt renamed = ReplaceBuffers(index.stmt(node), [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(cached) : std::nullopt;
  });
  const std::string block_name = block.name;
  const ProgramIndex with_cached(index.Replace(node, renamed));
  Stmt body =
      with_cached.InsertBeside(Outermost(with_cached, with_cached.FindBlock(block_name)), std::move(copy), Stmt());
  schedule.SetBody(WithAlloc(WithReads(body, scope_name, buffer, region), scope_name, cached));
  const int number = schedule.Record(
      CacheReadStep{.block = ref, .read_buffer_index = read_index, .storage_scope = std::string(ToText(scope))},
      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::StatusOr<BlockRef> CacheWrite(Schedule& schedule, BlockRef ref, int write_index, Scope scope) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "cache_write"));
  if (node == 0) return Refused("cache_write(root): the root block cannot be cached");
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (write_index < 0 || write_index >= static_cast<int>(block.writes.size())) {
    return Invalid("cache_write(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ",
                   write_index);
  }
  const Buffer buffer = block.writes[write_index].buffer;
  const int scope_block = index.EnclosingBlock(node);
  const std::vector<Buffer>& home = index.block(scope_block).allocs;
  if (scope_block != 0 && std::none_of(home.begin(), home.end(), [&](const Buffer& b) { return b.SameAs(buffer); })) {
    return Refused("cache_write(", block.name, ", ", buffer, "): the block lies in block ",
                   index.block(scope_block).name, ", one run of which writes a part of ", buffer,
                   " alone, and the copy back would overwrite the rest; cache_write the outer block");
  }
  const int outermost = Outermost(index, node);
  for (const int w : WritersOf(index, scope_block, buffer)) {
    if (!index.Contains(outermost, w)) {
      return Refused("cache_write(", block.name, ", ", buffer, "): block ", index.block(w).name,
                     " writes it too, in another nest, and the copy back would "
                     "overwrite that");
    }
  }
  for (int outer = scope_block; outer > 0; outer = index.EnclosingBlock(outer)) {
    if (index.block(outer).init && Writes(index.block(outer), buffer)) {
      return Refused("cache_write(", block.name, ", ", buffer, "): the init of block ", index.block(outer).name,
                     " around it writes it too; use cache_write before blockize");
    }
  }
  if (const absl::Status all = CheckExact(index, scope_block, node, buffer); !all.ok()) {
    return Refused("cache_write(", block.name, ", ", buffer,
                   "): the block leaves out elements that the copy back would read: ", all.message());
  }
  HONE_RETURN_IF_ERROR(
      CheckIterationsWriteApart(index, node, outermost, Message("cache_write(", block.name, ", ", buffer, ")")));
  const std::vector<Range> region = TouchedRegion(index, node, buffer, true);
  for (const int w : WritersOf(index, scope_block, buffer)) {
    if (w != node && !Holds(region, TouchedRegion(index, w, buffer, true), buffer)) {
      return Refused("cache_write(", block.name, ", ", buffer, "): block ", index.block(w).name,
                     " in the same nest writes more of it, which the copy back would leave out");
    }
  }
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(scope_block).name;
  Stmt copy = CopyNest(name, cached, buffer, region);
  // The whole nest works on the new buffer: an init beside the block, readers below the same loops.
  const Stmt renamed = ReplaceBuffers(index.stmt(outermost), [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(cached) : std::nullopt;
  });
  Stmt body = index.Replace(outermost, MakeSeq({renamed, std::move(copy)}));
  schedule.SetBody(WithAlloc(body, scope_name, cached));
  const int number = schedule.Record(
      CacheWriteStep{.block = ref, .write_buffer_index = write_index, .storage_scope = std::string(ToText(scope))},
      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const CacheReadStep& step) {
  HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
  return CacheRead(schedule, step.block, AsIndex(step.read_buffer_index), scope).status();
}

absl::Status Apply(Schedule& schedule, const CacheWriteStep& step) {
  HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
  return CacheWrite(schedule, step.block, AsIndex(step.write_buffer_index), scope).status();
}

HONE_PRIMITIVES(cache, CacheReadStep, CacheWriteStep)

}  // namespace hone
