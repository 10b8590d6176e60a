// Products, convolutions and pools between a transpose and its inverse are computed where they are.
//
//   T'(f(conv(T(x), w)))   =>  f(conv of channels first(x, w))      T: channels first to last, T' back; f elementwise
//   T'(f(pool(T(x))))      =>  f(pool of channels first(x))
//   T'(f(dense(T(a), W)))  =>  f(dense(W transposed, a))            T, T': of two dimensions
//
// The two changes of layout cost a pass over memory each, which is more than a convolution of few terms takes itself.
// It is done where vectors along a row of the image are as good as vectors along the channels: where the taps of a
// window are read by every channel for itself, and where there is no window (a product of rows of pixels). Everything
// else wants its channels side by side, and so does what stands between other operators of images, whose transposes
// SinkLayout has removed.
#include <algorithm>
#include <vector>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/permutation.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

// Of a row of pixels, from which on vectors along it are filled well enough.
constexpr int64_t kFewestInRow = 6, kFewestPixels = 128;
// From which on a product of them is as fast as one of rows of channels; and what one of fewer may have of operations
// for each element that would be moved, so that it gains more than it loses.
constexpr int64_t kManyPixels = 512, kFewOperations = 80;
// Channels of a cache line: rows of other sizes begin anywhere in one.
constexpr int64_t kChannelsOfLine = 16;
// Terms of a sum in a group of channels, up to which its convolution takes less time than the changes of layout.
constexpr int64_t kFewTerms = 16;

bool IsChannelsFirstToLast(const Ints& perm) {
  for (size_t i = 1; i + 1 < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i) + 1) return false;
  }
  return perm.size() > 2 && perm[0] == 0 && perm.back() == 1;
}

// Whether the node, whose image is transposed by `perm`, is as fast without.
bool Stays(Rewriting& r, const Node& node, const Ints& perm) {
  const Ints& out = r.shape(node.outputs[0]);
  if (r.type(node.outputs[0]).dtype != kFloat32) return false;
  if (FindOp(node.op)->takes_channels_first && node.inputs.size() == 1)  // a pool
    return IsChannelsFirstToLast(perm) && out.end()[-2] >= kFewestInRow;
  if (node.inputs.size() < 2 || !r.IsConstant(node.inputs[1])) return false;
  if (node.op == "dense") {
    const int64_t pixels = out[0], to = out[1], from = r.shape(node.inputs[1])[0];
    const bool few_operations = from * to <= kFewOperations * (from + to);
    const bool gains = pixels >= kManyPixels || few_operations || to % kChannelsOfLine != 0;
    return perm == Ints{1, 0} && pixels >= kFewestPixels && gains;
  }
  if (!IsChannelsFirstToLast(perm)) return false;
  if (node.op == "depthwise_conv2d") return out[2] >= kFewestInRow;
  if (node.op != "conv") return false;
  const Ints& w = r.shape(node.inputs[1]);
  const bool pointwise = topi::AllAre(Ints(w.begin(), w.end() - 2), 1) &&
                         topi::AllAre(IntsAttr(node.attrs, "strides"), 1) &&
                         topi::AllAre(IntsAttr(node.attrs, "pads"), 0);
  return pointwise && w.end()[-2] <= kFewTerms && out[out.size() - 2] >= kFewestInRow;
}

// The elementwise nodes between a product or pool and the transpose of their result, from the last, and the product.
struct Chain {
  std::vector<Node> elementwise;
  std::vector<size_t> places;  // of the value among each one's inputs
  Node product;
};

std::optional<Chain> ChainAbove(Rewriting& r, int value) {
  Chain chain;
  for (;;) {
    const Node* node = r.Producer(value);
    if (node == nullptr || r.uses(value) > 1 || node->outputs.size() != 1) return std::nullopt;
    if (FindOp(node->op)->kind != OpKind::kElementwise) {
      chain.product = *node;
      return chain;
    }
    const auto is_value = [&](int input) { return !r.IsConstant(input); };
    if (std::count_if(node->inputs.begin(), node->inputs.end(), is_value) != 1) return std::nullopt;
    const auto input = std::find_if(node->inputs.begin(), node->inputs.end(), is_value);
    if (r.shape(*input) != r.shape(value)) return std::nullopt;
    chain.places.push_back(static_cast<size_t>(input - node->inputs.begin()));
    chain.elementwise.push_back(*node);
    value = *input;
  }
}

// The product without the transpose of its first input, in the order of the old one again.
absl::StatusOr<int> WithoutTranspose(Rewriting& r, const Node& product, int source, const Ints& perm) {
  if (product.op == "dense") {
    HONE_ASSIGN_OR_RETURN(const int left, r.Transpose(product, product.inputs[1], perm));
    HONE_ASSIGN_OR_RETURN(const int result, r.Add(product.op, product, {left, source}, product.attrs));
    return r.Transpose(product, result, perm);
  }
  Attrs attrs = product.attrs;
  attrs["channels_first"] = int64_t{1};
  std::vector<int> inputs = product.inputs;
  inputs[0] = source;
  HONE_ASSIGN_OR_RETURN(const int result, r.Add(product.op, product, inputs, std::move(attrs)));
  return r.Transpose(product, result, perm);
}

struct Transposed {
  int value;  // what is transposed
  Ints perm;
};

// What a transpose moves. That of one image, made of a matrix of pixels by a reshape, is that of the matrix.
Transposed WhatMoves(Rewriting& r, const Node& transpose) {
  const Ints perm = IntsAttr(transpose.attrs, "perm");
  const int value = transpose.inputs[0];
  const Node* reshape = r.Producer(value, "reshape");
  const Ints& image = r.shape(value);
  if (reshape == nullptr || r.uses(value) > 1 || image[0] != 1 || perm.size() < 3) return {value, perm};
  const Ints& matrix = r.shape(reshape->inputs[0]);
  if (!IsChannelsFirstToLast(Inverse(perm)) || matrix.size() != 2 || matrix[1] != image.back()) return {value, perm};
  return {reshape->inputs[0], {1, 0}};
}

Replacement Keep(Rewriting& r, const Node& node) {
  if (node.op != "transpose") return std::nullopt;
  const auto [result, back] = WhatMoves(r, node);
  std::optional<Chain> chain = ChainAbove(r, result);
  if (!chain.has_value() || chain->product.inputs.empty()) return std::nullopt;
  const int image = chain->product.inputs[0];
  const Node* transpose = r.Producer(image, "transpose");
  if (transpose == nullptr || r.uses(image) > 1) return std::nullopt;
  const Ints perm = IntsAttr(transpose->attrs, "perm");
  if (back != Inverse(perm) || !Stays(r, chain->product, perm)) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(int value, WithoutTranspose(r, chain->product, transpose->inputs[0], perm));
  for (size_t i = chain->elementwise.size(); i-- > 0;) {
    const Node& plain = chain->elementwise[i];
    std::vector<int> inputs = plain.inputs;
    inputs[chain->places[i]] = value;
    HONE_ASSIGN_OR_RETURN(value, r.Add(plain.op, plain, inputs, plain.attrs));
  }
  const Ints shape = r.shape(node.outputs[0]);
  HONE_ASSIGN_OR_RETURN(value, r.Transpose(node, value, back));
  return r.Reshape(node, value, shape);
}

}  // namespace

// SinkLayout moves the transpose behind the product through what follows, where it meets its inverse.
absl::Status KeepChannelsFirst(Graph& graph) {
  HONE_ASSIGN_OR_RETURN(const bool changed, RewriteNodes(graph, Keep));
  return changed ? SinkLayout(graph) : absl::OkStatus();
}

}  // namespace hone
