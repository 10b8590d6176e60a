#include "compiler/schedule/dataflow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/interval_set.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/shared_results.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

bool Mentions(const std::vector<BufferRegion>& regions, const Buffer& buffer) {
  return std::any_of(regions.begin(), regions.end(), [&](const BufferRegion& r) { return r.buffer.SameAs(buffer); });
}

}  // namespace

bool Reads(const Block& block, const Buffer& buffer) { return Mentions(block.reads, buffer); }
bool Writes(const Block& block, const Buffer& buffer) { return Mentions(block.writes, buffer); }

std::vector<int> WritersOf(const ProgramIndex& index, int scope, const Buffer& buffer) {
  std::vector<int> found;
  for (const int b : index.BlocksBelow(scope)) {
    if (Writes(index.block(b), buffer)) found.push_back(b);
  }
  return found;
}

std::vector<int> ReadersOf(const ProgramIndex& index, int scope, const Buffer& buffer) {
  std::vector<int> found;
  for (const int b : index.BlocksBelow(scope)) {
    if (Reads(index.block(b), buffer)) found.push_back(b);
  }
  return found;
}

std::vector<int> ProducersOf(const ProgramIndex& index, int block) {
  std::vector<int> found;
  const Block& self = index.block(block);
  for (const int b : index.BlocksBelow(index.EnclosingBlock(block))) {
    if (b == block) continue;
    const std::vector<BufferRegion>& writes = index.block(b).writes;
    if (std::any_of(writes.begin(), writes.end(), [&](const BufferRegion& w) { return Reads(self, w.buffer); }))
      found.push_back(b);
  }
  return found;
}

std::vector<int> ConsumersOf(const ProgramIndex& index, int block) {
  std::vector<int> found;
  const Block& self = index.block(block);
  for (const int b : index.BlocksBelow(index.EnclosingBlock(block))) {
    if (b == block) continue;
    const std::vector<BufferRegion>& reads = index.block(b).reads;
    if (std::any_of(reads.begin(), reads.end(), [&](const BufferRegion& r) { return Writes(self, r.buffer); }))
      found.push_back(b);
  }
  return found;
}

int AllocatingBlock(const ProgramIndex& index, const Buffer& buffer) {
  for (int n = 0; n < index.size(); ++n) {
    if (!index.IsBlock(n)) continue;
    for (const Buffer& alloc : index.block(n).allocs) {
      if (alloc.SameAs(buffer)) return n;
    }
  }
  return -1;
}

bool IsIntermediate(const ProgramIndex& index, int scope, const Buffer& buffer) {
  return AllocatingBlock(index, buffer) == scope;
}

bool IsPrivateTo(const ProgramIndex& index, int node, const Buffer& buffer) {
  const int home = AllocatingBlock(index, buffer);
  if (home < 0) return false;
  for (const int b : index.BlocksBelow(home)) {
    if (index.Contains(node, b) || index.Contains(b, node)) continue;
    if (Reads(index.block(b), buffer) || Writes(index.block(b), buffer)) return false;
  }
  return true;
}

bool HasReduction(const Block& block) {
  if (block.init) return true;
  return std::any_of(block.iters.begin(), block.iters.end(),
                     [](const IterVar& it) { return it.kind == IterKind::kReduce; });
}

bool UpdatesInPlace(const Block& block) {
  return std::any_of(block.writes.begin(), block.writes.end(),
                     [&](const BufferRegion& w) { return Reads(block, w.buffer); });
}

