#include "compiler/graph/operators/elementwise/elementwise.h"

#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

absl::Status CheckType(std::string_view op, DType type, Accepts accepts) {
  const bool fits = accepts == Accepts::kAny || (accepts == Accepts::kFloat && type.is_float()) ||
                    (accepts == Accepts::kBool && type.is_bool()) || (accepts == Accepts::kInt && type.is_int()) ||
                    (accepts == Accepts::kNumber && !type.is_bool());
  if (fits) return absl::OkStatus();
  return Refuse(op, " does not take elements of type ", ToText(type));
}

}  // namespace

OpInfo UnaryFunction(std::string_view name, Accepts accepts,
                     std::function<te::Tensor(const te::Tensor&, const Attrs&)> f, std::optional<DType> result) {
  OpInfo op{.name = name, .kind = OpKind::kElementwise};
  op.infer = [name, accepts, result](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    HONE_RETURN_IF_ERROR(CheckType(name, in[0].dtype, accepts));
    return Types{{result.value_or(in[0].dtype), in[0].shape}};
  };
  op.lower = [f](TensorSpan in, const Attrs& attrs, TypeSpan) { return std::vector{f(in[0], attrs)}; };
  return op;
}

OpInfo UnaryFunction(std::string_view name, Accepts accepts, te::Tensor (*f)(const te::Tensor&, const std::string&),
                     std::optional<DType> result) {
  return UnaryFunction(
      name, accepts, [f, name](const te::Tensor& x, const Attrs&) { return f(x, std::string(name)); }, result);
}

OpInfo FloatFunction(std::string_view name, std::function<Expr(const Expr&)> f) {
  return UnaryFunction(name, Accepts::kFloat,
                       [f, name](const te::Tensor& x, const Attrs&) { return topi::Unary(x, f, std::string(name)); });
}

OpInfo BinaryFunction(std::string_view name, Accepts accepts,
                      te::Tensor (*f)(const te::Tensor&, const te::Tensor&, const std::string&),
                      std::optional<DType> result) {
  OpInfo op{.name = name, .kind = OpKind::kElementwise};
  op.infer = [name, accepts, result](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckType(name, in[0].dtype, accepts));
    if (in[0].dtype != in[1].dtype) {
      return Refuse(name, " of different types: ", ToText(in[0]), " and ", ToText(in[1]));
    }
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastShapes(in[0].shape, in[1].shape));
    return Types{{result.value_or(in[0].dtype), std::move(shape)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{f(in[0], in[1], std::string(name))};
  };
  return op;
}

OpInfo Commutative(OpInfo op) {
  op.commutative = true;
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

Outputs ImportAs(NodeContext& c, int inputs, std::string_view op, Attrs attrs) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(inputs, inputs));
  return One(c.Emit(op, c.inputs(), std::move(attrs)));
}

}  // namespace hone
