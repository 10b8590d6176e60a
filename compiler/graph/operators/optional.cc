// Optional values. Whether there is one is known when the model is imported: a tensor is there, an input left out is
// not.
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

Outputs HasElement(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(0, 1));
  return Results({Constant(c, kBool, c.HasInput(0) ? 1 : 0)});
}

Outputs Element(NodeContext& c) {
  if (!c.HasInput(0)) return Unsupported("there is no element");
  return Results({Input(c, 0)});
}

}  // namespace

HONE_OPERATORS(optional) {
  return {{.onnx = {{"OptionalHasElement", 15, HasElement}, {"OptionalGetElement", 15, Element}}}};
}

}  // namespace hone
