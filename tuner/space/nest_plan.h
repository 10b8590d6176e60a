// How templates cut a function into nests: which blocks disappear into others, and which block takes the results of
// which.
#pragma once

#include <vector>

#include "tuner/space/workload_info.h"

namespace hone {

struct Nest {
  enum class Kind { kTile, kRows, kMap, kForms };
  Kind kind = Kind::kMap;
  int block = 0;
  int epilogue = -1;           // with kTile: the elementwise block computed on every tile
  int producer = -1;           // with kForms: the block computed for every tile of `block`
  std::vector<int64_t> forms;  // with kForms: of `block`, see BlockFusion::Forms
};

struct NestPlan {
  std::vector<int> inlined;  // in the order in which to inline them
  std::vector<Nest> nests;   // in program order
};

// A block is inlined when it is elementwise or moving and costs no more where it is read than where it is: cheap, or
// read once. A reduction's only reader becomes its epilogue when it reads every element where it was made.
NestPlan PlanNests(const WorkloadInfo& info);

}  // namespace hone
