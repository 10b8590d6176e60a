#include "compiler/topi/norm.h"

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/reduce.h"

namespace hone::topi {
namespace {

std::vector<int64_t> AxesFrom(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t d = NormalizeAxis(axis, rank); d < rank; ++d) axes.push_back(d);
  return axes;
}

// 1 / sqrt(sum / count + epsilon)
te::Tensor ReciprocalDeviation(const te::Tensor& sum, double count, double epsilon, const std::string& name) {
  return Unary(
      sum, [=](Expr e) { return MakeCall("rsqrt", {e / Const(count, e.type()) + Const(epsilon, e.type())}); }, name);
}

double Elements(const te::Tensor& x, const std::vector<int64_t>& axes) {
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(x.dim(static_cast<int>(axis)));
  return count;
}

te::Tensor SquaredDistance(const te::Tensor& x, const te::Tensor& mean, const std::vector<int64_t>& axes,
                           const std::string& name) {
  std::vector<te::ReduceAxis> reduce;
  for (size_t k = 0; k < axes.size(); ++k) reduce.emplace_back(x.shape()[axes[k]], "k" + std::to_string(k));
  return te::Compute(
      mean.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        for (size_t k = 0; k < axes.size(); ++k) at[axes[k]] = reduce[k];
        const Expr distance = x(at) - mean(i);
        return te::Sum(distance * distance, reduce);
      },
      name);
}

// The element of a per-channel vector at index `axis`.
Expr Along(const te::Tensor& v, const te::Indices& i, int64_t axis) { return v(i[axis]); }

}  // namespace

te::Tensor Softmax(const te::Tensor& x, int64_t axis, const std::string& name, std::optional<DType> step) {
  const auto rounded = [step](const Expr& e) { return step.has_value() ? MakeCast(e.type(), MakeCast(*step, e)) : e; };
  const te::Tensor top = ReduceMax(x, {axis}, true, name + "_max");
  const te::Tensor e = Binary(
      x, top, [&](Expr a, Expr b) { return rounded(MakeCall("exp", {a - b})); }, name + "_exp");
  const te::Tensor sum = ReduceSum(e, {axis}, true, name + "_sum");
  // One division for a row: that of vectors takes as long as all of the exponential. The sum is between 1 and the
  // number of terms, so that its reciprocal neither overflows nor is denormal.
  const te::Tensor inverse = Unary(
      sum, [&](Expr s) { return Const(1, s.type()) / rounded(s); }, name + "_inverse");
  return Multiply(e, inverse, name);
}

te::Tensor LogSoftmax(const te::Tensor& x, int64_t axis, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  const te::Tensor top = ReduceMax(x, {along}, true, name + "_max");
  const te::ReduceAxis k(x.shape()[along], "k");
  const te::Tensor sum = te::Compute(
      top.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = k;
        return te::Sum(MakeCall("exp", {x(at) - top(i)}), {k});
      },
      name + "_sum");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        return x(i) - BroadcastAccess(top, i, x.shape()) - MakeCall("log", {BroadcastAccess(sum, i, x.shape())});
      },
      name);
}

LayerNormResult LayerNormAll(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t axis,
                             double epsilon, const std::string& name) {
  const std::vector<int64_t> axes = AxesFrom(axis, x.rank());
  const double count = Elements(x, axes);
  const te::Tensor sum = ReduceSum(x, axes, true, name + "_sum");
  const te::Tensor mean = Unary(
      sum, [count](Expr e) { return e / Const(count, e.type()); }, name + "_mean");
  const te::Tensor squares = SquaredDistance(x, mean, axes, name + "_var_sum");
  const te::Tensor rstd = ReciprocalDeviation(squares, count, epsilon, name + "_rstd");
  const te::Tensor y = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const Expr normal = (x(i) - BroadcastAccess(mean, i, x.shape())) * BroadcastAccess(rstd, i, x.shape()) *
                            BroadcastAccess(scale, i, x.shape());
        return bias ? normal + BroadcastAccess(bias, i, x.shape()) : normal;
      },
      name);
  return {y, mean, rstd};
}

te::Tensor LayerNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t axis, double epsilon,
                     const std::string& name) {
  return LayerNormAll(x, scale, bias, axis, epsilon, name).y;
}

