// What stands between a product of batches and the tensors that its operands are parts of, in an order in which the
// product can read through it: attention takes its queries, keys and values out of one product, splits and moves heads.
//
//   reshape(reshape(x))                   =>  reshape(x)
//   reshape(slice(x))                     =>  slice(reshape(x))          a slice along one axis, whose bounds are
//                                                                        multiples of what the reshape splits off
//   product(reshape(a), reshape(b))       =>  reshape(product(a, b))     reshapes that join leading dimensions alone,
//                                                                        several, or behind a transpose
//   product(moved(slice(x) * s), b)       =>  product(moved(slice(x)), b) * s    s: one number; moved: transposes and
//                                                                        reshapes. A rounding moves.
//
// Only where the values in between have no other use.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

int64_t Product(Ints::const_iterator begin, Ints::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<int64_t>());
}

// The producer of a value that nothing else reads, if it is this operator's.
const Node* OnlyFor(Rewriting& r, int value, std::string_view op) {
  return r.uses(value) > 1 ? nullptr : r.Producer(value, op);
}

// The one axis of which a slice leaves elements out, in steps of 1.
std::optional<size_t> SlicedAxis(Rewriting& r, const Node& slice) {
  const Ints &whole = r.shape(slice.inputs[0]), sizes = IntsAttr(slice.attrs, "sizes");
  std::optional<size_t> axis;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (IntsAttr(slice.attrs, "steps")[d] != 1) return std::nullopt;
    if (sizes[d] == whole[d]) continue;
    if (axis.has_value()) return std::nullopt;
    axis = d;
  }
  return axis;
}

// The slice takes, of each of `outer` rows of x, a run of elements. The reshape cuts the run into `size` pieces; where
// whole pieces fit in front of the run and behind it, x may be cut into such pieces first.
Replacement ReshapeFirst(Rewriting& r, const Node& reshape) {
  const Node* found = OnlyFor(r, reshape.inputs[0], "slice");
  const std::optional<size_t> axis = found == nullptr ? std::nullopt : SlicedAxis(r, *found);
  if (!axis.has_value()) return std::nullopt;
  const Node slice = *found;  // a copy: nodes are added below
  const Ints whole = r.shape(slice.inputs[0]), target = r.shape(reshape.outputs[0]);
  const int64_t outer = Product(whole.begin(), whole.begin() + static_cast<int64_t>(*axis));
  const int64_t inner = Product(whole.begin() + static_cast<int64_t>(*axis) + 1, whole.end());
  size_t place = 0;
  int64_t rows = 1;
  while (place < target.size() && rows < outer) rows *= target[place++];
  if (rows != outer || place == target.size()) return std::nullopt;
  const int64_t piece = Product(target.begin() + static_cast<int64_t>(place) + 1, target.end());
  const int64_t start = IntsAttr(slice.attrs, "starts")[*axis] * inner, row = whole[*axis] * inner;
  if (start % piece != 0 || row % piece != 0) return std::nullopt;
  Ints cut = target, starts(target.size(), 0), steps(target.size(), 1);
  cut[place] = row / piece;
  starts[place] = start / piece;
  HONE_ASSIGN_OR_RETURN(const int pieces, r.Reshape(reshape, slice.inputs[0], cut));
  return r.Add("slice", slice, {pieces}, {{"starts", starts}, {"sizes", target}, {"steps", steps}});
}

Replacement JoinReshapes(Rewriting& r, const Node& reshape) {
  const Node* before = OnlyFor(r, reshape.inputs[0], "reshape");
  if (before == nullptr) return ReshapeFirst(r, reshape);
  return r.Reshape(reshape, before->inputs[0], r.shape(reshape.outputs[0]));
}

// What the operand was before its leading dimensions were joined; -1 when that is not how it was made. Its matrices may
// be transposed after that.
absl::StatusOr<int> BeforeJoin(Rewriting& r, int operand) {
  if (const Node* found = OnlyFor(r, operand, "transpose");
      found != nullptr && IntsAttr(found->attrs, "perm") == Ints{0, 2, 1}) {
    const Node transpose = *found;  // a copy: nodes are added below
    HONE_ASSIGN_OR_RETURN(const int apart, BeforeJoin(r, transpose.inputs[0]));
    if (apart < 0) return -1;
    Ints perm(r.shape(apart).size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm.end()[-2], perm.end()[-1]);
    return r.Transpose(transpose, apart, std::move(perm));
  }
  const Node* reshape = OnlyFor(r, operand, "reshape");
  if (reshape == nullptr) return -1;
  const Ints &joined = r.shape(operand), &apart = r.shape(reshape->inputs[0]);
  const bool same_matrices =
      joined.size() == 3 && apart.size() > 3 && std::equal(joined.end() - 2, joined.end(), apart.end() - 2);
  return same_matrices ? reshape->inputs[0] : -1;
}

