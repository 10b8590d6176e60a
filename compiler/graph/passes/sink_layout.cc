// Transposes and reshapes move towards the outputs until they meet their inverse.
//
//   f(T(a), T(b), constant)  =>  T(f(a, b, T'(constant)))     elementwise, concat, interleave, slice, pad,
//                                                             reductions, softmax
//   reshape(T(x))            =>  T(reshape(x))                where the reshape splits and joins what stays together
//                                                             in x
//   f(R(a), b)               =>  R(f(a, R'(b)))               elementwise, softmax, layer norm; R' costs nothing
//   dense(R(T(x)), W)        =>  dense(R'(x), W with its rows permuted)
//
// Reshapes rise above transposes and both sink below everything else, so that the process ends.
#include <algorithm>
#include <numeric>
#include <span>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/permutation.h"
#include "compiler/graph/passes/reshape_groups.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

Ints PaddedShape(const Ints& shape, size_t rank) {
  Ints padded(rank - shape.size(), 1);
  padded.insert(padded.end(), shape.begin(), shape.end());
  return padded;
}

// ---- Below a transpose.

// The transpose that a node could sink: of its first input that has one and the rank of the output.
std::optional<Ints> PermOf(Rewriting& r, const Node& node) {
  for (const int input : node.inputs) {
    const Node* transpose = r.Producer(input, "transpose");
    if (transpose != nullptr && r.type(input).rank() == r.type(node.outputs[0]).rank())
      return IntsAttr(transpose->attrs, "perm");
  }
  return std::nullopt;
}

// The input as it is before the transpose: its source, or the constant transposed back, or a reshape where that is
// the same. nullopt when it would take a transpose at run time. Ranks are made equal first.
Replacement Untransposed(Rewriting& r, const Node& node, int input, const Ints& perm) {
  const Ints inverse = Inverse(perm);
  if (const Node* transpose = r.Producer(input, "transpose"); transpose != nullptr) {
    const int source = transpose->inputs[0];
    const Ints own = IntsAttr(transpose->attrs, "perm");
    const Ints both = own.size() == perm.size() ? Permuted(own, inverse) : Ints();
    if (!both.empty() && MovesOnesOnly(r.shape(source), both))
      return r.Reshape(node, source, Permuted(r.shape(source), both));
  }
  if (NumElements(r.shape(input)) == 1 && r.shape(input).size() < perm.size()) return input;
  const Ints shape = PaddedShape(r.shape(input), perm.size());
  if (r.IsConstant(input)) {
    HONE_ASSIGN_OR_RETURN(const int padded, r.Reshape(node, input, shape));
    return r.Transpose(node, padded, inverse);
  }
  if (MovesOnesOnly(shape, inverse)) return r.Reshape(node, input, Permuted(shape, inverse));
  return std::nullopt;
}

Replacement SinkThroughBroadcast(Rewriting& r, const Node& node, const Attrs& attrs) {
  const std::optional<Ints> perm = PermOf(r, node);
  if (!perm.has_value()) return std::nullopt;
  std::vector<int> inputs;
  for (const int input : node.inputs) {
    HONE_ASSIGN_OR_RETURN(const std::optional<int> plain, Untransposed(r, node, input, *perm));
    if (!plain.has_value()) return std::nullopt;
    inputs.push_back(*plain);
  }
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, inputs, attrs));
  return r.Transpose(node, result, *perm);
}

Replacement SinkThroughReduce(Rewriting& r, const Node& node) {
  const Node* transpose = r.Producer(node.inputs[0], "transpose");
  if (transpose == nullptr) return std::nullopt;
  const Ints perm = IntsAttr(transpose->attrs, "perm");
  const int source = transpose->inputs[0];
  const Ints axes = IntsAttr(node.attrs, "axes");
  Attrs attrs = node.attrs;
  Ints moved = Permuted(perm, axes);
  std::sort(moved.begin(), moved.end());
  attrs["axes"] = moved;
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, {source}, attrs));
  if (IntAttr(node.attrs, "keepdims") != 0) return r.Transpose(node, result, perm);
  Ints left;  // what stays of the permutation, renumbered
  for (size_t d = 0; d < perm.size(); ++d) {
    if (std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) > 0) continue;
    left.push_back(perm[d] - std::count_if(moved.begin(), moved.end(), [&](int64_t a) { return a < perm[d]; }));
  }
  return r.Transpose(node, result, left);
}

