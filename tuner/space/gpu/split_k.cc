// Split k on GPUs: where the tiles of a product are fewer than the device's processors, parts of its reduction are
// further tiles, and a second launch adds up what they give, on the way of the epilogue.
//
//   C[m, n] += A[m, k] * B[k, n]   =>   blockIdx.x tile of p, m, n: P[p, m, n] += A[m, p * K + k] * B[p * K + k, n]
//                                       blockIdx.x of m, n: C[m, n] += P[p, m, n];  [epilogue]
#include <algorithm>
#include <numeric>
#include <vector>

#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

// Results of the tiles that drafts choose: the large one has the most of its operands, the small one has parts enough
// where results are few, and fewer to add up.
constexpr int64_t kResultsOfTiles[] = {128 * 128, 64 * 64};
constexpr int64_t kShortestPart = 128;  // terms
constexpr int64_t kTermsOfStep = 32;    // a part is so many, times something, where the reduction is

}  // namespace

std::vector<Rewrite> GpuRewrites(const WorkloadInfo& info, const GpuTarget& target) {
  std::vector<Rewrite> found = {{"", [](Schedule&) { return absl::OkStatus(); }}};
  const BlockInfo& block = info.blocks[static_cast<size_t>(info.heaviest)];
  if (!IsGpuProduct(info, info.heaviest)) return found;
  const int64_t terms = TermsOf(block), results = block.instances() / terms;
  std::vector<int64_t> candidates;
  for (const int64_t tile : kResultsOfTiles) {
    const int64_t tiles = (results + tile - 1) / tile;
    const int64_t extent = block.extents[static_cast<size_t>(block.longest_reduce_iter())];
    const int64_t most = std::min(target.processors / tiles, terms / kShortestPart);
    candidates.push_back(PartsUpTo(extent / std::gcd(extent, kTermsOfStep), most));
  }
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::erase(candidates, 1);
  for (const int64_t parts : candidates) found.push_back(SplitKRewrite(block, parts));
  return found;
}

}  // namespace hone
