// Reductions in parts: where the elements of a reduction that is no product are too few to give every processor some,
// parts of their terms are shared out among blocks too, and a second launch adds up what they give.
//
//   C[i] += A[i, k]   =>   blockIdx.x of p, i: P[p, i] += A[i, p * K + k]
//                          blockIdx.x of i: C[i] += P[p, i];  [epilogue]
#include <algorithm>
#include <vector>

#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

constexpr int64_t kNeighbours = 32;  // elements of a block where those are neighbours in memory
constexpr int64_t kFewestTermsOfPart = 512;
constexpr int64_t kBlocksOfProcessor[] = {1, 2};

// The only block that reduces; null where there are none or several.
const BlockInfo* OnlyReduction(const WorkloadInfo& info) {
  const BlockInfo* found = nullptr;
  for (const BlockInfo& block : info.blocks) {
    if (!block.reduces) continue;
    if (found != nullptr) return nullptr;
    found = &block;
  }
  return found;
}

}  // namespace

std::vector<Rewrite> ReductionParts(const WorkloadInfo& info, const GpuTarget& target) {
  const BlockInfo* block = OnlyReduction(info);
  if (block == nullptr || !block->splits || !block->single_store) return {};
  if (IsGpuProduct(info, static_cast<int>(block - info.blocks.data()))) return {};
  const int64_t terms = TermsOf(*block), elements = block->instances() / terms;
  const int64_t blocks = AddsAlongMemory(*block) ? elements : (elements + kNeighbours - 1) / kNeighbours;
  const int64_t extent = block->extents[static_cast<size_t>(block->longest_reduce_iter())];
  std::vector<Rewrite> found;
  int64_t last = 1;
  for (const int64_t each : kBlocksOfProcessor) {
    const int64_t wanted = std::min(target.processors * each / blocks, terms / kFewestTermsOfPart);
    const int64_t parts = PartsUpTo(extent, wanted);
    if (parts == last) continue;
    found.push_back(SplitKRewrite(*block, parts));
    last = parts;
  }
  return found;
}

}  // namespace hone
