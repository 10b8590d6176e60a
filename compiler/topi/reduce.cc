#include "compiler/topi/reduce.h"

#include <functional>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/elementwise.h"

namespace hone::topi {
namespace {

using Combine = te::Reduction (*)(Expr, std::vector<te::ReduceAxis>);
using Map = std::function<Expr(Expr)>;

struct Plan {
  std::vector<int64_t> axes;  // normalised
  te::Shape shape;            // of the result
  std::vector<te::ReduceAxis> reduce;
  bool keepdims = false;

  Plan(const te::Tensor& x, const Axes& wanted, bool keep) : keepdims(keep) {
    if (wanted.empty()) {
      for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
    } else {
      axes = NormalizeAxes(wanted, x.rank());
    }
    size_t next = 0;
    for (int d = 0; d < x.rank(); ++d) {
      if (next < axes.size() && axes[next] == d) {
        reduce.emplace_back(x.shape()[d], "k" + std::to_string(next));
        ++next;
        if (keepdims) shape.push_back(1);
      } else {
        shape.push_back(x.shape()[d]);
      }
    }
  }

  // The element of x for a result at `i`: reduced dimensions are at their reduce axes.
  std::vector<Expr> Source(const te::Indices& i) const {
    std::vector<Expr> at;
    size_t next = 0, kept = 0;
    const size_t rank = i.size() + (keepdims ? 0 : axes.size());
    for (size_t d = 0; d < rank; ++d) {
      if (next < axes.size() && axes[next] == static_cast<int64_t>(d)) {
        at.push_back(reduce[next++]);
        if (keepdims) ++kept;
      } else {
        at.push_back(i[kept++]);
      }
    }
    return at;
  }
};

te::Tensor Reduce(const te::Tensor& x, const Axes& axes, bool keepdims, Combine combine, const Map& map,
                  const std::string& name) {
  const Plan plan(x, axes, keepdims);
  if (plan.reduce.empty()) return Unary(x, map, name);  // a scalar has nothing to gather
  return te::Compute(
      plan.shape, [&](const te::Indices& i) { return combine(map(x(plan.Source(i))), plan.reduce); }, name);
}

Expr Same(Expr e) { return e; }
Expr Square(Expr e) { return e * e; }

double Count(const te::Tensor& x, const Axes& axes) {
  double count = 1;
  for (const int64_t axis : Plan(x, axes, false).axes) count *= static_cast<double>(x.dim(static_cast<int>(axis)));
  return count;
}

te::Tensor ArgBest(const te::Tensor& x, int64_t axis, bool keepdims, bool greatest, bool last,
                   const std::string& name) {
  const Plan plan(x, {axis}, keepdims);
  const te::ReduceAxis& k = plan.reduce[0];
  const te::Tensor index =
      te::ComputeTuple(plan.shape,
                       [&](const te::Indices& i) {
                         const Expr value = x(plan.Source(i));
                         return greatest ? te::ArgMax(value, k, {k}, last) : te::ArgMin(value, k, {k}, last);
                       },
                       {name + "_value", name + "_index"})[1];
  return Cast(index, kInt64, name);
}

}  // namespace

te::Tensor ReduceSum(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Reduce(x, axes, keepdims, te::Sum, Same, name);
}
te::Tensor ReduceMax(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Reduce(x, axes, keepdims, te::Max, Same, name);
}
te::Tensor ReduceMin(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Reduce(x, axes, keepdims, te::Min, Same, name);
}
te::Tensor ReduceProd(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Reduce(x, axes, keepdims, te::Prod, Same, name);
}
te::Tensor ReduceMean(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  const double count = Count(x, axes);
  const te::Tensor sum = ReduceSum(x, axes, keepdims, name + "_sum");
  return Unary(
      sum, [count](Expr e) { return e / Const(count, e.type()); }, name);
}
te::Tensor ReduceL1(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  const auto magnitude = [](Expr e) {
    return e.type().is_float() ? MakeCall("abs", {e}) : Max(e, Const(0, e.type()) - e);
  };
  return Reduce(x, axes, keepdims, te::Sum, magnitude, name);
}
te::Tensor ReduceL2(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Sqrt(ReduceSumSquare(x, axes, keepdims, name + "_sum_square"), name);
}
te::Tensor ReduceSumSquare(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  return Reduce(x, axes, keepdims, te::Sum, Square, name);
}

te::Tensor ReduceLogSumExp(const te::Tensor& x, const Axes& axes, bool keepdims, const std::string& name) {
  const te::Tensor top = ReduceMax(x, axes, true, name + "_max");
  const te::Tensor e = Binary(
      x, top, [](Expr a, Expr b) { return MakeCall("exp", {a - b}); }, name + "_exp");
  const te::Tensor sum = ReduceSum(e, axes, keepdims, name + "_sum");
  const Plan plan(x, axes, keepdims);
  return te::Compute(
      plan.shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = plan.Source(i);  // of `top`, whose reduced dimensions have size 1
        for (const int64_t axis : plan.axes) at[axis] = Expr(0);
        return MakeCall("log", {sum(i)}) + top(at);
      },
      name);
}

te::Tensor ArgMax(const te::Tensor& x, int64_t axis, bool keepdims, bool select_last, const std::string& name) {
  return ArgBest(x, axis, keepdims, true, select_last, name);
}
te::Tensor ArgMin(const te::Tensor& x, int64_t axis, bool keepdims, bool select_last, const std::string& name) {
  return ArgBest(x, axis, keepdims, false, select_last, name);
}

te::Tensor CumSum(const te::Tensor& x, int64_t axis, bool exclusive, bool reverse, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  const te::ReduceAxis k(x.shape()[along], "k");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = k;
        const Expr here = i[along];
        const Expr counts = reverse ? (exclusive ? k > here : k >= here) : (exclusive ? k < here : k <= here);
        return te::Sum(MakeSelect(counts, x(at), Const(0, x.dtype())), {k});
      },
      name);
}

// Each element's rank is the number of elements that come before it; the result at place r is the element of rank r. n
// * n comparisons: simple, parallel and exact; meant for rows of up to a few thousand.
TopKResult TopK(const te::Tensor& x, int64_t k, int64_t axis, bool largest, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  HONE_CHECK(k >= 0 && k <= x.dim(along)) << name << ": the " << k << " best of " << x.dim(along);
  const te::ReduceAxis j(x.shape()[along], "j");
  const te::Tensor rank = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = j;
        const Expr mine = x(i), other = x(at);
        const Expr before = Or(largest ? other > mine : other < mine, And(Eq(other, mine), j < i[along]));
        return te::Sum(MakeSelect(before, IntConst(1), IntConst(0)), {j});
      },
      name + "_rank");
  te::Shape shape = x.shape();
  shape[along] = k;
  const te::ReduceAxis p(x.shape()[along], "p");
  const te::Tensor place = te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = p;
        return te::Sum(MakeSelect(Eq(rank(at), i[along]), MakeCast(kInt32, p), IntConst(0)), {p});
      },
      name + "_place");
  const te::Tensor values = te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = place(i);
        return x(at);
      },
      name + "_values");
  return {values, Cast(place, kInt64, name + "_indices")};
}

}  // namespace hone::topi
