#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/graph/operators/node_context.h"

namespace hone {

const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view name, int64_t version) {
  const OnnxOperator* best = nullptr;
  for (const std::span<const OnnxOperator> group :
       {ElementwiseOperators(), MatrixOperators(), ImageOperators(), NormOperators(), ShapeOperators()}) {
    for (const OnnxOperator& op : group) {
      if (op.name == name && op.domain == domain && op.since <= version && (best == nullptr || op.since > best->since))
        best = &op;
    }
  }
  for (const Operator& entry : AllOperators()) {
    for (const OnnxOperator& op : entry.onnx) {
      if (op.name == name && op.domain == domain && op.since <= version && (best == nullptr || op.since > best->since))
        best = &op;
    }
  }
  return best;
}

}  // namespace hone
