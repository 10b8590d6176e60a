// Constants that scale or shift by output channel move into weights and biases.
//
//   x / c                  =>  x * (1 / c)
//   (x + a) * s            =>  x * s + a * s          where x is a chain of these on a product with a constant weight
//   (x * s) * t            =>  x * (s * t),  (x + a) + b  =>  x + (a + b)
//   product(x, W) * s      =>  product(x, W * s)      s: a scalar, or one number an output channel (the last axis)
//
// Only where the value in between has no other use. Roundings move, sums of products do not change their order.
#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

bool IsProduct(const Node* node) { return node != nullptr && FindOp(node->op)->weight_has_channels; }

// For a commutative node with one constant input: (other input, constant); nullopt otherwise.
struct WithConstant {
  int x, constant;
};
std::optional<WithConstant> SplitConstant(Rewriting& r, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  const bool first = r.IsConstant(node.inputs[0]), second = r.IsConstant(node.inputs[1]);
  if (first == second) return std::nullopt;
  const WithConstant split{node.inputs[first ? 1 : 0], node.inputs[first ? 0 : 1]};
  if (r.type(split.x) != r.type(node.outputs[0]) || r.type(split.x).dtype != kFloat32) return std::nullopt;
  return split;
}

// A number an output channel, or one for all: everything but the last dimension is 1.
bool PerChannel(Rewriting& r, int constant, int64_t channels) {
  const Ints& shape = r.shape(constant);
  const int64_t elements = *NumElements(shape);
  return elements == 1 || (!shape.empty() && shape.back() == channels && elements == channels);
}

// Whether, through shifts and scales used once, the value comes from a product with a constant weight.
bool ComesFromProduct(Rewriting& r, int value) {
  for (int depth = 0; depth < 8; ++depth) {
    const Node* node = r.Producer(value);
    if (node == nullptr || r.uses(value) > 1) return false;
    if (IsProduct(node)) return r.IsConstant(node->inputs[1]);
    if (node->op != "add" && node->op != "multiply") return false;
    const std::optional<WithConstant> split = SplitConstant(r, *node);
    if (!split.has_value() || !PerChannel(r, split->constant, r.shape(value).back())) return false;
    value = split->x;
  }
  return false;
}

// [.., 1, C] as [C], a single number as a scalar: the form in which a weight takes it.
absl::StatusOr<int> AsVector(Rewriting& r, const Node& origin, int constant) {
  const int64_t elements = *NumElements(r.shape(constant));
  return r.Reshape(origin, constant, elements == 1 ? Ints{} : Ints{elements});
}

Replacement FoldMultiply(Rewriting& r, const Node& node) {
  const std::optional<WithConstant> scale = SplitConstant(r, node);
  if (!scale.has_value() || r.uses(scale->x) > 1 || r.shape(scale->x).empty()) return std::nullopt;
  const Node* found = r.Producer(scale->x);
  if (found == nullptr) return std::nullopt;
  const Node inner = *found;  // a copy: nodes are added below
  const int64_t channels = r.shape(scale->x).back();
  if (IsProduct(&inner) && r.IsConstant(inner.inputs[1]) && PerChannel(r, scale->constant, channels) &&
      (inner.op != "conv_transpose" || IntAttr(inner.attrs, "groups", 1) == 1)) {
    HONE_ASSIGN_OR_RETURN(const int factors, AsVector(r, node, scale->constant));
    HONE_ASSIGN_OR_RETURN(const int weight, r.Add("multiply", node, {inner.inputs[1], factors}));
    if (!r.IsConstant(weight)) return std::nullopt;
    // Only the node that is replaced reads it: of large weights no second copy is held until the pass ends.
    if (r.uses(inner.inputs[1]) == 1) r.graph().values[inner.inputs[1]].data = nullptr;
    return r.Add(inner.op, inner, {inner.inputs[0], weight}, inner.attrs);
  }
  if (inner.op != "add" && inner.op != "multiply") return std::nullopt;
  const std::optional<WithConstant> before = SplitConstant(r, inner);
  if (!before.has_value()) return std::nullopt;
  if (inner.op == "add" && !(PerChannel(r, scale->constant, channels) && PerChannel(r, before->constant, channels) &&
                             ComesFromProduct(r, scale->x))) {
    return std::nullopt;
  }
  HONE_ASSIGN_OR_RETURN(const int both, r.Add("multiply", node, {before->constant, scale->constant}));
  if (inner.op == "multiply") return r.Add("multiply", node, {before->x, both});
  HONE_ASSIGN_OR_RETURN(const int scaled, r.Add("multiply", node, {before->x, scale->constant}));
  return r.Add("add", node, {scaled, both});
}

Replacement FoldAdd(Rewriting& r, const Node& node) {
  const std::optional<WithConstant> shift = SplitConstant(r, node);
  if (!shift.has_value() || r.uses(shift->x) > 1) return std::nullopt;
  const Node* inner = r.Producer(shift->x, "add");
  if (inner == nullptr) return std::nullopt;
  const std::optional<WithConstant> before = SplitConstant(r, *inner);
  if (!before.has_value()) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const int both, r.Add("add", node, {before->constant, shift->constant}));
  return r.Add("add", node, {before->x, both});
}

// Division and subtraction by constants as multiplication and addition.
Replacement Normalise(Rewriting& r, const Node& node) {
  const int constant = node.inputs[1];
  if (!r.IsConstant(constant) || r.IsConstant(node.inputs[0]) || r.type(constant).dtype != kFloat32)
    return std::nullopt;
  if (r.type(node.inputs[0]) != r.type(node.outputs[0])) return std::nullopt;
  if (node.op == "subtract") {
    HONE_ASSIGN_OR_RETURN(const int negative, r.Add("negative", node, {constant}));
    return r.Add("add", node, {node.inputs[0], negative});
  }
  HONE_ASSIGN_OR_RETURN(const int inverse, r.Add("reciprocal", node, {constant}));
  return r.Add("multiply", node, {node.inputs[0], inverse});
}

Replacement Fold(Rewriting& r, const Node& node) {
  if (node.op == "multiply") return FoldMultiply(r, node);
  if (node.op == "add") return FoldAdd(r, node);
  if (node.op == "divide" || node.op == "subtract") return Normalise(r, node);
  return std::nullopt;
}

}  // namespace

absl::Status FoldScales(Graph& graph) {
  constexpr int kMostRounds = 32;
  for (int round = 0; round < kMostRounds; ++round) {
    HONE_ASSIGN_OR_RETURN(const bool changed, RewriteNodes(graph, Fold));
    if (!changed) break;
  }
  return absl::OkStatus();
}

}  // namespace hone
