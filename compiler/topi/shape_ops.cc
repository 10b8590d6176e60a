#include "compiler/topi/shape_ops.h"

#include <algorithm>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/elementwise.h"

namespace hone::topi {
namespace {

// Dimensions of two shapes that hold the same elements: source [from, from_end) is regrouped as target [to, to_end).
struct Regroup {
  size_t from, from_end, to, to_end;
};

// The finest such groups, left to right, so that a dimension that stays is addressed by its own index. Both shapes hold
// the same number of elements, which is not 0.
std::vector<Regroup> FindGroups(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  std::vector<Regroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Regroup g{i, i, j, j};
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      ++i, ++j;
    } else if (i < from.size() && from[i] == 1) {
      ++i;
    } else if (j < to.size() && to[j] == 1) {
      ++j;
    } else {
      int64_t a = from[i++], b = to[j++];
      while (a != b) {
        if (a < b) {
          a *= from[i++];
        } else {
          b *= to[j++];
        }
      }
    }
    g.from_end = i;
    g.to_end = j;
    groups.push_back(g);
  }
  return groups;
}

int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

}  // namespace

te::Tensor Transpose(const te::Tensor& x, const std::vector<int64_t>& permutation, const std::string& name) {
  HONE_CHECK(static_cast<int>(permutation.size()) == x.rank()) << name << ": a permutation of another rank";
  te::Shape shape;
  std::vector<int64_t> from;
  for (const int64_t p : permutation) {
    from.push_back(NormalizeAxis(p, x.rank()));
    shape.push_back(x.shape()[from.back()]);
  }
  NormalizeAxes(from, x.rank());  // checks that none is there twice
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at(i.size());
        for (size_t d = 0; d < i.size(); ++d) at[from[d]] = i[d];
        return x(at);
      },
      name);
}

te::Tensor Reshape(const te::Tensor& x, const std::vector<int64_t>& shape, const std::string& name) {
  const std::vector<int64_t> from = x.StaticShape();
  HONE_CHECK(Product(from) == Product(shape))
      << name << ": " << Product(from) << " elements, the new shape holds " << Product(shape);
  if (Product(shape) == 0) {  // no element is ever read
    return te::Compute(
        te::Shape(shape), [&](const te::Indices&) { return x(std::vector<Expr>(from.size(), Expr(0))); }, name);
  }
  const std::vector<Regroup> groups = FindGroups(from, shape);
  return te::Compute(
      te::Shape(shape),
      [&](const te::Indices& i) {
        std::vector<Expr> at(from.size());
        for (const Regroup& g : groups) {
          if (g.from_end == g.from + 1 && g.to_end == g.to + 1) {  // the dimension stays
            at[g.from] = i[g.to];
            continue;
          }
          Expr flat = 0;
          for (size_t d = g.to; d < g.to_end; ++d) flat = flat * shape[d] + i[d];
          int64_t stride = 1;
          for (size_t d = g.from_end; d-- > g.from;) {
            Expr index = stride == 1 ? flat : FloorDiv(flat, stride);
            if (from[d] == 1) {
              index = 0;
            } else if (d != g.from) {
              index = FloorMod(index, from[d]);
            }
            at[d] = index;
            stride *= from[d];
          }
        }
        return x(at);
      },
      name);
}

te::Tensor Squeeze(const te::Tensor& x, const std::vector<int64_t>& axes, const std::string& name) {
  std::vector<int64_t> shape;
  const std::vector<int64_t> gone = NormalizeAxes(axes, x.rank());
  for (int d = 0; d < x.rank(); ++d) {
    const bool goes = axes.empty() ? x.dim(d) == 1 : std::find(gone.begin(), gone.end(), d) != gone.end();
    HONE_CHECK(!goes || x.dim(d) == 1) << name << ": dimension " << d << " has size " << x.dim(d);
    if (!goes) shape.push_back(x.dim(d));
  }
  return Reshape(x, shape, name);
}

te::Tensor ExpandDims(const te::Tensor& x, const std::vector<int64_t>& axes, const std::string& name) {
  const int64_t rank = x.rank() + static_cast<int64_t>(axes.size());
  const std::vector<int64_t> added = NormalizeAxes(axes, rank);
  std::vector<int64_t> shape;
  int next = 0;
  for (int64_t d = 0; d < rank; ++d) {
    shape.push_back(std::find(added.begin(), added.end(), d) != added.end() ? 1 : x.dim(next++));
  }
  return Reshape(x, shape, name);
}

