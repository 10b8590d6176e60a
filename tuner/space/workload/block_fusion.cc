#include "tuner/space/workload/block_fusion.h"

#include <algorithm>

namespace hone {
namespace {

// What reading costs again is worth saving once it is more than a load of the stored value.
constexpr double kCheapOperations = 2;

// Instance (i, j, ..) reads element (i, j, ..) of the buffer, and nothing else of it.
bool ReadsWhereItWrites(const BlockInfo& block, const Buffer& buffer) {
  for (const BlockInfo::Access& read : block.reads) {
    if (!(read.buffer == buffer)) continue;
    if (read.indices.size() != block.output_iters.size()) return false;
    for (size_t d = 0; d < read.indices.size(); ++d) {
      const int iter = block.output_iters[d];
      const VarRef* ref = read.indices[d].As<VarRef>();
      const bool same = iter >= 0 && ref != nullptr && ref->var == block.iters[static_cast<size_t>(iter)].var;
      const bool only_one = IsConst(read.indices[d], 0) && IsConst(buffer.shape()[d], 1) &&
                            (iter < 0 || block.extents[static_cast<size_t>(iter)] == 1);
      if (!same && !only_one) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int64_t> JoinedForms(const BlockInfo& block, const BlockInfo& producer) {
  std::vector<int64_t> forms = block.forms;
  for (const BlockInfo::Access& read : block.reads) {
    if (!(read.buffer == producer.output)) continue;
    for (size_t d = 0; d < read.indices.size(); ++d) {
      const int made_by = producer.output_iters[d];
      if (made_by < 0 || producer.forms[static_cast<size_t>(made_by)] == 0) continue;
      const Binary* mod = read.indices[d].As<Binary>();
      const bool repeats = mod != nullptr && mod->op == BinaryOp::kFloorMod;
      const VarRef* ref = (repeats ? mod->a : read.indices[d]).As<VarRef>();
      for (size_t i = 0; ref != nullptr && i < block.iters.size(); ++i) {
        if (!(block.iters[i].var == ref->var)) continue;
        forms[i] = std::max(forms[i], repeats ? ConstantValue(mod->b).value_or(0) : block.extents[i]);
      }
    }
  }
  return forms;
}

int ProducerOfForms(const WorkloadInfo& info, int reader) {
  for (int i = 0; i < reader; ++i) {
    const BlockInfo& block = info.blocks[static_cast<size_t>(i)];
    if (!block.reduces && block.single_store && block.chooses() && info.Consumers(i) == std::vector<int>{reader})
      return i;
  }
  return -1;
}

bool WritesAtItsOwnVariables(const BlockInfo& block) {
  std::set<int> seen;
  for (size_t d = 0; d < block.output_iters.size(); ++d) {
    const int iter = block.output_iters[d];
    if (iter < 0 || !seen.insert(iter).second) return false;
  }
  return seen.size() == block.iters.size();
}

bool CanBeInlined(const WorkloadInfo& info, int i) {
  const BlockInfo& block = info.blocks[static_cast<size_t>(i)];
  if (block.reduces || block.writes_param || !block.single_store || !WritesAtItsOwnVariables(block)) return false;
  const std::vector<int> consumers = info.Consumers(i);
  if (consumers.empty()) return false;
  for (const int c : consumers) {
    const BlockInfo& consumer = info.blocks[static_cast<size_t>(c)];
    const auto read = std::find_if(consumer.reads.begin(), consumer.reads.end(),
                                   [&](const BlockInfo::Access& access) { return access.buffer == block.output; });
    const bool read_once = consumers.size() == 1 && consumer.instances() <= block.instances() && read->places == 1;
    if (read_once) continue;
    // The forms of a transform are straight code in which a guarded load costs little more than another.
    if (block.pads && consumers.size() == 1 && consumer.chooses()) continue;
    // Inside a reduction the work would be done again for every term, and its loads would no longer be plain: an
    // instruction takes operands of the type that they have in memory.
    if (consumer.reduces ? block.operations > 0 || block.converts : block.operations > kCheapOperations) return false;
  }
  return true;
}

bool IsTileable(const BlockInfo& block) {
  if (!block.reduces || !block.single_store) return false;
  const int last = block.last_iter();
  const bool plain =
      last >= 0 && block.spatial(last) &&
      std::all_of(block.output_iters.begin(), block.output_iters.end(), [](int iter) { return iter >= 0; });
  if (!plain || block.extents[static_cast<size_t>(last)] == 1) return false;
  return std::any_of(block.reads.begin(), block.reads.end(), [last](const BlockInfo::Access& read) {
    const int64_t stride = read.strides[static_cast<size_t>(last)];
    return (stride >= 0 && stride <= 2) || read.constant;
  });
}

BlockFusion::BlockFusion(const WorkloadInfo& info) : info_(info) {
  for (int i = size(); i-- > 0;) {
    if (CanBeInlined(info_, i) && !CarriesWorkBetweenSums(i)) inlined_.insert(i);
  }
  for (int i = 0; i < size(); ++i) KeepOperandsApart(i);
  inlined_list_.assign(inlined_.begin(), inlined_.end());
}

bool BlockFusion::CarriesWorkBetweenSums(int i) const {
  const BlockInfo& block = info_.blocks[static_cast<size_t>(i)];
  const auto is_sum = [&](int other) { return other >= 0 && info_.blocks[static_cast<size_t>(other)].reduces; };
  return block.operations > 0 && std::ranges::any_of(Readers(i), is_sum) &&
         std::ranges::any_of(block.reads, [&](const auto& read) { return is_sum(info_.Producer(read.buffer)); });
}

void BlockFusion::KeepOperandsApart(int reader) {
  const BlockInfo& block = info_.blocks[static_cast<size_t>(reader)];
  if (!block.reduces || block.last_iter() < 0) return;
  // What lies apart for the vectors is what is worth a copy.
  const auto is_apart = [&](const BlockInfo::Access& read) {
    return std::abs(read.strides[static_cast<size_t>(block.last_iter())]) > 1;
  };
  std::vector<const BlockInfo::Access*> reads;
  for (const BlockInfo::Access& read : block.reads) reads.push_back(&read);
  std::stable_sort(reads.begin(), reads.end(),
                   [&](const auto* a, const auto* b) { return is_apart(*a) < is_apart(*b); });
  std::set<Buffer> taken;
  for (const BlockInfo::Access& read : block.reads) {
    if (IsInlined(info_.Producer(read.buffer))) continue;
    taken.insert(read.buffer);
  }
  for (const BlockInfo::Access* read : reads) {
    const int producer = info_.Producer(read->buffer);
    if (!IsInlined(producer)) continue;
    const std::vector<BlockInfo::Access>& sources = info_.blocks[static_cast<size_t>(producer)].reads;
    if (std::ranges::any_of(sources, [&](const auto& source) { return taken.count(source.buffer) > 0; }))
      inlined_.erase(producer);
    for (const BlockInfo::Access& source : sources) taken.insert(source.buffer);
  }
}

std::set<int> BlockFusion::Readers(int i) const {
  std::set<int> found;
  for (const int c : info_.Consumers(i)) {
    if (inlined_.count(c) == 0) {
      found.insert(c);
    } else {
      found.merge(Readers(c));
    }
  }
  return found;
}

bool BlockFusion::ReadsInPlaceThroughInlined(int from, int to) const {
  const Buffer& buffer = info_.blocks[static_cast<size_t>(from)].output;
  for (const int c : info_.Consumers(from)) {
    if (!ReadsWhereItWrites(info_.blocks[static_cast<size_t>(c)], buffer)) return false;
    if (c != to && !ReadsInPlaceThroughInlined(c, to)) return false;
  }
  return true;
}

// Everything that the block, or one inlined into it, reads is there before block `limit` runs.
bool BlockFusion::InputsReady(int i, int limit) const {
  for (const BlockInfo::Access& read : info_.blocks[static_cast<size_t>(i)].reads) {
    for (int producer = 0; producer < size(); ++producer) {
      if (!(info_.blocks[static_cast<size_t>(producer)].output == read.buffer) || producer == limit) continue;
      if (inlined_.count(producer) > 0 ? !InputsReady(producer, limit) : producer > limit) return false;
    }
  }
  return true;
}

int BlockFusion::Epilogue(int i) const {
  const std::set<int> readers = Readers(i);
  if (readers.size() != 1 || info_.blocks[static_cast<size_t>(i)].writes_param) return -1;
  const int reader = *readers.begin();
  const BlockInfo& block = info_.blocks[static_cast<size_t>(reader)];
  if (block.reduces || !block.single_store || !WritesAtItsOwnVariables(block)) return -1;
  return ReadsInPlaceThroughInlined(i, reader) && InputsReady(reader, i) ? reader : -1;
}

}  // namespace hone
