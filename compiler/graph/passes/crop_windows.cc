// Taps of a convolution that read nothing but padding are cut off its weight. A dilated window over a small image has
// them: of 3x3 with a dilation of 24 over 16x16, the middle alone meets the image, and what is left is a product.
//
//   tap k of H elements reads  o * stride + k * dilation - before  for every result o:  outside [0, H) for all o
//
// Exact where weights are finite: such a tap adds zeros.
#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// Along one dimension of the image.
struct Window {
  int64_t image, results, kernel, stride, dilation, before, after;

  // Of tap k. The first result at or behind the image's begin may lie behind its end, where strides are long.
  bool ReadsPaddingAlone(int64_t k) const {
    const int64_t offset = k * dilation - before;
    const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    return first >= results || first * stride + offset >= image;
  }
  // Paddings are never negative, so what is cut off is at most as long as they are.
  int64_t CutInFront() const {
    int64_t cut = 0;
    while (cut + 1 < kernel && (cut + 1) * dilation <= before && ReadsPaddingAlone(cut)) ++cut;
    return cut;
  }
  int64_t CutBehind(int64_t in_front) const {
    int64_t cut = 0;
    while (in_front + cut + 1 < kernel && (cut + 1) * dilation <= after && ReadsPaddingAlone(kernel - 1 - cut)) ++cut;
    return cut;
  }
};

absl::StatusOr<std::optional<int>> Crop(Rewriting& r, const Node& node) {
  const bool pads_with_zeros = IntAttr(node.attrs, "pad_value", 0) == 0;
  if (!FindOp(node.op)->slides_weight || !pads_with_zeros || IntAttr(node.attrs, "channels_first", 0) != 0)
    return std::nullopt;
  const Ints image = r.shape(node.inputs[0]);  // [N, S.., C]
  const Ints results = r.shape(node.outputs[0]);
  Ints weight = r.shape(node.inputs[1]);  // [K.., ..]
  const size_t spatial = image.size() - 2;
  const Ints strides = IntsAttr(node.attrs, "strides", Ints(spatial, 1));
  const Ints dilations = IntsAttr(node.attrs, "dilations", Ints(spatial, 1));
  const Ints padded = IntsAttr(node.attrs, "pads", Ints(2 * spatial, 0));  // all befores, then all afters
  Ints pads(2 * spatial), starts(weight.size(), 0);
  bool cut = false;
  for (size_t d = 0; d < spatial; ++d) {
    const Window w{image[d + 1], results[d + 1], weight[d], strides[d], dilations[d], padded[d], padded[spatial + d]};
    starts[d] = w.CutInFront();
    const int64_t behind = w.CutBehind(starts[d]);
    weight[d] -= starts[d] + behind;
    pads[d] = w.before - starts[d] * w.dilation;
    pads[spatial + d] = w.after - behind * w.dilation;
    cut = cut || weight[d] < w.kernel;
  }
  if (!cut) return std::nullopt;
  const Attrs part{{"starts", starts}, {"sizes", weight}, {"steps", Ints(weight.size(), 1)}};
  HONE_ASSIGN_OR_RETURN(const int taps, r.Add("slice", node, {node.inputs[1]}, part));
  Attrs attrs = node.attrs;
  attrs["pads"] = pads;
  return r.Add(node.op, node, {node.inputs[0], taps}, std::move(attrs));
}

}  // namespace

absl::Status CropWindows(Graph& graph) {
  // What is cut off at one size of an image is needed at another.
  if (graph.sizes_are_open) return absl::OkStatus();
  return RewriteNodes(graph, Crop).status();
}

}  // namespace hone