// The shape without leading dimensions of one element.
Ints WithoutOnes(const Ints& shape) {
  Ints kept;
  std::copy_if(shape.begin(), shape.end() - 2, std::back_inserter(kept), [](int64_t n) { return n != 1; });
  kept.insert(kept.end(), shape.end() - 2, shape.end());
  return kept;
}

// The product of the operands as they were before that.
Replacement BatchesApart(Rewriting& r, const Node& product) {
  if (!product.attrs.empty()) return std::nullopt;
  std::vector<int> operands;
  bool transposed = false;
  for (const int input : product.inputs) {
    HONE_ASSIGN_OR_RETURN(const int apart, BeforeJoin(r, input));
    if (apart < 0) return std::nullopt;
    transposed = transposed || r.Producer(apart, "transpose") != nullptr;
    operands.push_back(apart);
  }
  const auto batches = [&](const Ints& shape) { return Ints(shape.begin(), shape.end() - 2); };
  // What follows has several apart as well, and a mask of some of them is added there. Where sizes are open, one of
  // them may be 1 in another graph.
  const bool several = WithoutOnes(r.shape(operands[0])).size() > 3 && !r.graph().sizes_are_open;
  if (!transposed && !several) return std::nullopt;
  if (several && batches(r.shape(operands[0])) != batches(r.shape(operands[1]))) {
    for (int& operand : operands) {
      HONE_ASSIGN_OR_RETURN(operand, r.Reshape(product, operand, WithoutOnes(r.shape(operand))));
    }
  }
  if (batches(r.shape(operands[0])) != batches(r.shape(operands[1]))) return std::nullopt;
  return r.Add(product.op, product, operands);
}

Replacement KeepBatchesApart(Rewriting& r, const Node& product) {
  HONE_ASSIGN_OR_RETURN(const std::optional<int> apart, BatchesApart(r, product));
  if (!apart.has_value()) return std::nullopt;
  return r.Reshape(product, *apart, r.shape(product.outputs[0]));
}

// The operand without a factor that stands behind a slice, and the factor.
struct Unscaled {
  int operand, factor;
};
absl::StatusOr<std::optional<Unscaled>> TakeFactor(Rewriting& r, int operand) {
  std::vector<Node> moves;
  for (const Node* move = nullptr;
       (move = OnlyFor(r, operand, "transpose")) != nullptr || (move = OnlyFor(r, operand, "reshape")) != nullptr;
       operand = moves.back().inputs[0]) {
    moves.push_back(*move);
  }
  const Node* scaled = OnlyFor(r, operand, "multiply");
  if (scaled == nullptr) return std::nullopt;
  const bool first = r.IsConstant(scaled->inputs[0]);
  const int x = scaled->inputs[first ? 1 : 0], factor = scaled->inputs[first ? 0 : 1];
  const bool one_number = r.IsConstant(factor) && NumElements(r.shape(factor)) == 1 && r.type(factor).dtype == kFloat32;
  if (!one_number || r.type(x) != r.type(operand) || OnlyFor(r, x, "slice") == nullptr) return std::nullopt;
  int moved = x;
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    HONE_ASSIGN_OR_RETURN(moved, r.Add(move->op, *move, {moved}, move->attrs));
  }
  return Unscaled{moved, factor};
}

Replacement ScaleAfter(Rewriting& r, const Node& product) {
  for (size_t i = 0; i < product.inputs.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const std::optional<Unscaled> taken, TakeFactor(r, product.inputs[i]));
    if (!taken.has_value()) continue;
    std::vector<int> inputs = product.inputs;
    inputs[i] = taken->operand;
    HONE_ASSIGN_OR_RETURN(int sum, r.Add(product.op, product, inputs, product.attrs));
    if (const Node* found = r.Producer(sum); found != nullptr) {
      const Node unscaled = *found;  // a copy: nodes are added below
      HONE_ASSIGN_OR_RETURN(const std::optional<int> apart, BatchesApart(r, unscaled));
      sum = apart.value_or(sum);
    }
    HONE_ASSIGN_OR_RETURN(const int factor, r.Reshape(product, taken->factor, {}));
    HONE_ASSIGN_OR_RETURN(const int scaled, r.Add("multiply", product, {sum, factor}));
    return r.Reshape(product, scaled, r.shape(product.outputs[0]));
  }
  return KeepBatchesApart(r, product);
}

Replacement Expose(Rewriting& r, const Node& node) {
  if (node.op == "reshape") return JoinReshapes(r, node);
  if (node.op == "batch_matmul") return ScaleAfter(r, node);
  return std::nullopt;
}

}  // namespace

absl::Status ExposeOperands(Graph& graph) {
  constexpr int kMostRounds = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    HONE_ASSIGN_OR_RETURN(const bool changed, RewriteNodes(graph, Expose));
    if (!changed) break;
  }
  return absl::OkStatus();
}

}  // namespace hone
