// Which nodes become one kernel.
#pragma once

#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/plan/planner.h"

namespace hone {

// One output: the first of the last node's, others of that node beside it where it has several; everything in between
// is seen by the group alone.
struct Group {
  std::vector<int> nodes;  // in topological order
  int anchor = -1;         // the node the group is about; -1: elementwise and moving operators alone
};

// Every node belongs to exactly one group, but a view to none, or to the one that alone reads it; groups are in an
// order in which they can run. Without PlanOptions::fuse: a group a node.
//
// Anchors take what follows them, the most work first, so that a residual sum goes to the larger of two convolutions,
// and what elementwise operators make for those followers of one other value; then reductions and products take the
// elementwise operators in front of them, products also the concatenation or slice that these begin with, convolutions
// that pad the change of layout, and products of batches the slices they read; products of pixels take the depthwise
// convolution that they alone read, products of batches the softmax and the product in front of it; then concatenations
// take their slices, and what is left forms chains.
std::vector<Group> FormGroups(const Graph& graph, const PlanOptions& options);

}  // namespace hone
