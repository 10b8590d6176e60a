// Matrix products.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/emit_matmul.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/dense.h"

namespace hone {
namespace {

// x [M..., K], w [K, N] -> [M..., N]
OpInfo DenseOp() {
  OpInfo op{.name = "dense", .kind = OpKind::kAnchor};
  op.is_matrix_product = op.multiplies_integers = op.weight_has_channels = true;
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_ASSIGN_OR_RETURN(const DType sum, SumOfProducts(in[0], in[1]));
    if (in[0].rank() < 1 || in[1].rank() != 2 || in[0].shape.back() != in[1].shape[0]) {
      return Refuse("the product of ", ToText(in[0]), " and ", ToText(in[1]), " does not exist");
    }
    TensorType out{sum, in[0].shape};
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

// a [..., M, K], b [..., K, N] -> [..., M, N]; leading dimensions broadcast. "a_order", "b_order" and "result_order"
// say where the dimensions of the matrices are found in the tensors: dimension d is dimension order[d] of the tensor;
// absent: as they are.
std::vector<int64_t> OrderOf(const Attrs& attrs, const char* name, int rank) {
  std::vector<int64_t> as_it_is(static_cast<size_t>(rank));
  std::iota(as_it_is.begin(), as_it_is.end(), 0);
  return IntsAttr(attrs, name, as_it_is);
}

absl::StatusOr<std::vector<int64_t>> CheckedOrder(const Attrs& attrs, const char* name, int rank) {
  const std::vector<int64_t> order = OrderOf(attrs, name, rank);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == OrderOf({}, "", rank)) return order;
  return Refuse(name, " [", absl::StrJoin(order, ", "), "] is not an order of ", rank, " dimensions");
}

absl::StatusOr<std::vector<int64_t>> ShapeInOrder(const TensorType& type, const Attrs& attrs, const char* name) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> order, CheckedOrder(attrs, name, type.rank()));
  std::vector<int64_t> shape;
  for (const int64_t d : order) shape.push_back(type.shape[static_cast<size_t>(d)]);
  return shape;
}

OpInfo BatchMatmulOp() {
  OpInfo op{.name = "batch_matmul", .kind = OpKind::kAnchor};
  op.is_matrix_product = op.multiplies_integers = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_ASSIGN_OR_RETURN(const DType sum, SumOfProducts(in[0], in[1]));
    if (in[0].rank() < 2 || in[1].rank() < 2)
      return Refuse("a product of vectors: ", ToText(in[0]), " and ", ToText(in[1]));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> a, ShapeInOrder(in[0], attrs, "a_order"));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> b, ShapeInOrder(in[1], attrs, "b_order"));
    if (a.end()[-1] != b.end()[-2]) {
      return Refuse("the product of ", ToText(in[0]), " and ", ToText(in[1]), " does not exist: the inner sizes are ",
                    a.end()[-1], " and ", b.end()[-2]);
    }
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                          BroadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
    shape.push_back(a.end()[-2]);
    shape.push_back(b.end()[-1]);
    std::vector<int64_t> result(shape.size());
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> order,
                          CheckedOrder(attrs, "result_order", static_cast<int>(shape.size())));
    for (size_t d = 0; d < shape.size(); ++d) result[static_cast<size_t>(order[d])] = shape[d];
    return Types{{sum, std::move(result)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan out) {
    return std::vector{topi::BatchMatmulInOrder(in[0], OrderOf(attrs, "a_order", in[0].rank()), in[1],
                                                OrderOf(attrs, "b_order", in[1].rank()),
                                                OrderOf(attrs, "result_order", out[0].rank()), "batch_matmul")};
  };
  op.flop = [](TypeSpan in, const Attrs& attrs, TypeSpan out) {
    const int64_t inner = OrderOf(attrs, "a_order", in[0].rank()).back();
    return 2 * Count(out[0].shape) * static_cast<double>(in[0].shape[static_cast<size_t>(inner)]);
  };
  return op;
}

Outputs MatMul(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const int y, EmitMatmul(c, c.input(0), c.input(1)));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(matmul) { return {{.graph = {DenseOp(), BatchMatmulOp()}, .onnx = {{"MatMul", 1, MatMul, "", true}}}}; }

}  // namespace hone
