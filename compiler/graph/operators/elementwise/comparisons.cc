// Comparisons of two operands, and tests for infinity and NaN.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

Outputs IsInf(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const bool negative = c.IntAttr("detect_negative", 1) != 0, positive = c.IntAttr("detect_positive", 1) != 0;
  HONE_ASSIGN_OR_RETURN(const int infinite, c.Emit("isinf", {c.input(0)}));
  if (negative && positive) return std::vector<int>{infinite};
  HONE_ASSIGN_OR_RETURN(const int sign,
                        c.Emit(positive ? "greater" : "less", {c.input(0), c.Scalar(c.type(c.input(0)).dtype, 0)}));
  HONE_ASSIGN_OR_RETURN(const int one_sided, c.Emit("and", {infinite, sign}));
  if (negative || positive) return std::vector<int>{one_sided};
  return One(c.Emit("and", {infinite, c.Scalar(kBool, 0)}));
}

}  // namespace

HONE_OPERATORS(comparisons) {
  constexpr Accepts kAny = Accepts::kAny, kNumber = Accepts::kNumber, kFloat = Accepts::kFloat;
  return {{.graph = {BinaryFunction("equal", kAny, topi::Equal, kBool),
                     BinaryFunction("not_equal", kAny, topi::NotEqual, kBool),
                     BinaryFunction("less", kNumber, topi::Less, kBool),
                     BinaryFunction("less_equal", kNumber, topi::LessEqual, kBool),
                     BinaryFunction("greater", kNumber, topi::Greater, kBool),
                     BinaryFunction("greater_equal", kNumber, topi::GreaterEqual, kBool),
                     UnaryFunction("isnan", kFloat, topi::IsNan, kBool),
                     UnaryFunction("isinf", kFloat, topi::IsInf, kBool)},
           .onnx = {
               {"Equal", 7, [](NodeContext& c) { return ImportAs(c, 2, "equal"); }},  // bools compare as integers
               {"Less", 7, [](NodeContext& c) { return ImportAs(c, 2, "less"); }},
               {"LessOrEqual", 12, [](NodeContext& c) { return ImportAs(c, 2, "less_equal"); }},
               {"Greater", 7, [](NodeContext& c) { return ImportAs(c, 2, "greater"); }},
               {"GreaterOrEqual", 12, [](NodeContext& c) { return ImportAs(c, 2, "greater_equal"); }},
               {"IsNaN", 9, [](NodeContext& c) { return ImportAs(c, 1, "isnan"); }},
               {"IsInf", 10, IsInf},
           }}};
}

}  // namespace hone
