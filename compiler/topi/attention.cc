#include "compiler/topi/attention.h"

#include <cmath>

#include "compiler/support/check.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/norm.h"

namespace hone::topi {

te::Tensor Attention(const te::Tensor& q, const te::Tensor& k, const te::Tensor& v, const te::Tensor& mask,
                     std::optional<double> scale, const std::string& name) {
  HONE_CHECK(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2) << name << ": queries, keys and values are matrices";
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q.dim(-1))));
  const te::Tensor scores = BatchMatmul(q, k, false, true, name + "_scores");
  const te::Shape shape = mask ? BroadcastShape(scores.shape(), mask.shape()) : scores.shape();
  const te::Tensor scaled = te::Compute(
      shape,
      [&](const te::Indices& i) -> Expr {
        const Expr score = BroadcastAccess(scores, i, shape) * Const(factor, q.dtype());
        if (!mask) return score;
        const Expr m = BroadcastAccess(mask, i, shape);
        return mask.dtype().is_bool() ? MakeSelect(m, score, te::LeastValue(q.dtype())) : score + m;
      },
      name + "_scaled");
  return BatchMatmul(Softmax(scaled, -1, name + "_softmax"), v, false, false, name);
}

}  // namespace hone::topi