void RefreshRegions(Block& block) {
  struct Access {
    std::vector<std::vector<Range>> regions;
  };
  std::vector<std::pair<Buffer, Access>> reads, writes;
  std::map<Var, Expr> lets;
  SetMap inner;  // loops inside the body
  Analyzer known;
  for (const IterVar& iter : block.iters) known.Bind(iter.var, iter.domain);

  const auto add = [&](std::vector<std::pair<Buffer, Access>>& list, const Buffer& buffer,
                       const std::vector<Range>& region) {
    for (const Buffer& own : block.allocs) {
      if (own.SameAs(buffer)) return;
    }
    std::vector<Range> relaxed = region;
    if (!inner.empty()) relaxed = RelaxRegion(BufferRegion{buffer, region}, inner, known);
    for (auto& [other, access] : list) {
      if (other.SameAs(buffer)) {
        access.regions.push_back(std::move(relaxed));
        return;
      }
    }
    list.push_back({buffer, Access{{std::move(relaxed)}}});
  };
  const auto points = [](const std::vector<Expr>& indices) {
    std::vector<Range> region;
    for (const Expr& i : indices) region.push_back(Range{i, IntConst(1, i.type())});
    return region;
  };
  const auto expr = [&](const Expr& root) {
    absl::flat_hash_set<const ExprNode*> seen;  // what stands in several places touches nothing new in the second
    ForEachExpr(root, [&](const Expr& e) {
      if (SharedResults::Applies(e) && !seen.insert(&e.node()).second) return false;
      if (const Load* load = e.As<Load>()) add(reads, load->buffer, points(load->indices));
      return true;
    });
  };
  const auto walk = [&](const auto& self, const Stmt& stmt) -> void {
    if (!stmt) return;
    if (const Store* store = stmt.As<Store>()) {
      for (const Expr& i : store->indices) expr(i);
      expr(store->value);
      add(writes, store->buffer, points(store->indices));
    } else if (const For* loop = stmt.As<For>()) {
      expr(loop->min);
      expr(loop->extent);
      inner[loop->var] = IntervalSet::FromRange(Range{loop->min, loop->extent});
      self(self, loop->body);
      inner.erase(loop->var);
    } else if (const Seq* seq = stmt.As<Seq>()) {
      for (const Stmt& s : seq->stmts) self(self, s);
    } else if (const IfThen* branch = stmt.As<IfThen>()) {
      expr(branch->condition);
      self(self, branch->yes);
      self(self, branch->no);
    } else if (const Let* let = stmt.As<Let>()) {
      expr(let->value);
      self(self, let->body);
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      const auto bind = [&](const Expr& e) {
        return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
          for (size_t i = 0; i < realize->values.size(); ++i) {
            if (realize->block.iters[i].var.SameAs(var)) return realize->values[i];
          }
          return std::nullopt;
        });
      };
      const auto outside = [&](const BufferRegion& access) {
        std::vector<Range> region;
        for (const Range& r : access.region) region.push_back(Range{bind(r.min), bind(r.extent)});
        return region;
      };
      for (const BufferRegion& r : realize->block.reads) add(reads, r.buffer, outside(r));
      for (const BufferRegion& w : realize->block.writes) add(writes, w.buffer, outside(w));
    } else if (const TileOp* op = stmt.As<TileOp>()) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        if (i == 0) add(writes, op->operands[i].buffer, op->operands[i].region);
        add(reads, op->operands[i].buffer, op->operands[i].region);
      }
    } else if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      expr(evaluate->value);
      if (const std::optional<Store> update = AtomicUpdate(*evaluate))
        add(writes, update->buffer, points(update->indices));
    } else if (const Alloc* alloc = stmt.As<Alloc>()) {
      self(self, alloc->body);
    }
  };
  if (block.init) walk(walk, block.init);
  walk(walk, block.body);

  const auto finish = [&](const std::vector<BufferRegion>& old, std::vector<std::pair<Buffer, Access>>& found) {
    std::vector<BufferRegion> regions;
    const auto emit = [&](std::pair<Buffer, Access>& entry) {
      auto& all = entry.second.regions;
      regions.push_back({entry.first, all.size() == 1 ? all[0] : UnionRegions(all, entry.first.shape(), known)});
      all.clear();
    };
    for (const BufferRegion& region : old) {
      for (auto& entry : found) {
        if (entry.first.SameAs(region.buffer) && !entry.second.regions.empty()) emit(entry);
      }
    }
    for (auto& entry : found) {
      if (!entry.second.regions.empty()) emit(entry);
    }
    return regions;
  };
  // What a reduction reads of its own result is its own business: only a block without init declares that it does.
  if (block.init) {
    std::erase_if(reads, [&](const auto& r) {
      return std::any_of(writes.begin(), writes.end(), [&](const auto& w) { return w.first.SameAs(r.first); });
    });
  }
  block.reads = finish(block.reads, reads);
  block.writes = finish(block.writes, writes);
}

}  // namespace hone
