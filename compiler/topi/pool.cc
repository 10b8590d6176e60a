#include "compiler/topi/pool.h"

#include <algorithm>
#include <limits>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/reduce.h"
#include "compiler/topi/shape_ops.h"

namespace hone::topi {
namespace {

// One spatial dimension of a pool.
struct Window {
  int64_t in, out, kernel, stride, dilation, before, after;
  int64_t start(int64_t o) const { return o * stride - before; }
  int64_t padded_end() const { return in + after; }
  // What has to be added after the input so that every window lies inside.
  int64_t needed_after() const { return std::max<int64_t>(0, start(out - 1) + (kernel - 1) * dilation + 1 - in); }
  // Places of the window at o that lie in [low, high).
  int64_t CountInside(int64_t o, int64_t low, int64_t high) const {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = start(o) + k * dilation;
      count += at >= low && at < high;
    }
    return count;
  }
};

struct Pool {
  size_t first = 1;  // of the spatial dimensions
  std::vector<Window> windows;
  te::Shape shape;
  std::vector<std::string> axes;
  std::vector<te::ReduceAxis> reduce;
  std::vector<int64_t> before, after;  // of all dimensions

  Pool(const te::Tensor& x, const PoolAttrs& attrs, const std::string& name) {
    const size_t spatial = attrs.kernel.size();
    HONE_CHECK(x.rank() == static_cast<int>(spatial) + 2 && spatial >= 1 && spatial <= 3)
        << name << ": a window of " << spatial << " dimensions over rank " << x.rank();
    const std::vector<int64_t> strides = OrDefault(attrs.strides, spatial, 1);
    const std::vector<int64_t> dilations = OrDefault(attrs.dilations, spatial, 1);
    const std::vector<int64_t> pads_before = OrDefault(attrs.pads_before, spatial, 0);
    const std::vector<int64_t> pads_after = OrDefault(attrs.pads_after, spatial, 0);
    first = attrs.channels_first ? 2 : 1;
    AddWhole(x, 0, "n");
    if (attrs.channels_first) AddWhole(x, 1, "c");
    for (size_t d = 0; d < spatial; ++d) {
      Window w{x.dim(static_cast<int>(first + d)),
               0,
               attrs.kernel[d],
               strides[d],
               dilations[d],
               pads_before[d],
               pads_after[d]};
      w.out = PoolOutputSize(w.in, w.kernel, w.stride, w.dilation, w.before, w.after, attrs.ceil_mode);
      windows.push_back(w);
      shape.push_back(w.out);
      const std::string letter(1, "dhw"[3 - spatial + d]);
      axes.push_back("o" + letter);
      reduce.emplace_back(Expr(w.kernel), "k" + letter);
      before.push_back(w.before);
      after.push_back(w.needed_after());
    }
    if (!attrs.channels_first) AddWhole(x, first + spatial, "c");
  }

  // A dimension over which no window moves.
  void AddWhole(const te::Tensor& x, size_t dim, const std::string& axis) {
    shape.push_back(x.shape()[dim]);
    axes.push_back(axis);
    before.push_back(0);
    after.push_back(0);
  }

  te::Tensor Padded(const te::Tensor& x, double value) const {
    if (AllAre(before, 0) && AllAre(after, 0)) return x;
    return Pad(x, before, after, PadMode::kConstant, value);
  }

  std::vector<Expr> At(const te::Indices& i) const {
    std::vector<Expr> at(i.begin(), i.end());
    for (size_t d = 0; d < windows.size(); ++d) {
      at[first + d] = i[first + d] * windows[d].stride + reduce[d] * windows[d].dilation;
    }
    return at;
  }
};

// How many places of the window at `o` lie in [low, high): a constant where it is the same for every o.
Expr CountExpr(const Window& w, const Expr& o, int64_t low, int64_t high) {
  const int64_t first = w.CountInside(0, low, high);
  bool same = true;
  for (int64_t at = 1; at < w.out && same; ++at) same = w.CountInside(at, low, high) == first;
  if (same) return IntConst(first);
  const Expr start = o * w.stride - w.before;
  const auto before = [&](int64_t end) {  // places k * dilation below end - start, among the kernel's
    const Expr count = FloorDiv(Expr(end) - start + (w.dilation - 1), w.dilation);
    return Max(Min(count, Expr(w.kernel)), Expr(0));
  };
  return before(high) - before(low);
}

}  // namespace

int64_t PoolOutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after,
                       bool ceil_mode) {
  const int64_t room = in + before + after - (kernel - 1) * dilation - 1;
  if (!ceil_mode) return room / stride + 1;
  const int64_t out = (room + stride - 1) / stride + 1;
  return (out - 1) * stride >= in + before ? out - 1 : out;
}

te::Tensor MaxPool(const te::Tensor& x, const PoolAttrs& attrs, const std::string& name) {
  const Pool pool(x, attrs, name);
  const DType type = x.dtype();
  // For integers the pad value goes through a double, which holds the least value of every type of up to 53 bits.
  const double least = type.is_float() ? -std::numeric_limits<double>::infinity()
                                       : static_cast<double>(*ConstantValue(te::LeastValue(type)));
  const te::Tensor padded = pool.Padded(x, least);
  return te::Compute(pool.shape, [&](const te::Indices& i) { return te::Max(padded(pool.At(i)), pool.reduce); }, name,
                     {pool.axes, {}});
}

te::Tensor AveragePool(const te::Tensor& x, const PoolAttrs& attrs, const std::string& name) {
  const Pool pool(x, attrs, name);
  const te::Tensor padded = pool.Padded(x, 0);
  const te::Tensor sum =
      te::Compute(pool.shape, [&](const te::Indices& i) { return te::Sum(padded(pool.At(i)), pool.reduce); },
                  name + "_sum", {pool.axes, {}});
  return te::Compute(pool.shape,
                     [&](const te::Indices& i) {
                       Expr count = Const(1, x.dtype());
                       for (size_t d = 0; d < pool.windows.size(); ++d) {
                         const Window& w = pool.windows[d];
                         const int64_t low = attrs.count_include_pad ? -w.before : 0;
                         const int64_t high = attrs.count_include_pad ? w.padded_end() : w.in;
                         count = count * MakeCast(x.dtype(), CountExpr(w, i[pool.first + d], low, high));
                       }
                       return sum(i) / count;
                     },
                     name, {pool.axes, {}});
}

te::Tensor GlobalAveragePool(const te::Tensor& x, const std::string& name) {
  std::vector<int64_t> axes;
  for (int d = 1; d < x.rank() - 1; ++d) axes.push_back(d);
  return ReduceMean(x, axes, true, name);
}

te::Tensor GlobalMaxPool(const te::Tensor& x, const std::string& name) {
  std::vector<int64_t> axes;
  for (int d = 1; d < x.rank() - 1; ++d) axes.push_back(d);
  return ReduceMax(x, axes, true, name);
}

}  // namespace hone::topi
