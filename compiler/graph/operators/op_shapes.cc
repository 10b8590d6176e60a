#include "compiler/graph/operators/op_shapes.h"

#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {

OpInfo FloatFunction(std::string_view name, std::function<Expr(const Expr&)> f) {
  OpInfo op{.name = name, .kind = OpKind::kElementwise};
  op.infer = [name](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (!in[0].dtype.is_float()) return Refuse(name, " does not take elements of type ", ToText(in[0].dtype));
    return Types{in[0]};
  };
  op.lower = [f, name](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{topi::Unary(in[0], f, std::string(name))};
  };
  return op;
}

OpInfo IntFunction2(std::string_view name, std::function<Expr(const Expr&, const Expr&)> f) {
  OpInfo op{.name = name, .kind = OpKind::kElementwise};
  op.infer = [name](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    if (!in[0].dtype.is_int() || in[0].dtype != in[1].dtype)
      return Refuse(name, " of ", ToText(in[0]), " and ", ToText(in[1]));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastShapes(in[0].shape, in[1].shape));
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{topi::Binary(in[0], in[1], f, std::string(name))};
  };
  return op;
}

}  // namespace hone
