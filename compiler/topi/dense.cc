#include "compiler/topi/dense.h"

#include <algorithm>
#include <numeric>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/product.h"

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
                       return te::Sum(Product(x(at), transpose_w ? w(i.back(), k) : w(k, i.back())), {k});
                     },
                     name, {axes, {}});
}

te::Tensor BatchMatmul(const te::Tensor& a, const te::Tensor& b, bool transpose_a, bool transpose_b,
                       const std::string& name) {
  HONE_CHECK(a.rank() >= 2 && b.rank() >= 2) << name << ": both sides must be matrices";
  const auto order = [](int rank, bool transposed) {
    std::vector<int64_t> dims(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    if (transposed) std::swap(dims.end()[-1], dims.end()[-2]);
    return dims;
  };
  return BatchMatmulInOrder(a, order(a.rank(), transpose_a), b, order(b.rank(), transpose_b),
                            order(std::max(a.rank(), b.rank()), false), name);
}

te::Tensor BatchMatmulInOrder(const te::Tensor& a, const std::vector<int64_t>& a_order, const te::Tensor& b,
                              const std::vector<int64_t>& b_order, const std::vector<int64_t>& result_order,
                              const std::string& name) {
  const auto in_order = [](const te::Tensor& t, const std::vector<int64_t>& order) {
    std::vector<Expr> dims;
    for (const int64_t d : order) dims.push_back(t.shape()[static_cast<size_t>(d)]);
    return dims;
  };
  const std::vector<Expr> a_shape = in_order(a, a_order), b_shape = in_order(b, b_order);
  HONE_CHECK(a_shape.size() >= 2 && b_shape.size() >= 2) << name << ": both sides must be matrices";
  HONE_CHECK(a.dim(static_cast<int>(a_order.back())) == b.dim(static_cast<int>(b_order.end()[-2])))
      << name << ": the inner sizes do not match";
  te::Shape shape = BroadcastShape(te::Shape(std::vector<Expr>(a_shape.begin(), a_shape.end() - 2)),
                                   te::Shape(std::vector<Expr>(b_shape.begin(), b_shape.end() - 2)));
  const size_t leading = shape.size();
  shape.push_back(a_shape.end()[-2]);
  shape.push_back(b_shape.back());
  const te::ReduceAxis k(a_shape.back(), "k");
  const std::vector<std::string> leading_axes = ProductAxes(leading);
  te::Shape result_shape = shape;
  std::vector<std::string> axes(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const size_t place = static_cast<size_t>(result_order[d]);
    result_shape[place] = shape[d];
    axes[place] = d < leading ? leading_axes[d] : d == leading ? "m" : "n";
  }
  return te::Compute(result_shape,
                     [&](const te::Indices& at_result) {
                       te::Indices i = at_result;
                       for (size_t d = 0; d < i.size(); ++d) i[d] = at_result[static_cast<size_t>(result_order[d])];
                       const auto access = [&](const te::Tensor& t, const std::vector<Expr>& dims,
                                               const std::vector<int64_t>& order, const Expr& row, const Expr& column) {
                         std::vector<Expr> at(dims.size());
                         const size_t batch = dims.size() - 2;
                         for (size_t d = 0; d < batch; ++d) {
                           const size_t place = leading - batch + d;
                           const bool repeated = IsConst(dims[d], 1) && !IsConst(shape[place], 1);
                           at[static_cast<size_t>(order[d])] = repeated ? IntConst(0, i[place].type()) : Expr(i[place]);
                         }
                         at[static_cast<size_t>(order[batch])] = row;
                         at[static_cast<size_t>(order[batch + 1])] = column;
                         return t(at);
                       };
                       const Expr m = i[leading], n = i[leading + 1];
                       return te::Sum(Product(access(a, a_shape, a_order, m, k), access(b, b_shape, b_order, k, n)),
                                      {k});
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
