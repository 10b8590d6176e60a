// Arithmetic of two operands; the sign and the absolute value of one.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

OpInfo WithNeutral(double neutral, OpInfo op) {
  op.neutral = neutral;
  return op;
}

Outputs Mod(NodeContext& c) { return ImportAs(c, 2, c.IntAttr("fmod", 0) != 0 ? "fmod" : "mod"); }

}  // namespace

HONE_OPERATORS(arithmetic) {
  constexpr Accepts kNumber = Accepts::kNumber;
  return {{.graph = {Commutative(WithNeutral(0, BinaryFunction("add", kNumber, topi::Add))),
                     WithNeutral(0, BinaryFunction("subtract", kNumber, topi::Subtract)),
                     Commutative(WithNeutral(1, BinaryFunction("multiply", kNumber, topi::Multiply))),
                     WithNeutral(1, BinaryFunction("divide", kNumber, topi::Divide)),
                     BinaryFunction("mod", kNumber, topi::Mod), BinaryFunction("fmod", kNumber, topi::Fmod),
                     UnaryFunction("abs", kNumber, topi::Abs), UnaryFunction("negative", kNumber, topi::Negative),
                     UnaryFunction("sign", kNumber, topi::Sign)},
           .onnx = {
               {"Add", 7, [](NodeContext& c) { return ImportAs(c, 2, "add"); }},
               {"Sub", 7, [](NodeContext& c) { return ImportAs(c, 2, "subtract"); }},
               {"Mul", 7, [](NodeContext& c) { return ImportAs(c, 2, "multiply"); }},
               {"Div", 7, [](NodeContext& c) { return ImportAs(c, 2, "divide"); }},
               {"Mod", 10, Mod},
               {"Abs", 6, [](NodeContext& c) { return ImportAs(c, 1, "abs"); }},
               {"Neg", 6, [](NodeContext& c) { return ImportAs(c, 1, "negative"); }},
               {"Sign", 9, [](NodeContext& c) { return ImportAs(c, 1, "sign"); }},
           }}};
}

}  // namespace hone
