// Which blocks may disappear into their readers, and which block may take another's results tile by tile. What
// templates and sketch rules agree on.
#pragma once

#include <set>
#include <vector>

#include "tuner/space/workload/workload_info.h"

namespace hone {

// A block is inlined when it is elementwise or moving and costs no more where it is read than where it is: cheap, or
// read once.
bool CanBeInlined(const WorkloadInfo& info, int block);

// Every element of the output is written by the instance whose variables are its indices.
bool WritesAtItsOwnVariables(const BlockInfo& block);

// A reduction that accumulates into a tile of registers: its results lie along a spatial variable, and an operand is
// shared by several of them or lies along them too, each element or every other one.
bool IsTileable(const BlockInfo& block);

// BlockInfo::forms of the block with what those of `producer` depend on, which it reads: over its own variables.
std::vector<int64_t> JoinedForms(const BlockInfo& block, const BlockInfo& producer);

// A block without reduction that chooses among forms and that `reader` alone reads; -1: there is none.
int ProducerOfForms(const WorkloadInfo& info, int reader);

// The blocks of a workload once everything that can be inlined is.
class BlockFusion {
 public:
  explicit BlockFusion(const WorkloadInfo& info);  // which outlives it

  const std::vector<int>& inlined() const { return inlined_list_; }  // in the order in which to inline them
  bool IsInlined(int block) const { return inlined_.count(block) > 0; }
  // Blocks that read what the block writes, also through inlined ones.
  std::set<int> Readers(int block) const;
  // The only reader, where it is elementwise and reads every element where it was made, and everything else it reads is
  // there before `block` runs; -1: there is none.
  int Epilogue(int block) const;

 private:
  // Whether the block takes the results of one reduction to another, through blocks that are inlined, and has work to
  // do on the way: the first one does it once for each result, the other would for each of its terms.
  bool CarriesWorkBetweenSums(int block) const;
  // Of the operands of a reduction that would be read from one buffer, one is: two accesses to a buffer are neither
  // packed nor told apart.
  void KeepOperandsApart(int reader);
  bool ReadsInPlaceThroughInlined(int from, int to) const;
  bool InputsReady(int block, int limit) const;
  int size() const { return static_cast<int>(info_.blocks.size()); }

  const WorkloadInfo& info_;
  std::vector<int> inlined_list_;
  std::set<int> inlined_;
};

}  // namespace hone
