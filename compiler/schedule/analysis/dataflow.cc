#include "compiler/schedule/analysis/dataflow.h"

#include <algorithm>

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

}  // namespace hone
