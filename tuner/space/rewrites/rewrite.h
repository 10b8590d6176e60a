// Rewrites: other programs for a workload, from which sketches are derived as from the workload itself. A rewrite
// changes what is computed in which blocks (another algorithm, a reduction in two) and leaves loops to the sketches.
// Adding one is a file rewrite_NAME.cc and a row in rewrites.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// What rewrites are made for. Rewrites keep no pointer to `info`.
struct RewriteContext {
  const WorkloadInfo* info = nullptr;
  Target target;
  int threads = 1;

  const BlockInfo& heaviest() const { return info->blocks[static_cast<size_t>(info->heaviest)]; }
};

struct Rewrite {
  std::string label;                             // "winograd_2x2_3x3(conv)", for names of generators; empty: none
  std::function<absl::Status(Schedule&)> apply;  // on the workload; refuses where it is not for it
};

// Every way to compute the workload, the workload as it is first. Some may refuse, and some may round otherwise than
// the numeric level of a task allows (NumericLevelOf).
std::vector<Rewrite> Rewrites(const RewriteContext& context);

// Rows of the table, each in the file of its name: rewrite_algorithm.cc and so on.
std::vector<Rewrite> AlgorithmRewrites(const RewriteContext& context);
std::vector<Rewrite> SplitKRewrites(const RewriteContext& context);

// A reduction in so many parts of its longest variable, whose extent they divide (rewrite_split_k.cc).
Rewrite SplitKRewrite(const BlockInfo& block, int64_t parts);

}  // namespace hone
