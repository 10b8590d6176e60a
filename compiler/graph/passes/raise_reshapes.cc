// A reshape in front of a product rises above the operators that compute its operand.
//
//   dense(R(f(a, b)), W)          =>  dense(f(R(a), R(b)), W)           f elementwise
//   dense(R(concat(a, b)), W)     =>  dense(concat(R(a), R(b)), W)      along an axis that R leaves as it is
//
// Reshapes belong to no kernel, so that one between a product and what computes its operand keeps the two apart
// (group.h). It stays behind what follows another product or reduction, whose kernel takes that with it. Only where the
// values in between have no other use.
#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/reshape_groups.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

// Whether the value is an anchor's result, or what elementwise operators make of it on the way.
bool FollowsAnchor(Rewriting& r, int value) {
  const Node* node = r.uses(value) > 1 ? nullptr : r.Producer(value);
  if (node == nullptr) return false;
  const OpKind kind = FindOp(node->op)->kind;
  if (kind != OpKind::kElementwise) return kind == OpKind::kAnchor;
  return std::any_of(node->inputs.begin(), node->inputs.end(),
                     [&](int input) { return r.shape(input) == r.shape(value) && FollowsAnchor(r, input); });
}

// The place of the concatenated axis in `shape`; nullopt where the reshape joins or splits it.
std::optional<int64_t> AxisIn(const std::vector<ReshapeGroup>& groups, int64_t axis) {
  for (const ReshapeGroup& group : groups) {
    const bool one_to_one = group.from_end - group.from_begin == 1 && group.to_end - group.to_begin == 1;
    if (group.to_begin == axis && one_to_one) return group.from_begin;
  }
  return std::nullopt;
}

absl::StatusOr<int> Raised(Rewriting& r, const Node& origin, int value, const Ints& shape);

// The concatenation in the shape of the reshape; nullopt where there is none.
Replacement RaisedConcat(Rewriting& r, const Node& concat, const Ints& shape, const std::vector<ReshapeGroup>& groups) {
  const int64_t axis = IntAttr(concat.attrs, "axis");
  const std::optional<int64_t> place = AxisIn(groups, axis);
  if (!place.has_value()) return std::nullopt;
  std::vector<int> inputs;
  for (const int input : concat.inputs) {
    Ints part = shape;
    part[*place] = r.shape(input)[axis];
    HONE_ASSIGN_OR_RETURN(const int reshaped, r.Reshape(concat, input, part));
    inputs.push_back(reshaped);
  }
  Attrs attrs = concat.attrs;
  attrs["axis"] = *place;
  return r.Add("concat", concat, inputs, attrs);
}

Replacement RaisedElementwise(Rewriting& r, const Node& node, const Ints& shape,
                              const std::vector<ReshapeGroup>& groups) {
  const Ints outer = r.shape(node.outputs[0]);
  std::vector<int> inputs;
  for (const int input : node.inputs) {
    if (r.shape(input) == outer) {
      HONE_ASSIGN_OR_RETURN(const int raised, Raised(r, node, input, shape));
      inputs.push_back(raised);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const std::optional<int> operand, Unreshaped(r, node, input, shape, outer, groups));
    if (!operand.has_value()) return std::nullopt;
    inputs.push_back(*operand);
  }
  return r.Add(node.op, node, inputs, node.attrs);
}

// The value in this shape, with the reshape as far up as it rises.
absl::StatusOr<int> Raised(Rewriting& r, const Node& origin, int value, const Ints& shape) {
  const Node* found = r.uses(value) > 1 || FollowsAnchor(r, value) ? nullptr : r.Producer(value);
  const std::optional<std::vector<ReshapeGroup>> groups = ReshapeGroups(shape, r.shape(value));
  if (found != nullptr && groups.has_value()) {
    const Node node = *found;  // a copy: nodes are added below
    const bool elementwise = FindOp(node.op)->kind == OpKind::kElementwise;
    Replacement raised = elementwise           ? RaisedElementwise(r, node, shape, *groups)
                         : node.op == "concat" ? RaisedConcat(r, node, shape, *groups)
                                               : std::nullopt;
    HONE_RETURN_IF_ERROR(raised.status());
    if (raised->has_value()) return **raised;
  }
  return r.Reshape(origin, value, shape);
}

Replacement Raise(Rewriting& r, const Node& node) {
  if (node.op != "dense") return std::nullopt;
  std::vector<int> inputs = node.inputs;
  bool changed = false;
  for (int& input : inputs) {
    const Node* reshape = r.uses(input) > 1 ? nullptr : r.Producer(input, "reshape");
    if (reshape == nullptr) continue;
    const int before = input, source = reshape->inputs[0];
    HONE_ASSIGN_OR_RETURN(input, Raised(r, node, source, Ints(r.shape(before))));
    if (r.Producer(input, "reshape") == nullptr) changed = true;
    else input = before;
  }
  if (!changed) return std::nullopt;
  return r.Add(node.op, node, inputs, node.attrs);
}

}  // namespace

absl::Status RaiseReshapes(Graph& graph) { return RewriteNodes(graph, Raise).status(); }

}  // namespace hone
