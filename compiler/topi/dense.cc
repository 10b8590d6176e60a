#include "compiler/topi/dense.h"

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/elementwise.h"

namespace hone::topi {
namespace {

std::vector<std::string> ProductAxes(size_t leading) {
  std::vector<std::string> names;
  for (size_t d = 0; d < leading; ++d) names.push_back("b" + std::to_string(d));
  return names;
}

}  // namespace

te::Tensor Dense(const te::Tensor& x, const te::Tensor& w, bool transpose_w, const std::string& name) {
  HONE_CHECK(x.rank() >= 1 && w.rank() == 2 && x.dim(-1) == w.dim(transpose_w ? 1 : 0))
      << name << ": the inner sizes do not match";
  const te::ReduceAxis k(x.shape().back(), "k");
  te::Shape shape = x.shape();
  shape.back() = w.shape()[transpose_w ? 0 : 1];
  std::vector<std::string> axes;
  if (x.rank() >= 2) {
    axes = ProductAxes(x.rank() - 2);
    axes.push_back("m");
  }
  axes.push_back("n");
  return te::Compute(shape,
                     [&](const te::Indices& i) {
                       std::vector<Expr> at = ToExprs(i);
                       at.back() = k;
                       return te::Sum(x(at) * (transpose_w ? w(i.back(), k) : w(k, i.back())), {k});
                     },
                     name, {axes, {}});
}

te::Tensor BatchMatmul(const te::Tensor& a, const te::Tensor& b, bool transpose_a, bool transpose_b,
                       const std::string& name) {
  HONE_CHECK(a.rank() >= 2 && b.rank() >= 2) << name << ": both sides must be matrices";
  HONE_CHECK(a.dim(transpose_a ? -2 : -1) == b.dim(transpose_b ? -1 : -2)) << name << ": the inner sizes do not match";
  const te::Shape a_leading(std::vector<Expr>(a.shape().begin(), a.shape().end() - 2));
  const te::Shape b_leading(std::vector<Expr>(b.shape().begin(), b.shape().end() - 2));
  te::Shape shape = BroadcastShape(a_leading, b_leading);
  const size_t leading = shape.size();
  shape.push_back(a.shape()[a.rank() - (transpose_a ? 1 : 2)]);
  shape.push_back(b.shape()[b.rank() - (transpose_b ? 2 : 1)]);
  const te::ReduceAxis k(a.shape()[a.rank() - (transpose_a ? 2 : 1)], "k");
  std::vector<std::string> axes = ProductAxes(leading);
  axes.push_back("m");
  axes.push_back("n");
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const auto access = [&](const te::Tensor& t, Expr row, Expr column) {
          std::vector<Expr> at;
          const int batch = t.rank() - 2;
          for (int d = 0; d < batch; ++d) {
            const size_t place = leading - batch + d;
            const bool repeated = IsConst(t.shape()[d], 1) && !IsConst(shape[place], 1);
            at.push_back(repeated ? IntConst(0, i[place].type()) : Expr(i[place]));
          }
          at.push_back(std::move(row));
          at.push_back(std::move(column));
          return t(at);
        };
        const Expr m = i[leading], n = i[leading + 1];
        return te::Sum(
            (transpose_a ? access(a, k, m) : access(a, m, k)) * (transpose_b ? access(b, n, k) : access(b, k, n)), {k});
      },
      name, {axes, {}});
}

te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  HONE_CHECK(a.rank() >= 1 && b.rank() >= 1) << name << ": a scalar has no matrix product";
  if (b.rank() == 2) return Dense(a, b, false, name);
  if (a.rank() >= 2 && b.rank() >= 2) return BatchMatmul(a, b, false, false, name);
  const bool row = a.rank() == 1;  // else b is a column
  HONE_CHECK(a.dim(-1) == b.dim(b.rank() == 1 ? 0 : -2)) << name << ": the inner sizes do not match";
  const te::ReduceAxis k(a.shape().back(), "k");
  te::Shape shape;
  if (row) {
    for (int d = 0; d < b.rank(); ++d) {
      if (b.rank() == 1 || d != b.rank() - 2) shape.push_back(b.shape()[d]);
    }
    if (b.rank() == 1) shape.clear();
  } else {
    shape = te::Shape(std::vector<Expr>(a.shape().begin(), a.shape().end() - 1));
  }
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        std::vector<Expr> at = ToExprs(i);
        if (!row) {
          at.push_back(k);
          return te::Sum(a(at) * b(k), {k});
        }
        at.insert(at.end() - (b.rank() == 1 ? 0 : 1), k);
        return te::Sum(a(k) * b(at), {k});
      },
      name);
}

}  // namespace hone::topi