te::Tensor Concat(const std::vector<te::Tensor>& parts, int64_t axis, const std::string& name) {
  HONE_CHECK(!parts.empty()) << name << " of nothing";
  const int64_t along = NormalizeAxis(axis, parts[0].rank());
  te::Shape shape = parts[0].shape();
  std::vector<int64_t> ends;
  int64_t total = 0;
  for (const te::Tensor& part : parts) {
    HONE_CHECK(part.rank() == parts[0].rank() && part.dtype() == parts[0].dtype()) << name << ": parts do not match";
    total += part.dim(static_cast<int>(along));
    ends.push_back(total);
  }
  shape[along] = total;
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        Expr value;
        for (size_t p = parts.size(); p-- > 0;) {
          if (parts[p].dim(static_cast<int>(along)) == 0) continue;
          std::vector<Expr> at = ToExprs(i);
          if (p > 0) at[along] = i[along] - ends[p - 1];
          const Expr part = parts[p](at);
          value = value ? IfThenElse(i[along] < ends[p], part, value) : part;
        }
        return value ? value : Const(0, parts[0].dtype());
      },
      name);
}

te::Tensor Interleave(const std::vector<te::Tensor>& parts, int64_t axis, const std::string& name) {
  HONE_CHECK(!parts.empty()) << name << " of nothing";
  const int64_t along = NormalizeAxis(axis, parts[0].rank()), count = static_cast<int64_t>(parts.size());
  te::Shape shape = parts[0].shape();
  for (const te::Tensor& part : parts)
    HONE_CHECK(part.rank() == parts[0].rank() && part.dtype() == parts[0].dtype()) << name << ": parts do not match";
  shape[along] = parts[0].dim(static_cast<int>(along)) * count;
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = FloorDiv(i[along], Expr(count));
        Expr value = parts.back()(at);
        for (size_t p = parts.size() - 1; p-- > 0;) {
          value = IfThenElse(FloorMod(i[along], Expr(count)) < Expr(static_cast<int64_t>(p) + 1), parts[p](at), value);
        }
        return value;
      },
      name);
}

te::Tensor StridedSlice(const te::Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                        const std::vector<int64_t>& step, const std::vector<int64_t>& axes, const std::string& name) {
  HONE_CHECK(begin.size() == axes.size() && end.size() == axes.size() && step.size() == axes.size())
      << name << ": begins, ends, steps and axes differ in number";
  std::vector<int64_t> start(x.rank(), 0), stride(x.rank(), 1);
  te::Shape shape = x.shape();
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t d = NormalizeAxis(axes[a], x.rank());
    const int64_t size = x.dim(static_cast<int>(d)), s = step[a];
    HONE_CHECK(s != 0) << name << ": a step of 0";
    const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? std::max(at + size, int64_t{-1}) : at, low, high);
    };
    // Backwards, -1 stands for the place before the first element.
    const int64_t first = s > 0 ? clamp(std::max(begin[a], -size), 0, size) : clamp(begin[a], -1, size - 1);
    const int64_t last = s > 0            ? clamp(std::max(end[a], -size), 0, size)
                         : end[a] < -size ? -1
                                          : clamp(end[a], -1, size - 1);
    start[d] = first;
    stride[d] = s;
    shape[d] =
        s > 0 ? std::max<int64_t>(0, (last - first + s - 1) / s) : std::max<int64_t>(0, (first - last - s - 1) / -s);
  }
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at;
        for (size_t d = 0; d < i.size(); ++d) at.push_back(i[d] * stride[d] + start[d]);
        return x(at);
      },
      name);
}

std::vector<te::Tensor> Split(const te::Tensor& x, const std::vector<int64_t>& sizes, int64_t axis,
                              const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  std::vector<te::Tensor> parts;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    parts.push_back(StridedSlice(x, {at}, {at + size}, {1}, {along}, name + "_" + std::to_string(parts.size())));
    at += size;
  }
  HONE_CHECK(at == x.dim(static_cast<int>(along))) << name << ": the parts add up to " << at;
  return parts;
}