// Along one axis: not where that would take the axis from the last place, where its elements lie side by side.
Replacement SinkThroughAxis(Rewriting& r, const Node& node) {
  const Node* transpose = r.Producer(node.inputs[0], "transpose");
  if (transpose == nullptr) return std::nullopt;
  const Ints perm = IntsAttr(transpose->attrs, "perm");
  const int64_t axis = IntAttr(node.attrs, "axis"), last = static_cast<int64_t>(perm.size()) - 1;
  if (axis == last && perm[axis] != last) return std::nullopt;
  Attrs attrs = node.attrs;
  attrs["axis"] = perm[axis];
  const int source = transpose->inputs[0];
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, {source}, attrs));
  return r.Transpose(node, result, perm);
}

// Attributes with one entry a dimension.
Replacement SinkThroughPerDimension(Rewriting& r, const Node& node, std::span<const std::string_view> names) {
  const Node* transpose = r.Producer(node.inputs[0], "transpose");
  if (transpose == nullptr) return std::nullopt;
  const Ints perm = IntsAttr(transpose->attrs, "perm"), inverse = Inverse(perm);
  Attrs attrs = node.attrs;
  for (const std::string_view name : names) {
    const Ints values = IntsAttr(node.attrs, name);
    if (values.size() != perm.size()) return std::nullopt;
    attrs[std::string(name)] = Permuted(values, inverse);
  }
  const int source = transpose->inputs[0];
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, {source}, attrs));
  return r.Transpose(node, result, perm);
}

// Of a permutation T and the groups of dimensions of T(x) that a reshape joins: in which order x's dimensions are to
// stand so that those of each group are neighbours in the group's order; the order they have, where they do. nullopt
// where dimensions of other groups lie between those of one; dimensions of size 1 may.
std::optional<Ints> OrderOfGroups(const Ints& source, const Ints& perm, const std::vector<ReshapeGroup>& groups) {
  Ints order(perm.size());
  std::iota(order.begin(), order.end(), 0);
  for (const ReshapeGroup& group : groups) {
    Ints places;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) {
      if (source[perm[d]] != 1) places.push_back(perm[d]);
    }
    Ints sorted = places;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      order[sorted[i]] = places[i];
      for (int64_t between = i == 0 ? sorted[i] : sorted[i - 1] + 1; between < sorted[i]; ++between) {
        if (source[between] != 1) return std::nullopt;
      }
    }
  }
  return order;
}

