// Chains of elementary operators that are one operator of ours.
//
//   x * 0.5 * (1 + erf(x / sqrt 2))                                     =>  gelu(x)
//   0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))           =>  gelu_tanh(x)
//   x * sigmoid(x)                                                      =>  silu(x)
//   x * hard_sigmoid(x, 1/6, 1/2)                                       =>  hard_swish(x)
//   a 1 x 1 convolution                                                 =>  dense, pixels being rows
//   a concatenation of parts of one shape, reshaped to [n, channels], transposed, reshaped back  =>  interleave(parts)
//   d / sqrt(mean(d^2) + eps) * scale + bias, d = x - mean(x)           =>  layer_norm(x, scale, bias)
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

bool Near(double value, double expected) { return std::abs(value - expected) <= 1e-4 * std::abs(expected); }

// A product as its factors: constants multiplied into one, the rest in a list. Divisions by constants count.
struct Factors {
  double constant = 1;
  std::vector<int> values;
};
void Collect(Rewriting& r, int value, bool root, Factors& factors, int depth = 0) {
  if (const std::optional<double> number = r.Splat(value); number.has_value()) {
    factors.constant *= *number;
    return;
  }
  const Node* node = r.Producer(value);
  if (node != nullptr && depth < 6 && (root || r.uses(value) == 1)) {
    if (node->op == "multiply") {
      const std::vector<int> inputs = node->inputs;
      for (const int input : inputs) Collect(r, input, false, factors, depth + 1);
      return;
    }
    if (node->op == "divide") {
      const std::optional<double> by = r.Splat(node->inputs[1]);
      if (by.has_value() && *by != 0) {
        factors.constant /= *by;
        return Collect(r, node->inputs[0], false, factors, depth + 1);
      }
    }
  }
  factors.values.push_back(value);
}
Factors FactorsOf(Rewriting& r, int value) {
  Factors factors;
  Collect(r, value, true, factors);
  return factors;
}

// value = other + number: the other.
std::optional<int> WithoutAdded(Rewriting& r, int value, double number) {
  const Node* add = r.Producer(value, "add");
  if (add == nullptr) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const std::optional<double> constant = r.Splat(add->inputs[i]);
    if (constant.has_value() && Near(*constant, number)) return add->inputs[1 - i];
  }
  return std::nullopt;
}

// sqrt(2 / pi) * (x + 0.044715 * x^3)
bool IsTanhArgument(Rewriting& r, int value, int x) {
  const Factors outer = FactorsOf(r, value);
  if (outer.values.size() != 1 || !Near(outer.constant, std::sqrt(2 / M_PI))) return false;
  const Node* add = r.Producer(outer.values[0], "add");
  if (add == nullptr) return false;
  const std::vector<int> terms = add->inputs;
  for (int i = 0; i < 2; ++i) {
    if (terms[i] != x) continue;
    const Factors cube = FactorsOf(r, terms[1 - i]);
    if (!Near(cube.constant, 0.044715)) continue;
    if (cube.values.size() == 3 && std::count(cube.values.begin(), cube.values.end(), x) == 3) return true;
    if (cube.values.size() != 1) continue;
    const Node* power = r.Producer(cube.values[0], "pow_scalar");
    if (power != nullptr && power->inputs[0] == x && FloatAttr(power->attrs, "exponent") == 3) return true;
  }
  return false;
}

Replacement GeluOf(Rewriting& r, const Node& node) {
  Factors factors;
  for (const int input : node.inputs) Collect(r, input, false, factors);
  if (factors.values.size() != 2 || !Near(factors.constant, 0.5)) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const int x = factors.values[1 - i];
    if (r.type(x) != r.type(node.outputs[0])) continue;
    const std::optional<int> inner = WithoutAdded(r, factors.values[i], 1);
    if (!inner.has_value()) continue;
    if (const Node* erf = r.Producer(*inner, "erf"); erf != nullptr) {
      const Factors argument = FactorsOf(r, erf->inputs[0]);
      if (argument.values == std::vector<int>{x} && Near(argument.constant, std::sqrt(0.5)))
        return r.Add("gelu", node, {x});
    }
    if (const Node* tanh = r.Producer(*inner, "tanh"); tanh != nullptr && IsTanhArgument(r, tanh->inputs[0], x)) {
      return r.Add("gelu_tanh", node, {x});
    }
  }
  return std::nullopt;
}