te::Tensor BroadcastTo(const te::Tensor& x, const std::vector<int64_t>& shape, const std::string& name) {
  const te::Shape result = BroadcastShape(x.shape(), te::Shape(shape));
  return te::Compute(
      result, [&](const te::Indices& i) { return BroadcastAccess(x, i, result); }, name);
}

te::Tensor Tile(const te::Tensor& x, const std::vector<int64_t>& repeats, const std::string& name) {
  HONE_CHECK(static_cast<int>(repeats.size()) == x.rank()) << name << ": repeats of another rank";
  te::Shape shape;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(x.dim(d) * repeats[d]);
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at;
        for (int d = 0; d < x.rank(); ++d) {
          at.push_back(repeats[d] == 1 ? Expr(i[d]) : x.dim(d) == 1 ? Expr(0) : FloorMod(i[d], x.dim(d)));
        }
        return x(at);
      },
      name);
}

te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, PadMode mode,
               double value, const std::string& name) {
  HONE_CHECK(static_cast<int>(before.size()) == x.rank() && static_cast<int>(after.size()) == x.rank())
      << name << ": pads of another rank";
  te::Shape shape;
  for (int d = 0; d < x.rank(); ++d)
    shape.push_back(before[d] == 0 && after[d] == 0 ? x.shape()[d] : Expr(x.dim(d) + before[d] + after[d]));
  return te::Compute(
      shape,
      [&](const te::Indices& i) -> Expr {
        std::vector<Expr> at;
        Expr inside = True();
        for (int d = 0; d < x.rank(); ++d) {
          if (before[d] == 0 && after[d] == 0) {
            at.push_back(i[d]);
            continue;
          }
          const int64_t size = x.dim(d);
          const Expr place = i[d] - before[d];
          switch (mode) {
            case PadMode::kConstant:
              if (before[d] > 0) inside = And(inside, i[d] >= before[d]);
              if (after[d] > 0) inside = And(inside, i[d] < before[d] + size);
              at.push_back(place);
              break;
            case PadMode::kEdge: at.push_back(Min(Max(place, Expr(0)), Expr(size - 1))); break;
            case PadMode::kWrap: at.push_back(FloorMod(place, size)); break;
            case PadMode::kReflect:
              if (size == 1) {
                at.push_back(0);
              } else if (before[d] < size && after[d] < size) {
                const Expr distance = Max(place, Expr(0) - place);  // from element 0
                at.push_back(Min(distance, Expr(2 * (size - 1)) - distance));
              } else {  // there and back, again and again
                const Expr phase = FloorMod(place, 2 * (size - 1));
                at.push_back(Min(phase, Expr(2 * (size - 1)) - phase));
              }
              break;
          }
        }
        const Expr element = x(at);
        return IsConst(inside, 1) ? element : IfThenElse(inside, element, Const(value, x.dtype()));
      },
      name);
}

te::Tensor DepthToSpace(const te::Tensor& x, int64_t block, bool dcr, const std::string& name) {
  HONE_CHECK(x.rank() == 4 && x.dim(3) % (block * block) == 0) << name << ": channels are no multiple of the block";
  const int64_t channels = x.dim(3) / (block * block);
  return te::Compute({x.shape()[0], x.dim(1) * block, x.dim(2) * block, channels},
                     [&](const te::Indices& i) {
                       const Expr within = FloorMod(i[1], block) * block + FloorMod(i[2], block);
                       const Expr channel = dcr ? within * channels + i[3] : i[3] * (block * block) + within;
                       return x(i[0], FloorDiv(i[1], block), FloorDiv(i[2], block), channel);
                     },
                     name, {{"n", "h", "w", "c"}, {}});
}

te::Tensor SpaceToDepth(const te::Tensor& x, int64_t block, const std::string& name) {
  HONE_CHECK(x.rank() == 4 && x.dim(1) % block == 0 && x.dim(2) % block == 0) << name << ": no multiple of the block";
  const int64_t channels = x.dim(3);
  return te::Compute({x.shape()[0], x.dim(1) / block, x.dim(2) / block, channels * block * block},
                     [&](const te::Indices& i) {
                       const Expr within = FloorDiv(i[3], channels);
                       return x(i[0], i[1] * block + FloorDiv(within, block), i[2] * block + FloorMod(within, block),
                                FloorMod(i[3], channels));
                     },
                     name, {{"n", "h", "w", "c"}, {}});
}

}  // namespace hone::topi
