// A value under another name.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

OpInfo IdentityOp() {
  OpInfo op = UnaryFunction("identity", Accepts::kAny, topi::Identity);
  op.evaluation.run = [](DirectEvaluation::Arrays in, const Attrs&, const TensorType&) { return *in[0]; };
  op.is_no_op = [](size_t, const Attrs&) { return true; };
  return op;
}

Outputs Identity(NodeContext& c) {
  if (c.num_inputs() != 1) HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));  // it may be a sequence
  return std::vector<int>{c.input(0)};
}

}  // namespace

HONE_OPERATORS(identity) {
  return {{.graph = {IdentityOp()},
           .onnx = {
               {.name = "Identity",
                .since = 1,
                .import = Identity,
                .narrow = NarrowElements::kMoves,
                .takes_sequences = true},
           }}};
}

}  // namespace hone