Replacement GatedOf(Rewriting& r, const Node& node) {
  for (int i = 0; i < 2; ++i) {
    const int x = node.inputs[1 - i];
    const Node* gate = r.Producer(node.inputs[i]);
    if (gate == nullptr || gate->inputs[0] != x) continue;
    if (gate->op == "sigmoid") return r.Add("silu", node, {x});
    if (gate->op == "hard_sigmoid" && Near(FloatAttr(gate->attrs, "alpha"), 1.0 / 6) &&
        Near(FloatAttr(gate->attrs, "beta"), 0.5)) {
      return r.Add("hard_swish", node, {x});
    }
  }
  return std::nullopt;
}

// The mean over the last axes, these kept with size 1: the first of them.
std::optional<int64_t> TrailingMean(Rewriting& r, const Node& mean) {
  const Ints axes = IntsAttr(mean.attrs, "axes");
  const int64_t rank = r.type(mean.inputs[0]).rank();
  if (IntAttr(mean.attrs, "keepdims") == 0 || axes.empty() || axes.back() != rank - 1) return std::nullopt;
  if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) return std::nullopt;
  return axes.front();
}

// What is squared: x of x * x and x ^ 2.
std::optional<int> Squared(Rewriting& r, int value) {
  if (const Node* power = r.Producer(value, "pow_scalar"); power != nullptr) {
    if (FloatAttr(power->attrs, "exponent") == 2) return power->inputs[0];
    return std::nullopt;
  }
  const Node* product = r.Producer(value, "multiply");
  if (product != nullptr && product->inputs[0] == product->inputs[1]) return product->inputs[0];
  return std::nullopt;
}

struct Normalised {
  int x;
  int64_t axis;
  double epsilon;
};
// d / sqrt(mean(d * d) + eps) with d = x - mean(x)
std::optional<Normalised> NormalisedOf(Rewriting& r, int value) {
  const Node* divide = r.Producer(value, "divide");
  if (divide == nullptr) return std::nullopt;
  const int d = divide->inputs[0];
  const Node* root = r.Producer(divide->inputs[1], "sqrt");
  const Node* safe = root == nullptr ? nullptr : r.Producer(root->inputs[0], "add");
  if (safe == nullptr) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const std::optional<double> epsilon = r.Splat(safe->inputs[1 - i]);
    const Node* variance = r.Producer(safe->inputs[i], "reduce_mean");
    if (!epsilon.has_value() || variance == nullptr || Squared(r, variance->inputs[0]) != d) continue;
    const Node* difference = r.Producer(d, "subtract");
    const Node* mean = difference == nullptr ? nullptr : r.Producer(difference->inputs[1], "reduce_mean");
    if (mean == nullptr || mean->inputs[0] != difference->inputs[0]) continue;
    const std::optional<int64_t> axis = TrailingMean(r, *mean);
    if (!axis.has_value() || TrailingMean(r, *variance) != axis) continue;
    return Normalised{mean->inputs[0], *axis, *epsilon};
  }
  return std::nullopt;
}

// Rooted at the scale; the shift that follows joins it afterwards.
Replacement LayerNormOf(Rewriting& r, const Node& node) {
  for (int i = 0; i < 2; ++i) {
    const std::optional<Normalised> n = NormalisedOf(r, node.inputs[i]);
    const int scale = node.inputs[1 - i];
    if (!n.has_value() || r.uses(node.inputs[i]) > 1) continue;
    const Ints& shape = r.shape(n->x);
    if (r.shape(scale) != Ints(shape.begin() + n->axis, shape.end())) continue;
    return r.Add("layer_norm", node, {n->x, scale}, {{"axis", n->axis}, {"epsilon", n->epsilon}});
  }
  return std::nullopt;
}

