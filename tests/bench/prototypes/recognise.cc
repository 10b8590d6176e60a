#include "tests/bench/prototypes/recognise.h"

#include <optional>
#include <tuple>
#include <utility>

#include "compiler/arith/linear.h"
#include "tests/bench/prototypes/convolution.h"
#include "tests/bench/prototypes/depthwise.h"
#include "tests/bench/prototypes/product.h"
#include "tests/bench/prototypes/winograd.h"

namespace hone::prototypes {
namespace {

// A dimension of an image with windows.
struct Axis {
  int64_t out = 1, kernel = 1, stride = 1;
  int64_t in = 1, pad = 0;

  auto numbers() const { return std::tuple(in, out, kernel, stride, pad); }
};

std::optional<LinearForm> FormOf(const BlockInfo& block, const Expr& index) {
  std::vector<Var> vars;
  for (const IterVar& iter : block.iters) vars.push_back(iter.var);
  return DetectLinear(index, vars);
}

// The dimension of what a block reads that an iteration variable walks: where it begins, and how long the dimension is.
struct Walk {
  int64_t base = 0, extent = 1;
};
std::optional<Walk> FindWalk(const BlockInfo& block, int iter) {
  const BlockInfo::Access& read = block.reads.front();
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const std::optional<LinearForm> form = FormOf(block, read.indices[d]);
    if (!form.has_value() || form->coefficients[static_cast<size_t>(iter)] != 1) continue;
    const std::optional<int64_t> base = ConstantValue(form->base), extent = ConstantValue(read.buffer.shape()[d]);
    if (base.has_value() && extent.has_value()) return Walk{*base, *extent};
  }
  return std::nullopt;
}

// What dimension d of the image is before a block of its own pads it.
void LookThroughPadding(const WorkloadInfo& info, const Buffer& image, size_t d, Axis* axis) {
  axis->in = *ConstantValue(image.shape()[d]);
  const int producer = info.Producer(image);
  if (producer < 0 || !info.blocks[static_cast<size_t>(producer)].pads) return;
  const BlockInfo& padding = info.blocks[static_cast<size_t>(producer)];
  const int iter = padding.output_iters[d];
  const std::optional<Walk> walk = iter < 0 ? std::nullopt : FindWalk(padding, iter);
  if (!walk.has_value()) return;
  axis->in = walk->extent;
  axis->pad = -walk->base;
}

// What the block multiplies.
struct Operands {
  const BlockInfo::Access *image, *weights;
};
std::optional<Operands> OperandsOf(const BlockInfo& block) {
  if (!block.is_product || block.reads.size() != 2 || block.output.type() != kFloat32) return std::nullopt;
  for (const BlockInfo::Access& read : block.reads) {
    if (read.buffer.type() != kFloat32 || !read.affine || read.places != 1) return std::nullopt;
  }
  if (block.reads[0].constant == block.reads[1].constant) return std::nullopt;
  const size_t weights = block.reads[0].constant ? 0 : 1;
  return Operands{&block.reads[1 - weights], &block.reads[weights]};
}

// An index of the image as  stride * moves + sums,  of a spatial and a reduction variable. -1: there is none, or it has
// one iteration.
struct Place {
  int moves = -1;
  int64_t stride = 1;
  int sums = -1;
};
std::optional<Place> PlaceOf(const BlockInfo& block, const Expr& index) {
  const std::optional<LinearForm> form = FormOf(block, index);
  if (!form.has_value()) return std::nullopt;
  Place place;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const int64_t coefficient = form->coefficients[i];
    if (coefficient == 0 || block.extents[i] == 1) continue;
    const bool spatial = block.spatial(static_cast<int>(i));
    int& iter = spatial ? place.moves : place.sums;
    if (iter >= 0 || coefficient < 1 || (!spatial && coefficient != 1)) return std::nullopt;
    iter = static_cast<int>(i);
    if (spatial) place.stride = coefficient;
  }
  return place;
}

std::optional<LayerSize> LayerOf(const WorkloadInfo& info, const BlockInfo& block) {
  const std::optional<Operands> operands = OperandsOf(block);
  if (!operands.has_value()) return std::nullopt;
  const auto& [image, weights] = *operands;
  const auto extent = [&](int iter) { return block.extents[static_cast<size_t>(iter)]; };
  LayerSize size;
  std::vector<Axis> axes;
  for (size_t d = 0; d < image->indices.size(); ++d) {
    const std::optional<Place> place = PlaceOf(block, image->indices[d]);
    if (!place.has_value()) return std::nullopt;
    const auto& [moves, stride, sums] = *place;
    if (moves < 0) {
      if (sums >= 0) size.channels *= extent(sums);
    } else if (weights->strides[static_cast<size_t>(moves)] != 0) {
      if (sums >= 0 || stride != 1 || size.depthwise) return std::nullopt;
      size.depthwise = true;
      size.out_channels = extent(moves);
    } else if (sums < 0 && stride == 1) {
      size.batch *= extent(moves);
    } else {
      axes.push_back({.out = extent(moves), .kernel = sums < 0 ? 1 : extent(sums), .stride = stride});
      LookThroughPadding(info, image->buffer, d, &axes.back());
    }
  }
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.spatial(i) || image->strides[static_cast<size_t>(i)] != 0 || extent(i) == 1) continue;
    if (size.depthwise) return std::nullopt;
    size.out_channels *= extent(i);
  }
  if (axes.size() > 2 || (size.depthwise && (size.channels > 1 || axes.size() != 2))) return std::nullopt;
  if (size.depthwise) size.channels = size.out_channels;
  if (axes.empty()) {  // every pixel is a row of a product
    size.width = size.out_width = std::exchange(size.batch, 1);
    return size;
  }
  const Axis h = axes.size() == 2 ? axes.front() : Axis{}, w = axes.back();
  std::tie(size.height, size.out_height, size.kernel_h, size.stride_h, size.pad_top) = h.numbers();
  std::tie(size.width, size.out_width, size.kernel_w, size.stride_w, size.pad_left) = w.numbers();
  return size;
}

}  // namespace

std::vector<LayerSize> LayersOf(const WorkloadInfo& info) {
  std::vector<LayerSize> layers;
  for (const BlockInfo& block : info.blocks) {
    if (!block.reduces) continue;
    const std::optional<LayerSize> layer = LayerOf(info, block);
    if (!layer.has_value()) return {};
    layers.push_back(*layer);
  }
  return layers;
}

std::vector<std::unique_ptr<Prototype>> PrototypesOf(const LayerSize& size, ThreadPool& pool) {
  std::vector<std::unique_ptr<Prototype>> found;
  const auto layer = std::make_shared<const Layer>(size);
  if (size.depthwise) {
    if (IsForDepthwise(size)) found.push_back(MakeDepthwise(layer, pool));
  } else if (size.terms() == size.channels && size.height == 1 && size.width == size.out_width) {
    found.push_back(MakeProduct(layer, pool));
  } else {
    found.push_back(MakeConvolution(layer, pool));
    if (IsForWinograd(size)) {
      for (const int m : {2, 4}) found.push_back(MakeWinograd(layer, pool, m));
    }
  }
  return found;
}

}  // namespace hone::prototypes
