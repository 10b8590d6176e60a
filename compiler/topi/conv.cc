#include "compiler/topi/conv.h"

#include <algorithm>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/product.h"
#include "compiler/topi/shape_ops.h"

namespace hone::topi {
namespace {

// Names of the spatial axes for one to three dimensions: "h", "w"; "w" alone; "d", "h", "w".
std::string SpatialName(size_t d, size_t count) { return std::string(1, "dhw"[3 - count + d]); }

struct Window {
  std::vector<int64_t> strides, dilations, before, after;
};

// Where the dimensions of an image are.
struct ImageAxes {
  size_t channel, spatial;  // the latter: the first of them
};
ImageAxes AxesOf(size_t spatial, bool channels_first) {
  return channels_first ? ImageAxes{1, 2} : ImageAxes{spatial + 1, 1};
}

std::vector<std::string> OutputAxes(size_t spatial, const std::string& channel, bool channels_first = false) {
  std::vector<std::string> names = {"n"};
  for (size_t d = 0; d < spatial; ++d) names.push_back("o" + SpatialName(d, spatial));
  names.insert(names.begin() + static_cast<std::ptrdiff_t>(AxesOf(spatial, channels_first).channel), channel);
  return names;
}

// The shape of a result of `channels`.
te::Shape OutputShape(const te::Tensor& x, const te::Tensor& w, const Window& window, Expr channels, ImageAxes axes) {
  te::Shape shape = {x.shape()[0]};
  for (int d = 0; d + 2 < x.rank(); ++d) {
    shape.push_back(ConvOutputSize(x.dim(static_cast<int>(axes.spatial + d)), w.dim(static_cast<int>(d)),
                                   window.strides[d], window.dilations[d], window.before[d], window.after[d]));
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axes.channel), std::move(channels));
  return shape;
}

Window WindowOf(const ConvAttrs& attrs, size_t spatial) {
  HONE_CHECK(spatial >= 1 && spatial <= 3) << "convolution over " << spatial << " spatial dimensions";
  return {OrDefault(attrs.strides, spatial, 1), OrDefault(attrs.dilations, spatial, 1),
          OrDefault(attrs.pads_before, spatial, 0), OrDefault(attrs.pads_after, spatial, 0)};
}

// `value` around the spatial dimensions; x itself when nothing is added.
te::Tensor PadSpatial(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                      double value = 0, bool channels_first = false) {
  if (AllAre(before, 0) && AllAre(after, 0)) return x;
  const size_t spatial = AxesOf(before.size(), channels_first).spatial;
  std::vector<int64_t> all_before(x.rank(), 0), all_after(x.rank(), 0);
  std::copy(before.begin(), before.end(), all_before.begin() + static_cast<std::ptrdiff_t>(spatial));
  std::copy(after.begin(), after.end(), all_after.begin() + static_cast<std::ptrdiff_t>(spatial));
  return Pad(x, all_before, all_after, PadMode::kConstant, value);
}

std::vector<te::ReduceAxis> KernelAxes(const te::Tensor& w, size_t spatial) {
  std::vector<te::ReduceAxis> axes;
  for (size_t d = 0; d < spatial; ++d) axes.emplace_back(w.shape()[d], "k" + SpatialName(d, spatial));
  return axes;
}

// What a transposed convolution reads, and the reduce axes over the kernel.
struct TransposedOperands {
  te::Tensor source, weights;
  std::vector<int64_t> shift;  // zeros put before the input
  std::vector<te::ReduceAxis> axes;
};

// Where the dilation is 1 (ConvTranspose): the axes run over j. `sizes` are the output's. Taps past the kernel's end
// are zeros of a block "pad_w".
TransposedOperands InPhases(const te::Tensor& x, const te::Tensor& w, const Window& window,
                            const std::vector<int64_t>& sizes) {
  const size_t spatial = sizes.size();
  TransposedOperands operands{x, w, std::vector<int64_t>(spatial), {}};
  std::vector<int64_t> after(spatial), weights_after(w.rank(), 0);
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t s = window.strides[d], taps = (w.dim(d) + s - 1) / s;
    operands.shift[d] = std::max<int64_t>(0, taps - 1 - window.before[d] / s);
    after[d] = std::max<int64_t>(0, (sizes[d] - 1 + window.before[d]) / s - (x.dim(d + 1) - 1));
    weights_after[d] = taps * s - w.dim(d);
    operands.axes.emplace_back(Expr(taps), "k" + SpatialName(d, spatial));
  }
  operands.source = PadSpatial(x, operands.shift, after);
  if (!AllAre(weights_after, 0)) {
    operands.weights = Pad(w, std::vector<int64_t>(w.rank(), 0), weights_after, PadMode::kConstant, 0, "pad_w");
  }
  return operands;
}

}  // namespace

int64_t ConvOutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after) {
  return (in + before + after - (kernel - 1) * dilation - 1) / stride + 1;
}

