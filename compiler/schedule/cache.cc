#include "compiler/schedule/cache.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/dataflow.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
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
  BlockRealize copy;
  copy.predicate = True();
  copy.block.name = name;
  std::vector<Expr> indices;
  std::vector<std::pair<Var, Expr>> loops;
  std::vector<Range> points;
  for (size_t d = 0; d < region.size(); ++d) {
    const DType type = region[d].extent.type();
    const Var v(Message("v", d), type), ax(Message("ax", d), type);
    copy.block.iters.push_back({v, Range{region[d].min, region[d].extent}, IterKind::kSpatial});
    copy.values.push_back(region[d].min + Expr(ax));
    loops.push_back({ax, region[d].extent});
    indices.push_back(v);
    points.push_back(Range{v, IntConst(1, type)});
  }
  copy.block.reads = {{from, points}};
  copy.block.writes = {{to, points}};
  copy.block.body = Stmt::Make(Store{to, indices, MakeLoad(from, indices), Expr()});
  Stmt nest = Stmt::Make(std::move(copy));
  for (size_t d = loops.size(); d-- > 0;) nest = MakeLoop(loops[d].first, loops[d].second, std::move(nest));
  return nest;
}

// What all instances of the block touch of a buffer, clipped to it.
std::vector<Range> WholeRegion(const Block& block, const Buffer& buffer, bool writes) {
  SetMap domains;
  for (const IterVar& it : block.iters) domains[it.var] = IntervalSet::FromRange(it.domain);
  Analyzer known;
  std::vector<std::vector<Range>> regions;
  for (const BufferRegion& access : writes ? block.writes : block.reads) {
    if (access.buffer.SameAs(buffer)) regions.push_back(RelaxRegion(access, domains, known));
  }
  std::vector<Range> whole = regions.size() == 1 ? regions[0] : UnionRegions(regions, buffer.shape(), known);
  for (size_t d = 0; d < whole.size(); ++d) {       // a copy of everything unless both ends are numbers
    if (!ConstantValue(whole[d].min).has_value() || !ConstantValue(whole[d].extent).has_value()) {
      whole[d] = Range{IntConst(0, buffer.shape()[d].type()), buffer.shape()[d]};
    }
  }
  return whole;
}

// The statement of the enclosing block's body that holds the node: its outermost loop, or itself.
int Outermost(const ProgramIndex& index, int node) {
  const std::vector<int> loops = index.LoopsAbove(node);
  return loops.empty() ? node : loops[0];
}

Stmt WithAlloc(const Stmt& body, int scope_block, const std::string& scope_name, const Buffer& buffer) {
  const ProgramIndex index(body);
  const int node = scope_block == 0 ? 0 : index.FindBlock(scope_name);
  BlockRealize realize = index.realize(node);
  realize.block.allocs.push_back(buffer);
  return index.Replace(node, Stmt::Make(std::move(realize)));
}

}  // namespace

absl::StatusOr<BlockRef> CacheRead(Schedule& schedule, BlockRef ref, int read_index, Scope scope) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "cache_read"));
  if (node == 0) return Refused("cache_read(root): the root block cannot be cached");
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid("cache_read(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ", read_index);
  }
  const Buffer buffer = block.reads[read_index].buffer;
  const int scope_block = index.EnclosingBlock(node);
  const int outermost = Outermost(index, node);
  for (const int w : WritersOf(index, scope_block, buffer)) {
    if (w >= outermost) {
      return Refused("cache_read(", block.name, ", ", buffer, "): block ", index.block(w).name,
                     " writes it in or after the nest of the block, so a copy made before the nest would be stale");
    }
  }
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(scope_block).name;
  Stmt copy = CopyNest(name, buffer, cached, WholeRegion(block, buffer, false));
  const Stmt renamed = ReplaceBuffers(index.stmt(node), [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(cached) : std::nullopt;
  });
  const std::string block_name = block.name;
  const ProgramIndex with_cached(index.Replace(node, renamed));
  Stmt body = with_cached.InsertBeside(Outermost(with_cached, with_cached.FindBlock(block_name)), std::move(copy), Stmt());
  schedule.SetBody(WithAlloc(body, scope_block, scope_name, cached));
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
    return Invalid("cache_write(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ", write_index);
  }
  const Buffer buffer = block.writes[write_index].buffer;
  const int scope_block = index.EnclosingBlock(node);
  const int outermost = Outermost(index, node);
  for (const int w : WritersOf(index, scope_block, buffer)) {
    if (!index.Contains(outermost, w)) {
      return Refused("cache_write(", block.name, ", ", buffer, "): block ", index.block(w).name,
                     " writes it too, in another nest, and the copy back would overwrite that");
    }
  }
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(scope_block).name;
  std::vector<Range> region = WholeRegion(block, buffer, true);
  Stmt copy = CopyNest(name, cached, buffer, region);
  // The whole nest works on the new buffer: an init beside the block, readers below the same loops.
  const Stmt renamed = ReplaceBuffers(index.stmt(outermost), [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(cached) : std::nullopt;
  });
  Stmt body = index.Replace(outermost, MakeSeq({renamed, std::move(copy)}));
  schedule.SetBody(WithAlloc(body, scope_block, scope_name, cached));
  const int number = schedule.Record(
      CacheWriteStep{.block = ref, .write_buffer_index = write_index, .storage_scope = std::string(ToText(scope))},
      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

}  // namespace hone
