// Rounding to an integer of the same floating type.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/topi/elementwise.h"

namespace hone {

HONE_OPERATORS(rounding) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {{.graph = {UnaryFunction("floor", kFloat, topi::Floor), UnaryFunction("ceil", kFloat, topi::Ceil),
                     UnaryFunction("round", kFloat, topi::Round)},
           .onnx = {
               {"Floor", 6, [](NodeContext& c) { return ImportAs(c, 1, "floor"); }},
               {"Ceil", 6, [](NodeContext& c) { return ImportAs(c, 1, "ceil"); }},
               {"Round", 11, [](NodeContext& c) { return ImportAs(c, 1, "round"); }},
           }}};
}

}  // namespace hone