te::Tensor Conv(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs, const std::string& name) {
  const size_t spatial = x.rank() - 2;
  const Window window = WindowOf(attrs, spatial);
  const ImageAxes axes = AxesOf(spatial, attrs.channels_first);
  const int64_t group_in = w.dim(-2), out = w.dim(-1), in = x.dim(static_cast<int>(axes.channel));
  HONE_CHECK(w.rank() == x.rank() && in == group_in * attrs.groups && out % attrs.groups == 0)
      << name << ": " << in << " input channels, weights for " << group_in << " to " << out << ", " << attrs.groups
      << " groups";
  const int64_t group_out = out / attrs.groups;
  const te::Tensor padded = PadSpatial(x, window.before, window.after, attrs.pad_value, attrs.channels_first);
  std::vector<te::ReduceAxis> terms = KernelAxes(w, spatial);
  terms.emplace_back(w.shape()[spatial], "ic");
  return te::Compute(OutputShape(x, w, window, out, axes),
                     [&](const te::Indices& i) {
                       const Expr &out_channel = i[axes.channel], &term = terms.back();
                       std::vector<Expr> at = {i[0]}, weight;
                       for (size_t d = 0; d < spatial; ++d) {
                         at.push_back(i[axes.spatial + d] * window.strides[d] + terms[d] * window.dilations[d]);
                         weight.push_back(terms[d]);
                       }
                       at.insert(at.begin() + static_cast<std::ptrdiff_t>(axes.channel),
                                 attrs.groups == 1 ? term : FloorDiv(out_channel, group_out) * group_in + term);
                       weight.push_back(term);
                       weight.push_back(out_channel);
                       return te::Sum(Product(padded(at), w(weight)), terms);
                     },
                     name, {OutputAxes(spatial, "oc", attrs.channels_first), {}});
}

te::Tensor Conv2d(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs, const std::string& name) {
  HONE_CHECK(x.rank() == 4) << name << ": input of rank " << x.rank();
  return Conv(x, w, attrs, name);
}

te::Tensor DepthwiseConv2d(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs, const std::string& name) {
  const Window window = WindowOf(attrs, 2);
  const ImageAxes axes = AxesOf(2, attrs.channels_first);
  HONE_CHECK(x.rank() == 4 && w.rank() == 3 && x.dim(static_cast<int>(axes.channel)) == w.dim(2))
      << name << ": channels do not match";
  const te::Tensor padded = PadSpatial(x, window.before, window.after, attrs.pad_value, attrs.channels_first);
  const std::vector<te::ReduceAxis> k = KernelAxes(w, 2);
  return te::Compute(OutputShape(x, w, window, w.shape()[2], axes),
                     [&](const te::Indices& i) {
                       std::vector<Expr> at = {i[0]};
                       for (size_t d = 0; d < 2; ++d)
                         at.push_back(i[axes.spatial + d] * window.strides[d] + k[d] * window.dilations[d]);
                       at.insert(at.begin() + static_cast<std::ptrdiff_t>(axes.channel), i[axes.channel]);
                       return te::Sum(Product(padded(at), w(k[0], k[1], i[axes.channel])), k);
                     },
                     name, {OutputAxes(2, "c", attrs.channels_first), {}});
}

// With dilation 1 an output at o takes the taps k = (o + before) mod s + s * j of the kernel, j in [0, ceil(K / s)),
// and the inputs (o + before) div s - j: no tap is wasted on zeros between the inputs (InPhases). With dilation the
// inputs are tested for each tap.
te::Tensor ConvTranspose(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs,
                         const std::vector<int64_t>& output_padding, const std::string& name) {
  const size_t spatial = x.rank() - 2;
  const Window window = WindowOf(attrs, spatial);
  const std::vector<int64_t> extra = OrDefault(output_padding, spatial, 0);
  const int64_t in = x.dim(-1), group_in = in / attrs.groups, group_out = w.dim(-1), out = group_out * attrs.groups;
  HONE_CHECK(w.rank() == x.rank() && w.dim(-2) == in && in % attrs.groups == 0) << name << ": channels do not match";
  te::Shape shape = {x.shape()[0]};
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < spatial; ++d) {
    sizes.push_back((x.dim(d + 1) - 1) * window.strides[d] + (w.dim(d) - 1) * window.dilations[d] + 1 -
                    window.before[d] - window.after[d] + extra[d]);
    shape.push_back(sizes.back());
  }
  shape.push_back(out);
  const bool phases = AllAre(window.dilations, 1);

  auto [source, weights, shift, axes] =
      phases ? InPhases(x, w, window, sizes)
             : TransposedOperands{x, w, std::vector<int64_t>(spatial, 0), KernelAxes(w, spatial)};
  axes.emplace_back(Expr(group_in), "ic");
  const te::ReduceAxis& channel = axes.back();
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const Expr group = FloorDiv(i.back(), group_out);
        const Expr in_channel = attrs.groups == 1 ? Expr(channel) : group * group_in + channel;
        std::vector<Expr> at = {i[0]}, weight;
        Expr inside = True();
        for (size_t d = 0; d < spatial; ++d) {
          const Expr place = i[d + 1] + window.before[d];
          if (phases) {
            at.push_back(FloorDiv(place, window.strides[d]) - axes[d] + shift[d]);
            weight.push_back(FloorMod(place, window.strides[d]) + axes[d] * window.strides[d]);
          } else {
            const Expr distance = place - axes[d] * window.dilations[d];
            const Expr at_input = FloorDiv(distance, window.strides[d]);
            inside = And(
                inside, And(Eq(FloorMod(distance, window.strides[d]), 0), And(at_input >= 0, at_input < x.dim(d + 1))));
            at.push_back(at_input);
            weight.push_back(axes[d]);
          }
        }
        at.push_back(in_channel);
        weight.push_back(in_channel);
        weight.push_back(attrs.groups == 1 ? Expr(i.back()) : FloorMod(i.back(), group_out));
        const Expr value = source(at);
        return te::Sum((phases ? value : IfThenElse(inside, value, Const(0, x.dtype()))) * weights(weight), axes);
      },
      name, {OutputAxes(spatial, "oc"), {}});
}

}  // namespace hone::topi
