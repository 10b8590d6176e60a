// Calls of what is no operator: "call_tir" of a tensor function of the model (Graph::functions), "call_packed" of a
// function that the program which runs the model registers. Their attributes: calls.h.
#include "compiler/graph/calls.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// A kernel of its own: what is inside is not taken apart.
OpInfo CallOp(std::string_view name) {
  OpInfo op{.name = name, .kind = OpKind::kOpaque, .folds = false};
  op.infer = [](TypeSpan, const Attrs& attrs) { return OutputsOfCall(attrs); };
  return op;
}

// The function of the model for these inputs and outputs, by its name: one with symbolic sizes becomes one of their
// sizes, which are not in its name, so that a graph at other sizes has the same.
absl::StatusOr<std::string> FunctionFor(Graph& graph, const std::string& name, TypeSpan types) {
  const auto found = graph.functions.find(name);
  if (found == graph.functions.end()) return Unsupported(absl::StrCat("there is no tensor function ", name));
  const PrimFunc& func = found->second;
  if (func.params.size() != types.size())
    return Unsupported(absl::StrCat(name, " has ", func.params.size(), " parameters, the call ", types.size()));
  std::vector<std::vector<int64_t>> shapes;
  for (size_t p = 0; p < types.size(); ++p) {
    if (func.params[p].type() != types[p].dtype)
      return Unsupported(absl::StrCat("parameter ", func.params[p].name(), " of ", name, " is of type ",
                                      ToText(func.params[p].type()), ", it is given ", ToText(types[p])));
    shapes.push_back(types[p].shape);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesFromShapes(func, shapes));
  if (sizes.empty()) return name;
  PrimFunc with_sizes = WithSizes(func, sizes);
  for (int i = 0;; ++i) {
    with_sizes.name = absl::StrCat(name, "_of_size_", i);
    const auto [entry, is_new] = graph.functions.emplace(with_sizes.name, with_sizes);
    if (is_new || StructuralEqual(entry->second, with_sizes)) return with_sizes.name;
  }
}

// The node's attributes as those of a node of the graph.
Attrs AttrsOfCall(NodeContext& c) {
  return {{"function", c.StringAttr("function", "")},
          {"dtypes", c.StringsAttr("dtypes")},
          {"ranks", c.IntsAttr("ranks")},
          {"shapes", c.IntsAttr("shapes")}};
}

Outputs CallTir(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.num_inputs(), c.num_inputs()));
  Attrs attrs = AttrsOfCall(c);
  Types types;
  for (const int input : c.inputs()) types.push_back(c.type(input));
  HONE_ASSIGN_OR_RETURN(const Types outputs, OutputsOfCall(attrs));
  types.insert(types.end(), outputs.begin(), outputs.end());
  HONE_ASSIGN_OR_RETURN(attrs["function"], FunctionFor(c.graph(), c.StringAttr("function", ""), types));
  return c.EmitAll("call_tir", c.inputs(), std::move(attrs));
}

Outputs CallPacked(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.num_inputs(), c.num_inputs()));
  return c.EmitAll("call_packed", c.inputs(), AttrsOfCall(c));
}

}  // namespace

HONE_OPERATORS(calls) {
  OpInfo call_tir = CallOp("call_tir");
  call_tir.calls_function = true;
  return {{.graph = {call_tir, CallOp("call_packed")},
           .onnx = {{"call_tir", 1, CallTir, kModuleDomain}, {"call_packed", 1, CallPacked, kModuleDomain}}}};
}

}  // namespace hone
