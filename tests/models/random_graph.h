// Random graphs of the operators that a plan is made of.
#pragma once

#include <functional>

#include "compiler/graph/graph.h"

namespace hone {

// Up to 40 nodes over small tensors of odd shapes: values are read again, broadcast, cut, moved, joined. What differs
// by a rounding stays so: magnitudes are kept small, and operators with jumps read only what is exact (inputs, and what
// was moved or selected of them).
Graph RandomGraph(uint64_t seed);

// The smallest graph found that still fails: outputs are taken away or give way to what their nodes read, and inputs
// stand in place of nodes' results.
Graph Shrunk(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace hone
