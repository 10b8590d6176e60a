// Operators that change nothing, compositions that are one operator, nodes that are there twice.
#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/permutation.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Replacement = absl::StatusOr<std::optional<int>>;
using Ints = std::vector<int64_t>;

Replacement SimplifyReshape(Rewriting& r, const Node& node) {
  const int x = node.inputs[0];
  const Ints shape = IntsAttr(node.attrs, "shape");
  if (r.shape(x) == shape) return x;
  const Node* inner = r.Producer(x, "reshape");
  if (inner == nullptr) return std::nullopt;
  return r.Reshape(node, inner->inputs[0], shape);
}

Replacement SimplifyTranspose(Rewriting& r, const Node& node) {
  const int x = node.inputs[0];
  const Ints perm = IntsAttr(node.attrs, "perm");
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  if (const Node* inner = r.Producer(x, "transpose"); inner != nullptr) {
    const Ints first = IntsAttr(inner->attrs, "perm");
    Ints both;
    for (const int64_t axis : perm) both.push_back(first[axis]);
    return r.Transpose(node, inner->inputs[0], both);
  }
  if (!MovesOnesOnly(r.shape(x), perm)) return std::nullopt;
  const Ints shape = r.shape(node.outputs[0]);
  return r.Reshape(node, x, shape);
}

// x + 0, x - 0, x * 1, x / 1 where x has the shape of the result.
std::optional<int> Neutral(Rewriting& r, const Node& node) {
  const OpInfo& op = *FindOp(node.op);
  if (!op.neutral.has_value()) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const int x = node.inputs[i], other = node.inputs[1 - i];
    if (i == 1 && !op.commutative) break;
    const std::optional<double> value = r.Splat(other);
    if (value.has_value() && *value == *op.neutral && r.type(x) == r.type(node.outputs[0])) return x;
  }
  return std::nullopt;
}

// Broadcasting is part of elementwise operators: what was expanded for one need not be, as long as the result stays.
Replacement DropExpand(Rewriting& r, const Node& node) {
  std::vector<int> inputs = node.inputs;
  for (int& input : inputs) {
    const Node* expand = r.Producer(input, "expand");
    if (expand == nullptr) continue;
    const int expanded = input;
    input = expand->inputs[0];
    std::vector<TensorType> types;
    for (const int i : inputs) types.push_back(r.type(i));
    const auto inferred = FindOp(node.op)->infer(types, node.attrs);
    if (!inferred.ok() || (*inferred)[0] != r.type(node.outputs[0])) input = expanded;
  }
  if (inputs == node.inputs) return std::nullopt;
  return r.Add(node.op, node, inputs, node.attrs);
}

// The constant of two operands that may change places comes last, and a constant has no leading dimensions of size 1
// that broadcasting would add.
Replacement Canonicalise(Rewriting& r, const Node& node) {
  std::vector<int> inputs = node.inputs;
  if (FindOp(node.op)->commutative && r.IsConstant(inputs[0]) && !r.IsConstant(inputs[1]))
    std::swap(inputs[0], inputs[1]);
  const size_t rank = r.shape(node.outputs[0]).size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Ints shape = r.shape(inputs[i]);
    if (!r.IsConstant(inputs[i]) || shape.empty() || shape[0] != 1) continue;
    const bool carried = std::any_of(inputs.begin(), inputs.end(), [&](int other) {
      return other != inputs[i] && !r.IsConstant(other) && r.shape(other).size() == rank;
    });
    if (!carried) continue;
    const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
    HONE_ASSIGN_OR_RETURN(inputs[i], r.Reshape(node, inputs[i], Ints(first, shape.end())));
  }
  if (inputs == node.inputs) return std::nullopt;
  return r.Add(node.op, node, inputs, node.attrs);
}

Replacement Simplify(Rewriting& r, const Node& node) {
  const int x = node.inputs.empty() ? -1 : node.inputs[0];
  if (node.op == "reshape") return SimplifyReshape(r, node);
  if (node.op == "transpose") return SimplifyTranspose(r, node);
  const OpInfo& op = *FindOp(node.op);
  const bool same = x >= 0 && r.type(x) == r.type(node.outputs[0]);
  if (same && op.is_no_op != nullptr && op.is_no_op(node.inputs.size(), node.attrs)) return x;
  if (op.kind != OpKind::kElementwise) return std::nullopt;
  if (const std::optional<int> neutral = Neutral(r, node); neutral.has_value()) return neutral;
  HONE_ASSIGN_OR_RETURN(const std::optional<int> unexpanded, DropExpand(r, node));
  if (unexpanded.has_value()) return unexpanded;
  return Canonicalise(r, node);
}

// Of nodes with equal operator, inputs and attributes the first stays.
absl::StatusOr<bool> MergeEqualNodes(Graph& graph) {
  std::map<std::tuple<std::string, std::vector<int>, Attrs>, int> seen;
  return RewriteNodes(graph, [&](Rewriting&, const Node& node) -> Replacement {
    const auto [first, fresh] = seen.emplace(std::tuple(node.op, node.inputs, node.attrs), node.outputs[0]);
    if (fresh) return std::nullopt;
    return first->second;
  });
}

}  // namespace

absl::Status RemoveNoOps(Graph& graph) {
  for (bool changed = true; changed;) {
    HONE_ASSIGN_OR_RETURN(changed, RewriteNodes(graph, Simplify));
    HONE_ASSIGN_OR_RETURN(const bool merged, MergeEqualNodes(graph));
    changed = changed || merged;
  }
  return absl::OkStatus();
}

}  // namespace hone