te::Tensor RmsNorm(const te::Tensor& x, const te::Tensor& scale, int64_t axis, double epsilon,
                   const std::string& name) {
  const std::vector<int64_t> axes = AxesFrom(axis, x.rank());
  const te::Tensor squares = ReduceSumSquare(x, axes, true, name + "_sum_square");
  const te::Tensor rstd = ReciprocalDeviation(squares, Elements(x, axes), epsilon, name + "_rstd");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        return x(i) * BroadcastAccess(rstd, i, x.shape()) * BroadcastAccess(scale, i, x.shape());
      },
      name);
}

te::Tensor GroupNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t groups,
                     double epsilon, const std::string& name) {
  const int64_t channels = x.dim(-1);
  HONE_CHECK(x.rank() >= 2 && channels % groups == 0)
      << name << ": " << channels << " channels in " << groups << " groups";
  const int64_t width = channels / groups;
  std::vector<te::ReduceAxis> reduce;
  double count = static_cast<double>(width);
  for (int d = 1; d < x.rank() - 1; ++d) {
    reduce.emplace_back(x.shape()[d], "k" + std::to_string(d - 1));
    count *= static_cast<double>(x.dim(d));
  }
  if (width > 1 || reduce.empty()) reduce.emplace_back(Expr(width), "kc");
  const size_t spatial = x.rank() - 2;
  const te::Shape stats = {x.shape()[0], groups};
  const auto element = [&](const te::Indices& i) {
    std::vector<Expr> at = {i[0]};
    for (size_t d = 0; d < spatial; ++d) at.push_back(reduce[d]);
    at.push_back(reduce.size() == spatial ? Expr(i[1]) : i[1] * width + reduce[spatial]);
    return x(at);
  };
  const te::Tensor sum = te::Compute(
      stats, [&](const te::Indices& i) { return te::Sum(element(i), reduce); }, name + "_sum");
  const te::Tensor mean = Unary(
      sum, [count](Expr e) { return e / Const(count, e.type()); }, name + "_mean");
  const te::Tensor squares = te::Compute(
      stats,
      [&](const te::Indices& i) {
        const Expr distance = element(i) - mean(i);
        return te::Sum(distance * distance, reduce);
      },
      name + "_var_sum");
  const te::Tensor rstd = ReciprocalDeviation(squares, count, epsilon, name + "_rstd");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const Expr group = width == 1 ? Expr(i.back()) : FloorDiv(i.back(), width);
        return (x(i) - mean(i[0], group)) * rstd(i[0], group) * scale(i.back()) + bias(i.back());
      },
      name);
}

te::Tensor ScaleShift(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& shift, int64_t axis,
                      const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  return te::Compute(
      x.shape(), [&](const te::Indices& i) { return x(i) * Along(scale, i, along) + Along(shift, i, along); }, name);
}

te::Tensor BatchNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, const te::Tensor& mean,
                     const te::Tensor& var, int64_t axis, double epsilon, const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const Expr rstd = MakeCall("rsqrt", {Along(var, i, along) + Const(epsilon, x.dtype())});
        return (x(i) - Along(mean, i, along)) * (rstd * Along(scale, i, along)) + Along(bias, i, along);
      },
      name);
}

te::Tensor Lrn(const te::Tensor& x, int64_t size, int64_t axis, double alpha, double beta, double bias,
               const std::string& name) {
  const int64_t along = NormalizeAxis(axis, x.rank());
  const int64_t before = (size - 1) / 2, channels = x.dim(static_cast<int>(along));
  const te::ReduceAxis k{Expr(size), "k"};
  const te::Tensor squares = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        at[along] = i[along] + k - before;
        const Expr value = x(at);
        return te::Sum(IfThenElse(And(at[along] >= 0, at[along] < channels), value * value, Const(0, x.dtype())), {k});
      },
      name + "_sum_square");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const Expr base = squares(i) * Const(alpha / static_cast<double>(size), x.dtype()) + Const(bias, x.dtype());
        return x(i) * MakeCall("pow", {base, Const(-beta, x.dtype())});
      },
      name);
}

}  // namespace hone::topi
