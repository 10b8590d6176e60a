#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "perm": y.shape[d] = x.shape[perm[d]].
OpInfo TransposeOp() {
  OpInfo op{.name = "transpose", .kind = OpKind::kInjective};
  op.rearranges = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> perm = IntsAttr(attrs, "perm");
    std::vector<int64_t> sorted = perm, identity(in[0].rank());
    std::sort(sorted.begin(), sorted.end());
    std::iota(identity.begin(), identity.end(), 0);
    if (sorted != identity)
      return Refuse("[", absl::StrJoin(perm, ", "), "] is not a permutation of ", in[0].rank(), " axes");
    TensorType out{in[0].dtype, {}};
    for (const int64_t axis : perm) out.shape.push_back(in[0].shape[axis]);
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Transpose(in[0], IntsAttr(attrs, "perm"), "transpose")};
  };
  return op;
}

Outputs Transpose(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Ints reversed(c.rank(c.input(0)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return One(c.Transpose(c.input(0), c.IntsAttr("perm", reversed)));
}

}  // namespace

HONE_OPERATORS(transpose) {
  return {{.graph = {TransposeOp()}, .onnx = {{"Transpose", 1, Transpose, "", false, NarrowElements::kMoves}}}};
}

}  // namespace hone
