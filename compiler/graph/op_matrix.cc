// Matrix products.
#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/dense.h"

namespace hone {
namespace {

// x [M..., K], w [K, N] -> [M..., N]
OpInfo DenseOp() {
  OpInfo op{.name = "dense", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    if (!in[0].dtype.is_float() || in[0].dtype != in[1].dtype) {
      return Refuse("product of ", ToText(in[0]), " and ", ToText(in[1]), ": both must be of one floating type");
    }
    if (in[0].rank() < 1 || in[1].rank() != 2 || in[0].shape.back() != in[1].shape[0]) {
      return Refuse("the product of ", ToText(in[0]), " and ", ToText(in[1]), " does not exist");
    }
    TensorType out = in[0];
    out.shape.back() = in[1].shape[1];
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{topi::Dense(in[0], in[1], false, "dense")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan out) {
    return 2 * Count(out[0].shape) * static_cast<double>(in[1].shape[0]);
  };
  return op;
}

// a [..., M, K], b [..., K, N] -> [..., M, N], with transpose_a, transpose_b as 0 or 1; leading dimensions broadcast.
OpInfo BatchMatmulOp() {
  OpInfo op{.name = "batch_matmul", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    if (!in[0].dtype.is_float() || in[0].dtype != in[1].dtype) {
      return Refuse("product of ", ToText(in[0]), " and ", ToText(in[1]), ": both must be of one floating type");
    }
    if (in[0].rank() < 2 || in[1].rank() < 2)
      return Refuse("a product of vectors: ", ToText(in[0]), " and ", ToText(in[1]));
    std::vector<int64_t> a = in[0].shape, b = in[1].shape;
    if (IntAttr(attrs, "transpose_a") != 0) std::swap(a.end()[-1], a.end()[-2]);
    if (IntAttr(attrs, "transpose_b") != 0) std::swap(b.end()[-1], b.end()[-2]);
    if (a.end()[-1] != b.end()[-2]) {
      return Refuse("the product of ", ToText(in[0]), " and ", ToText(in[1]), " does not exist: the inner sizes are ",
                    a.end()[-1], " and ", b.end()[-2]);
    }
    const int64_t m = a.end()[-2], n = b.end()[-1];
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                          BroadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
    shape.push_back(m);
    shape.push_back(n);
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::BatchMatmul(in[0], in[1], IntAttr(attrs, "transpose_a") != 0,
                                         IntAttr(attrs, "transpose_b") != 0, "batch_matmul")};
  };
  op.flop = [](TypeSpan in, const Attrs& attrs, TypeSpan out) {
    return 2 * Count(out[0].shape) *
           static_cast<double>(IntAttr(attrs, "transpose_a") != 0 ? in[0].shape.end()[-2] : in[0].shape.end()[-1]);
  };
  return op;
}

}  // namespace

std::vector<OpInfo> MatrixOps() { return {DenseOp(), BatchMatmulOp()}; }

}  // namespace hone
