#include "compiler/schedule/cache.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/dataflow.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/region.h"
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

// What the instances of the block that run touch of a buffer, clipped to it. A block that was moved to its consumer
// runs less than its domain.
std::vector<Range> TouchedRegion(const ProgramIndex& index, int node, const Buffer& buffer, bool writes) {
  Analyzer known;
  const int scope = index.EnclosingBlock(node);
  const auto touched = TouchedWithin(index, scope, node, buffer, writes, known);
  const std::vector<IntervalSet> box = UnionOf(touched, known);
  const Block& block = index.block(node);
  SetMap domains;
  for (const IterVar& it : block.iters) domains[it.var] = IntervalSet::FromRange(it.domain);
  std::vector<std::vector<IntervalSet>> by_domain;
  for (const BufferRegion& access : writes ? block.writes : block.reads) {
    if (access.buffer.SameAs(buffer)) by_domain.push_back(EvalRegion(access.region, domains, known));
  }
  const std::vector<IntervalSet> most = UnionOf(by_domain, known);
  std::vector<Range> region;
  for (size_t d = 0; d < box.size(); ++d) {
    const Expr size = buffer.shape()[d];
    IntervalSet set = Intersect(Intersect(box[d], most[d], known), {IntConst(0), size - 1}, known);
    const std::optional<Range> range = ToRange(set, known);
    const bool constant =
        range.has_value() && ConstantValue(range->min).has_value() && ConstantValue(range->extent).has_value();
    region.push_back(constant ? *range : Range{IntConst(0, size.type()), size});
  }
  return region;
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
    return Invalid("cache_read(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
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
  const std::vector<Range> region = TouchedRegion(index, node, buffer, false);
  const std::vector<int> writers = WritersOf(index, scope_block, buffer);
  bool there = writers.empty();  // a param, or made before the enclosing block
  for (const int w : writers) {
    Analyzer known;
    const std::vector<Range> written = TouchedRegion(index, w, buffer, true);
    std::vector<IntervalSet> outer, inner;
    for (size_t d = 0; d < region.size(); ++d) {
      outer.push_back(IntervalSet::FromRange(written[d]));
      inner.push_back(IntervalSet::FromRange(region[d]));
    }
    there = there || (CheckExact(index, scope_block, w, buffer).ok() && Covers(outer, inner, buffer, known));
  }
  if (!there) {
    return Refused("cache_read(", block.name, ", ", buffer,
                   "): no block writes all elements of the part that would be copied");
  }
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(scope_block).name;
  Stmt copy = CopyNest(name, buffer, cached, region);
  const Stmt renamed = ReplaceBuffers(index.stmt(node), [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(cached) : std::nullopt;
  });
  const std::string block_name = block.name;
  const ProgramIndex with_cached(index.Replace(node, renamed));
  Stmt body =
      with_cached.InsertBeside(Outermost(with_cached, with_cached.FindBlock(block_name)), std::move(copy), Stmt());
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
    return Invalid("cache_write(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ",
                   write_index);
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
  if (const absl::Status all = CheckExact(index, scope_block, node, buffer); !all.ok()) {
    return Refused("cache_write(", block.name, ", ", buffer,
                   "): the block leaves out elements that the copy back would read: ", all.message());
  }
  // ---- nothing below fails ----
  const Buffer cached(CacheName(buffer, scope), buffer.type(), buffer.shape(), scope);
  const std::string name = FreshBlockName(index, cached.name());
  const std::string scope_name = index.block(scope_block).name;
  std::vector<Range> region = TouchedRegion(index, node, buffer, true);
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
