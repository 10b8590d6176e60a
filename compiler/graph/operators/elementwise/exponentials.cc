// The exponential, the logarithm, the error function.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/topi/elementwise.h"

namespace hone {

HONE_OPERATORS(exponentials) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {
      {.graph = {UnaryFunction("exp", kFloat, topi::Exp), UnaryFunction("log", kFloat, topi::Log),
                 UnaryFunction("erf", kFloat, topi::Erf)},
       .onnx = {
           {"Exp", 6, [](NodeContext& c) { return ImportAs(c, 1, "exp"); }, "", true},
           {"Log", 6, [](NodeContext& c) { return ImportAs(c, 1, "log"); }, "", true, NarrowElements::kRefuses, true},
           {"Erf", 9, [](NodeContext& c) { return ImportAs(c, 1, "erf"); }, "", true},
       }}};
}

}  // namespace hone
