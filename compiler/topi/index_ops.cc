#include "compiler/topi/index_ops.h"

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"

namespace hone::topi {
namespace {

// An index read from a tensor: of the type that loops have, counted from the end when negative.
Expr Normalized(const Expr& index, int64_t size) {
  const Expr i = size <= INT32_MAX ? MakeCast(kInt32, index) : index;
  return MakeSelect(i < Const(0, i.type()), i + Const(static_cast<double>(size), i.type()), i);
}

// A copy of x in which the elements where `matches` holds for an update are combined with `update`.
struct Scatter {
  Expr matches, update;
};
te::Reduction Combine(const te::Tensor& x, const te::Indices& i, const Scatter& scatter, ScatterMode mode,
                      const std::vector<te::ReduceAxis>& axes) {
  te::Reducer reducer;
  reducer.name = "scatter";
  reducer.combine = [matches = scatter.matches, mode](const std::vector<Expr>& so_far, const std::vector<Expr>& next) {
    Expr changed = next[0];
    switch (mode) {
      case ScatterMode::kReplace: break;
      case ScatterMode::kAdd: changed = so_far[0] + next[0]; break;
      case ScatterMode::kMul: changed = so_far[0] * next[0]; break;
      case ScatterMode::kMin: changed = Min(so_far[0], next[0]); break;
      case ScatterMode::kMax: changed = Max(so_far[0], next[0]); break;
    }
    return std::vector<Expr>{MakeSelect(matches, changed, so_far[0])};
  };
  return te::Reduction{std::move(reducer), {scatter.update}, axes, {x(i)}};
}

}  // namespace

te::Tensor Gather(const te::Tensor& x, const te::Tensor& indices, int64_t axis, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  te::Shape shape(std::vector<Expr>(x.shape().begin(), x.shape().begin() + along));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + along + 1, x.shape().end());
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const std::vector<Expr> all = ToExprs(i);
        const auto inner = all.begin() + along, after = inner + indices.rank();
        std::vector<Expr> at(all.begin(), inner);
        at.push_back(Normalized(indices(std::vector<Expr>(inner, after)), x.dim(static_cast<int>(along))));
        at.insert(at.end(), after, all.end());
        return x(at);
      },
      name);
}

te::Tensor GatherElements(const te::Tensor& x, const te::Tensor& indices, int64_t axis, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  HONE_CHECK(x.rank() == indices.rank()) << name << ": indices of another rank";
  return te::Compute(
      indices.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = Normalized(indices(i), x.dim(static_cast<int>(along)));
        return x(at);
      },
      name);
}

te::Tensor GatherNd(const te::Tensor& x, const te::Tensor& indices, int64_t batch_dims, const std::string& name) {
  const int64_t depth = indices.dim(-1), leading = indices.rank() - 1;
  HONE_CHECK(batch_dims + depth <= x.rank() && batch_dims <= leading) << name << ": index tuples of " << depth;
  te::Shape shape(std::vector<Expr>(indices.shape().begin(), indices.shape().end() - 1));
  shape.insert(shape.end(), x.shape().begin() + batch_dims + depth, x.shape().end());
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const std::vector<Expr> all = ToExprs(i);
        std::vector<Expr> tuple(all.begin(), all.begin() + leading);
        tuple.emplace_back(0);
        std::vector<Expr> at(all.begin(), all.begin() + batch_dims);
        for (int64_t k = 0; k < depth; ++k) {
          tuple.back() = Expr(k);
          at.push_back(Normalized(indices(tuple), x.dim(static_cast<int>(batch_dims + k))));
        }
        at.insert(at.end(), all.begin() + leading, all.end());
        return x(at);
      },
      name);
}

te::Tensor ScatterNd(const te::Tensor& x, const te::Tensor& indices, const te::Tensor& updates, ScatterMode mode,
                     const std::string& name) {
  const int64_t depth = indices.dim(-1), leading = indices.rank() - 1;
  HONE_CHECK(depth <= x.rank() && updates.rank() == leading + x.rank() - depth && updates.dtype() == x.dtype())
      << name << ": updates do not match the indices";
  std::vector<te::ReduceAxis> axes;
  for (int64_t d = 0; d < leading; ++d) axes.emplace_back(indices.shape()[d], "u" + std::to_string(d));
  if (leading == 0) axes.emplace_back(Expr(1), "u");  // a single tuple
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> tuple(axes.begin(), axes.begin() + leading);
        std::vector<Expr> from = tuple;
        from.insert(from.end(), i.begin() + depth, i.end());
        tuple.emplace_back(0);
        Expr matches = True();
        for (int64_t k = 0; k < depth; ++k) {
          tuple.back() = Expr(k);
          matches = And(matches, Eq(Normalized(indices(tuple), x.dim(static_cast<int>(k))), i[k]));
        }
        return Combine(x, i, {matches, updates(from)}, mode, axes);
      },
      name);
}

te::Tensor ScatterElements(const te::Tensor& x, const te::Tensor& indices, const te::Tensor& updates, int64_t axis,
                           ScatterMode mode, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  HONE_CHECK(x.rank() == indices.rank() && updates.rank() == x.rank() && updates.dtype() == x.dtype())
      << name << ": updates do not match";
  const te::ReduceAxis u(indices.shape()[along], "u");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> from = ToExprs(i);
        from[along] = u;
        Expr inside = True();  // indices may cover less than x in the other dimensions
        for (int d = 0; d < x.rank(); ++d) {
          if (d != along && indices.dim(d) < x.dim(d)) inside = And(inside, i[d] < indices.dim(d));
        }
        const bool all = IsConst(inside, 1);
        const Expr hit = Eq(Normalized(indices(from), x.dim(static_cast<int>(along))), i[along]);
        const Expr update = updates(from);
        return Combine(x, i,
                       {all ? hit : IfThenElse(inside, hit, IntConst(0, kBool)),
                        all ? update : IfThenElse(inside, update, Const(0, x.dtype()))},
                       mode, {u});
      },
      name);
}

te::Tensor OneHot(const te::Tensor& indices, int64_t depth, const te::Tensor& values, int64_t axis,
                  const std::string& name) {
  const int64_t along = NormalizeAxis(axis, indices.rank() + 1);
  HONE_CHECK(values.rank() == 1 && values.dim(0) == 2) << name << ": values are {off, on}";
  te::Shape shape = indices.shape();
  shape.insert(shape.begin() + along, Expr(depth));
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at.erase(at.begin() + along);
        Expr index = indices(at);
        if (index.type().is_float()) index = MakeCast(kInt32, index);
        return MakeSelect(Eq(Normalized(index, depth), i[along]), values(1), values(0));
      },
      name);
}

te::Tensor Trilu(const te::Tensor& x, bool upper, int64_t k, const std::string& name) {
  HONE_CHECK(x.rank() >= 2) << name << ": no matrix";
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const Expr diagonal = Expr(i.back()) - i[i.size() - 2];
        return MakeSelect(upper ? diagonal >= Expr(k) : diagonal <= Expr(k), x(i), Const(0, x.dtype()));
      },
      name);
}

te::Tensor Arange(double start, double step, int64_t count, DType dtype, const std::string& name) {
  return te::Compute(
      {count}, [&](const te::Indices& i) { return MakeCast(dtype, i[0]) * Const(step, dtype) + Const(start, dtype); },
      name);
}

te::Tensor Full(const std::vector<int64_t>& shape, double value, DType dtype, const std::string& name) {
  return te::Compute(
      te::Shape(shape), [&](const te::Indices&) { return Const(value, dtype); }, name);
}

}  // namespace hone::topi
