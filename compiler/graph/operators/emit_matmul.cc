#include "compiler/graph/operators/emit_matmul.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<int> EmitMatmul(NodeContext& c, int a, int b) {
  if (c.rank(a) == 0 || c.rank(b) == 0) return Unsupported("a product of scalars");
  // A vector is a row on the left and a column on the right; its dimension vanishes afterwards.
  const bool row = c.rank(a) == 1, column = c.rank(b) == 1;
  if (row) { HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {1, c.shape(a)[0]})); }
  if (column) { HONE_ASSIGN_OR_RETURN(b, c.Reshape(b, {c.shape(b)[0], 1})); }
  const std::vector<int64_t> sa = c.shape(a), sb = c.shape(b);
  int y = -1;
  std::vector<int64_t> shape;
  if (sb.size() == 2) {
    if (sa.back() != sb[0])
      return Unsupported(
          absl::StrCat("the product of ", ToText(c.type(a)), " and ", ToText(c.type(b)), " does not exist"));
    HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {ProductOfExtents(sa, 0, sa.size() - 1), sa.back()}));
    HONE_ASSIGN_OR_RETURN(y, c.Emit("dense", {a, b}));
    shape.assign(sa.begin(), sa.end() - 1);
    shape.push_back(sb.back());
  } else {
    // Leading dimensions become one where that keeps their pairing: equal ones, or all of them 1 on one side.
    const int64_t na = ProductOfExtents(sa, 0, sa.size() - 2), nb = ProductOfExtents(sb, 0, sb.size() - 2);
    const std::vector<int64_t> la(sa.begin(), sa.end() - 2), lb(sb.begin(), sb.end() - 2);
    const bool one = na == 1 || nb == 1;
    if (la == lb || one) {
      HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {na, sa.end()[-2], sa.end()[-1]}));
      HONE_ASSIGN_OR_RETURN(b, c.Reshape(b, {nb, sb.end()[-2], sb.end()[-1]}));
      const size_t rank = std::max(la.size(), lb.size());
      shape.assign(rank, 1);  // broadcast, aligned at the end; one side is all 1 or both are equal
      for (size_t i = 0; i < rank; ++i) {
        const int64_t da = i < la.size() ? la.end()[-1 - static_cast<int64_t>(i)] : 1;
        const int64_t db = i < lb.size() ? lb.end()[-1 - static_cast<int64_t>(i)] : 1;
        shape[rank - 1 - i] = std::max(da, db);
      }
      shape.push_back(sa.end()[-2]);
      shape.push_back(sb.end()[-1]);
    }
    HONE_ASSIGN_OR_RETURN(y, c.Emit("batch_matmul", {a, b}));
    if (shape.empty()) shape = c.shape(y);
  }
  if (column) shape.pop_back();
  if (row) shape.erase(column ? shape.end() - 1 : shape.end() - 2);
  return c.Reshape(y, shape);
}

}  // namespace hone
