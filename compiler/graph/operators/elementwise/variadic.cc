// Operators that take any number of inputs, as chains of those that take two.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

Outputs Variadic(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1 << 16));
  int result = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) return Unsupported(absl::StrCat("input ", i, " is left out"));
    HONE_ASSIGN_OR_RETURN(result, c.Emit(op, {result, c.input(i)}));
  }
  return std::vector<int>{result};
}

Outputs Mean(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> sum, Variadic(c, "add"));
  return One(c.Emit("multiply", {sum[0], c.Scalar(c.type(sum[0]).dtype, 1.0 / c.num_inputs())}));
}

}  // namespace

HONE_OPERATORS(variadic) {
  return {{.graph = {Commutative(BinaryFunction("maximum", Accepts::kNumber, topi::Maximum)),
                     Commutative(BinaryFunction("minimum", Accepts::kNumber, topi::Minimum))},
           .onnx = {
               {"Max", 6, [](NodeContext& c) { return Variadic(c, "maximum"); }},
               {"Min", 6, [](NodeContext& c) { return Variadic(c, "minimum"); }},
               {"Sum", 6, [](NodeContext& c) { return Variadic(c, "add"); }, "", true},
               {"Mean", 6, Mean, "", true},
           }}};
}

}  // namespace hone
