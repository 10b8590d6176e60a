// A graph as a module of the text dialect (compiler/ir/module.h): what `hone inspect --text` prints, and what
// ImportModule (compiler/frontend/module_import.h) makes the graph of again.
//
//   x: R.Tensor((1, 784), dtype="float32")
//   =>  lv: R.Tensor((1, 10), dtype="float32") = R.hone.dense(x, metadata["relax.expr.Constant"][0])
#pragma once

#include <memory>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/module.h"

namespace hone {

// A module, and the constants that it keeps outside of the text: number i is metadata["relax.expr.Constant"][i].
struct GraphModule {
  IrModule module;
  std::vector<std::shared_ptr<const NdArray>> constants;
};

// Class "Module": the graph's tensor functions, then the graph function "main" with one dataflow block, in which each
// node is a binding with its type. Node "op" is R.hone.op with the node's attributes as named arguments; "call_tir" and
// "call_packed" are R.call_tir and R.call_dps_packed. A node of several outputs binds a tuple, then its items. Inputs
// and outputs have the names that the model gives them, other values those of their nodes, all made identifiers.
//
// A constant of at most kMostElementsInText elements is R.const(...) where that says its bits exactly; any other is
// kept outside of the text, each array once.
//
// Attributes of "main", each a list of texts that is absent where all are empty: "domains" and "elements" of the
// parameters (GraphValue::domain and ::element), "output_elements" (Graph::output_elements). The module does not say
// the names of nodes beside those of values, the second name of a value that is an output twice, the name of an output
// that is an input or a constant, nor the notes, the file's digest, and what constant folding goes by.
GraphModule ModuleOf(const Graph& graph);
inline constexpr int64_t kMostElementsInText = 16;

}  // namespace hone
