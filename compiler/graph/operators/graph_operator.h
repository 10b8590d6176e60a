// Nodes that name an operator of the graph: R.hone.dense of the text dialect, and R.add.
#pragma once

#include <string_view>

#include "compiler/graph/operators/operator.h"

namespace hone {

// The row for an operator of the graph by its name; nullptr when there is none. Its nodes are appended as they are.
const OnnxOperator* FindGraphOperator(std::string_view name);

// The row for an operator of the text dialect that is an element-wise one of the graph's of the same name, R.add or
// R.nn.relu, and needs no attributes; nullptr when it is none.
const OnnxOperator* FindElementwiseOperator(std::string_view name);

}  // namespace hone
