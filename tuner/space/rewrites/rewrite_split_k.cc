// Split k: a product with few results and a long reduction is computed in parts of k, which threads share out like any
// other variable, and the parts are added up.
//
//   C[m, n] += A[m, k] * B[k, n]   =>   P[p, m, n] += A[m, p * K + k] * B[p * K + k, n];   C[m, n] += P[p, m, n]
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/rewrites/rewrite.h"
#include "tuner/space/workload/block_fusion.h"

namespace hone {
namespace {

constexpr int64_t kVectorsOfTile = 24;      // of results in a large register tile
constexpr int64_t kEnoughTiles = 4;         // a thread: with more, every thread has work without parts of k
constexpr int64_t kShortestPart = 128;      // terms
constexpr int64_t kWorthSharing = 1 << 17;  // terms in all: some microseconds, a few times what a parallel loop costs

// The least divisor of `extent` from `least` on that leaves parts long enough; 1: there is none.
int64_t PartsFrom(int64_t extent, int64_t terms, int64_t least) {
  for (int64_t parts = least; parts <= extent && terms / parts >= kShortestPart; ++parts) {
    if (extent % parts == 0) return parts;
  }
  return 1;
}

absl::Status SplitReduction(Schedule& schedule, const std::string& name, size_t along, int64_t parts) {
  HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, name));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> loops, LoopsOfIters(schedule, block));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> cut, Split(schedule, *loops[along], {parts, -1}));
  return Rfactor(schedule, cut[0], 0).status();
}

}  // namespace

Rewrite SplitKRewrite(const BlockInfo& block, int64_t parts) {
  const auto along = static_cast<size_t>(block.longest_reduce_iter());
  return {absl::StrCat("split_k_", parts, "(", block.name, ")"), [name = block.name, along, parts](Schedule& schedule) {
            return SplitReduction(schedule, name, along, parts);
          }};
}

std::vector<Rewrite> SplitKRewrites(const RewriteContext& context) {
  const BlockInfo& block = context.heaviest();
  if (context.threads == 1 || !block.splits || !IsTileable(block)) return {};
  int64_t results = 1, terms = 1;
  for (size_t i = 0; i < block.iters.size(); ++i)
    (block.spatial(static_cast<int>(i)) ? results : terms) *= block.extents[i];
  const int64_t lanes = context.target.lanes(std::max(32, static_cast<int>(block.output.type().bits)));
  if (results > context.threads * kEnoughTiles * kVectorsOfTile * lanes || block.instances() < kWorthSharing) return {};
  // Every thread has a part; or so many that parts and tiles together are as many.
  const int64_t longest = block.extents[static_cast<size_t>(block.longest_reduce_iter())];
  std::vector<int64_t> candidates = {PartsFrom(longest, terms, context.threads),
                                     PartsFrom(longest, terms, static_cast<int64_t>(std::sqrt(context.threads)))};
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::erase(candidates, 1);
  std::vector<Rewrite> found;
  for (const int64_t parts : candidates) found.push_back(SplitKRewrite(block, parts));
  return found;
}

}  // namespace hone
