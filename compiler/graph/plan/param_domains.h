// The values for which a kernel is meant.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/plan/group.h"

namespace hone {

// For each of these inputs of the group the text of PrimFunc's attribute "domains": an index stays in range (of what it
// points into, so that models with one table share a task; else of what the model says of its input), what a root, a
// logarithm or a division is taken of stays positive where it comes from that input without subtraction.
std::vector<std::string> ParamDomains(const Graph& graph, const Group& group, const std::vector<int>& inputs);

}  // namespace hone