// reshape(T(x)): its groups of dimensions must be neighbours in x. Where they are in another order, as in a shuffle of
// channels, x's are put in order first, and what else T moves sinks.
Replacement SinkThroughReshape(Rewriting& r, const Node& node) {
  const Node* transpose = r.Producer(node.inputs[0], "transpose");
  if (transpose == nullptr) return std::nullopt;
  Ints perm = IntsAttr(transpose->attrs, "perm");
  int source = transpose->inputs[0];
  const Ints from = r.shape(node.inputs[0]), to = r.shape(node.outputs[0]);
  const std::optional<std::vector<ReshapeGroup>> groups = ReshapeGroups(from, to);
  if (!groups.has_value()) return std::nullopt;
  const std::optional<Ints> order = OrderOfGroups(r.shape(source), perm, *groups);
  if (!order.has_value()) return std::nullopt;
  if (!std::is_sorted(order->begin(), order->end())) {
    const Ints ordered = Permuted(r.shape(source), *order);
    perm = Permuted(Inverse(*order), perm);
    if (MovesOnesOnly(ordered, perm)) return std::nullopt;  // the shuffle is all that it does
    HONE_ASSIGN_OR_RETURN(source, r.Transpose(node, source, *order));
  }
  struct Part {
    int64_t place;  // of its first dimension in x
    int group;
  };
  std::vector<Part> parts;
  for (size_t g = 0; g < groups->size(); ++g) {
    const ReshapeGroup& group = (*groups)[g];
    // A new dimension of size 1 stays behind the one that it is behind.
    int64_t place = group.from_begin < group.from_end ? perm[group.from_begin]
                    : parts.empty()                   ? -1
                                                      : parts.back().place;
    for (int64_t d = group.from_end - 1; d >= group.from_begin; --d) {
      if (from[d] != 1) place = perm[d];
    }
    parts.push_back({place, static_cast<int>(g)});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.place < b.place; });
  Ints shape, new_perm(to.size());
  for (const Part& part : parts) {
    const ReshapeGroup& group = (*groups)[part.group];
    for (int64_t d = group.to_begin; d < group.to_end; ++d) {
      new_perm[d] = static_cast<int64_t>(shape.size());
      shape.push_back(to[d]);
    }
  }
  HONE_ASSIGN_OR_RETURN(const int result, r.Reshape(node, source, shape));
  return r.Transpose(node, result, new_perm);
}

// dense(reshape(T(x)), W): the rows of W are permuted instead, where T leaves the rows of the product alone.
Replacement PermuteWeightRows(Rewriting& r, const Node& node) {
  const int weight = node.inputs[1];
  const Node* reshape = r.Producer(node.inputs[0], "reshape");
  if (reshape == nullptr || !r.IsConstant(weight)) return std::nullopt;
  const Ints rows_shape = r.shape(node.inputs[0]);
  const Node* transpose = r.Producer(reshape->inputs[0], "transpose");
  if (transpose == nullptr || rows_shape.size() != 2) return std::nullopt;
  const Ints perm = IntsAttr(transpose->attrs, "perm"), moved = r.shape(reshape->inputs[0]);
  const int source = transpose->inputs[0];
  if (perm[0] != 0 || moved[0] != rows_shape[0]) return std::nullopt;
  Ints split(moved.begin() + 1, moved.end()), back = {};
  const Ints inverse = Inverse(perm);
  for (size_t d = 1; d < inverse.size(); ++d) back.push_back(inverse[d] - 1);
  const Ints weight_shape = r.shape(weight);
  split.push_back(weight_shape[1]);
  back.push_back(static_cast<int64_t>(perm.size()) - 1);
  HONE_ASSIGN_OR_RETURN(int w, r.Reshape(node, weight, split));
  HONE_ASSIGN_OR_RETURN(w, r.Transpose(node, w, back));
  HONE_ASSIGN_OR_RETURN(w, r.Reshape(node, w, weight_shape));
  HONE_ASSIGN_OR_RETURN(const int x, r.Reshape(node, source, rows_shape));
  HONE_ASSIGN_OR_RETURN(const int y, r.Add("dense", node, {x, w}, node.attrs));
  return y;
}

// ---- Below a reshape.

// Whether the other operands come along: constants, reshapes of the same shape, or values that a view can give it. The
// last only towards fewer dimensions, so that two operands do not drive each other's reshapes around for ever.
bool OperandsAgree(Rewriting& r, const Node& node, const Ints& inner, const Ints& outer) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
    const Node* reshape = r.Producer(input, "reshape");
    const bool same = reshape != nullptr && r.shape(reshape->inputs[0]) == inner;
    return r.IsConstant(input) || same || inner.size() < outer.size();
  });
}