Replacement LayerNormShift(Rewriting& r, const Node& node) {
  for (int i = 0; i < 2; ++i) {
    const Node* norm = r.Producer(node.inputs[i], "layer_norm");
    const int bias = node.inputs[1 - i];
    if (norm == nullptr || norm->inputs.size() != 2 || r.uses(node.inputs[i]) > 1) continue;
    if (r.shape(bias) != r.shape(norm->inputs[1])) continue;
    const std::vector<int> inputs = {norm->inputs[0], norm->inputs[1], bias};
    const Attrs attrs = norm->attrs;
    return r.Add("layer_norm", node, inputs, attrs);
  }
  return std::nullopt;
}

// Without stride, padding and groups.
Replacement DenseOf(Rewriting& r, const Node& node) {
  const Ints x = r.shape(node.inputs[0]), w = r.shape(node.inputs[1]);
  if (!topi::AllAre(Ints(w.begin(), w.end() - 2), 1) || IntAttr(node.attrs, "groups", 1) != 1 ||
      !topi::AllAre(IntsAttr(node.attrs, "strides"), 1) || !topi::AllAre(IntsAttr(node.attrs, "pads"), 0)) {
    return std::nullopt;
  }
  const Ints out = r.shape(node.outputs[0]);
  const int64_t channels = x.back(), pixels = *NumElements(x) / channels;
  HONE_ASSIGN_OR_RETURN(const int rows, r.Reshape(node, node.inputs[0], {pixels, channels}));
  HONE_ASSIGN_OR_RETURN(const int weight, r.Reshape(node, node.inputs[1], {channels, w.back()}));
  HONE_ASSIGN_OR_RETURN(const int y, r.Add("dense", node, {rows, weight}));
  return r.Reshape(node, y, out);
}

// reshape(transpose(reshape(concat(parts)))): [n C, ...] -> [n, C, ...] -> [C, n, ...] -> [C n, ...], of n parts.
Replacement InterleaveOf(Rewriting& r, const Node& node) {
  const Node* transpose = r.Producer(node.inputs[0], "transpose");
  const Node* split = transpose == nullptr ? nullptr : r.Producer(transpose->inputs[0], "reshape");
  const Node* concat = split == nullptr ? nullptr : r.Producer(split->inputs[0], "concat");
  if (concat == nullptr) return std::nullopt;
  const Ints whole = r.shape(concat->outputs[0]);
  const int64_t axis = IntAttr(concat->attrs, "axis"), count = static_cast<int64_t>(concat->inputs.size());
  Ints apart = whole, perm(whole.size() + 1);
  for (const int part : concat->inputs) {
    if (r.shape(part) != r.shape(concat->inputs[0])) return std::nullopt;
  }
  apart[axis] /= count;
  apart.insert(apart.begin() + axis, count);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[axis], perm[axis + 1]);
  if (r.shape(split->outputs[0]) != apart || IntsAttr(transpose->attrs, "perm") != perm ||
      r.shape(node.outputs[0]) != whole) {
    return std::nullopt;
  }
  return r.Add("interleave", node, concat->inputs, {{"axis", axis}});
}

Replacement Recognise(Rewriting& r, const Node& node) {
  if (node.op == "conv") return DenseOf(r, node);
  if (node.op == "reshape") return InterleaveOf(r, node);
  if (node.op == "add") return LayerNormShift(r, node);
  if (node.op != "multiply") return std::nullopt;
  for (const auto pattern : {GatedOf, GeluOf, LayerNormOf}) {
    HONE_ASSIGN_OR_RETURN(const std::optional<int> found, pattern(r, node));
    if (found.has_value()) return found;
  }
  return std::nullopt;
}

}  // namespace

absl::Status RecognisePatterns(Graph& graph) { return RewriteNodes(graph, Recognise).status(); }

}  // namespace hone