Replacement SinkReshapeThroughElementwise(Rewriting& r, const Node& node) {
  const Ints outer = r.shape(node.outputs[0]);
  for (const int candidate : node.inputs) {
    const Node* reshape = r.Producer(candidate, "reshape");
    if (reshape == nullptr || r.shape(candidate) != outer) continue;
    const Ints inner = r.shape(reshape->inputs[0]);
    const std::optional<std::vector<ReshapeGroup>> groups = ReshapeGroups(inner, outer);
    if (!groups.has_value() || !OperandsAgree(r, node, inner, outer)) continue;
    std::vector<int> inputs;
    for (const int input : node.inputs) {
      HONE_ASSIGN_OR_RETURN(const std::optional<int> plain, Unreshaped(r, node, input, inner, outer, *groups));
      if (!plain.has_value()) break;
      inputs.push_back(*plain);
    }
    if (inputs.size() != node.inputs.size()) continue;
    HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, inputs, node.attrs));
    return r.Reshape(node, result, outer);
  }
  return std::nullopt;
}

// Along the axes from `axis` on (softmax: that axis alone), which the reshape must have left as they are.
Replacement SinkReshapeThroughAxis(Rewriting& r, const Node& node, bool to_the_end) {
  const Node* reshape = r.Producer(node.inputs[0], "reshape");
  if (reshape == nullptr) return std::nullopt;
  const int source = reshape->inputs[0];
  const Ints inner = r.shape(source), outer = r.shape(node.outputs[0]);
  const std::optional<std::vector<ReshapeGroup>> groups = ReshapeGroups(inner, outer);
  if (!groups.has_value()) return std::nullopt;
  const int64_t axis = IntAttr(node.attrs, "axis");
  int64_t inner_axis = -1;
  for (const ReshapeGroup& group : *groups) {
    const bool one_to_one = group.from_end - group.from_begin == 1 && group.to_end - group.to_begin == 1;
    if (group.to_begin == axis && one_to_one) inner_axis = group.from_begin;
    const bool concerned = to_the_end ? group.to_end > axis : group.to_begin <= axis && axis < group.to_end;
    if (concerned && !one_to_one) return std::nullopt;
  }
  if (inner_axis < 0) return std::nullopt;
  std::vector<int> inputs = node.inputs;
  inputs[0] = source;
  Attrs attrs = node.attrs;
  attrs["axis"] = inner_axis;
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(node.op, node, inputs, attrs));
  return r.Reshape(node, result, outer);
}

Replacement Sink(Rewriting& r, const Node& node) {
  const OpInfo& op = *FindOp(node.op);
  if (op.kind == OpKind::kElementwise) {
    HONE_ASSIGN_OR_RETURN(const std::optional<int> sunk, SinkThroughBroadcast(r, node, node.attrs));
    if (sunk.has_value()) return sunk;
    return SinkReshapeThroughElementwise(r, node);
  }
  if (op.concatenates) {
    const std::optional<Ints> perm = PermOf(r, node);
    if (!perm.has_value()) return std::nullopt;
    Attrs attrs = node.attrs;
    attrs["axis"] = (*perm)[IntAttr(node.attrs, "axis")];
    return SinkThroughBroadcast(r, node, attrs);
  }
  if (op.reduces == Reduces::kAxes) return SinkThroughReduce(r, node);
  if (op.reduces == Reduces::kAxis) {
    HONE_ASSIGN_OR_RETURN(const std::optional<int> sunk, SinkThroughAxis(r, node));
    if (sunk.has_value()) return sunk;
    return SinkReshapeThroughAxis(r, node, false);
  }
  if (op.reduces == Reduces::kFromAxis) return SinkReshapeThroughAxis(r, node, true);
  if (!op.per_dimension.empty()) return SinkThroughPerDimension(r, node, op.per_dimension);
  if (node.op == "reshape") return SinkThroughReshape(r, node);
  if (node.op == "dense") return PermuteWeightRows(r, node);
  return std::nullopt;
}

}  // namespace

absl::Status SinkLayout(Graph& graph) {
  constexpr int kMostRounds = 64;  // each moves something down; graphs need two to five
  for (int round = 0; round < kMostRounds; ++round) {
    HONE_RETURN_IF_ERROR(RemoveNoOps(graph));
    HONE_ASSIGN_OR_RETURN(const bool changed, RewriteNodes(graph, Sink));
    if (!changed) return absl::OkStatus();
  }
  return RemoveNoOps(graph);
}

}  // namespace hone
