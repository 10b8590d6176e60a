// One element in, one element out; inputs broadcast.
#include <limits>

#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

enum class Accepts : uint8_t { kAny, kFloat, kBool, kInt, kNumber };  // kNumber: everything but bool

absl::Status CheckType(std::string_view op, DType type, Accepts accepts) {
  const bool fits = accepts == Accepts::kAny || (accepts == Accepts::kFloat && type.is_float()) ||
                    (accepts == Accepts::kBool && type.is_bool()) || (accepts == Accepts::kInt && type.is_int()) ||
                    (accepts == Accepts::kNumber && !type.is_bool());
  if (fits) return absl::OkStatus();
  return Refuse(op, " does not take elements of type ", ToText(type));
}

using UnaryFn = std::function<te::Tensor(const te::Tensor&, const Attrs&)>;

OpInfo UnaryFunction(std::string_view name, Accepts accepts, UnaryFn f, std::optional<DType> result = std::nullopt) {
  OpInfo op{.name = name, .kind = OpKind::kElementwise};
  op.infer = [name, accepts, result](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    HONE_RETURN_IF_ERROR(CheckType(name, in[0].dtype, accepts));
    return Types{{result.value_or(in[0].dtype), in[0].shape}};
  };
  op.lower = [f](TensorSpan in, const Attrs& attrs, TypeSpan) { return std::vector{f(in[0], attrs)}; };
  return op;
}

// For the functions of topi that take a tensor and a name alone.
OpInfo Simple(std::string_view name, Accepts accepts, te::Tensor (*f)(const te::Tensor&, const std::string&),
              std::optional<DType> result = std::nullopt) {
  return UnaryFunction(
      name, accepts, [f, name](const te::Tensor& x, const Attrs&) { return f(x, std::string(name)); }, result);
}

OpInfo BinaryFunction(std::string_view name, Accepts accepts,
                      te::Tensor (*f)(const te::Tensor&, const te::Tensor&, const std::string&),
                      std::optional<DType> result = std::nullopt) {
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

OpInfo BitOp(std::string_view name, BinaryOp bit_op) {
  OpInfo op = BinaryFunction(name, Accepts::kInt, nullptr);
  op.lower = [name, bit_op](TensorSpan in, const Attrs&, TypeSpan) {
    const auto apply = [bit_op](Expr a, Expr b) { return MakeBinary(bit_op, a, b); };
    return std::vector{topi::Binary(in[0], in[1], apply, std::string(name))};
  };
  return op;
}

OpInfo CastOp() {
  OpInfo op{.name = "cast", .kind = OpKind::kElementwise};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::string text = StringAttr(attrs, "to");
    const std::optional<DType> to = ParseDType(text);
    if (!to.has_value()) return Refuse("cast to an unknown type \"", text, "\"");
    return Types{{*to, in[0].shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Cast(in[0], *ParseDType(StringAttr(attrs, "to")), "cast")};
  };
  return op;
}

OpInfo WhereOp() {
  OpInfo op{.name = "where", .kind = OpKind::kElementwise};
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
    if (!in[0].dtype.is_bool()) return Refuse("where: the condition is ", ToText(in[0]), ", not bool");
    if (in[1].dtype != in[2].dtype) return Refuse("where of different types: ", ToText(in[1]), " and ", ToText(in[2]));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastShapes(in[0].shape, in[1].shape));
    HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, in[2].shape));
    return Types{{in[1].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{topi::Where(in[0], in[1], in[2], "where")};
  };
  return op;
}

OpInfo PreluOp() {
  OpInfo op = BinaryFunction("prelu", Accepts::kFloat, topi::Prelu);
  const auto infer = op.infer;
  op.infer = [infer](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_ASSIGN_OR_RETURN(Types types, infer(in, attrs));
    if (types[0].shape != in[0].shape)
      return Refuse("prelu: the slope ", ToText(in[1]), " does not broadcast to ", ToText(in[0]));
    return types;
  };
  return op;
}

// x ^ y: a constant exponent is the attribute "exponent" and is expanded into products where it is a small integer.
OpInfo PowScalarOp() {
  return UnaryFunction("pow_scalar", Accepts::kFloat, [](const te::Tensor& x, const Attrs& attrs) {
    return topi::PowerScalar(x, FloatAttr(attrs, "exponent"), "power");
  });
}

}  // namespace

std::vector<OpInfo> ElementwiseOps() {
  constexpr Accepts kAny = Accepts::kAny, kFloat = Accepts::kFloat, kIsBool = Accepts::kBool,
                    kNumber = Accepts::kNumber;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      Simple("identity", kAny, topi::Identity),
      Simple("relu", kNumber, topi::Relu),
      Simple("sigmoid", kFloat, topi::Sigmoid),
      Simple("silu", kFloat, topi::Silu),
      Simple("tanh", kFloat, topi::Tanh),
      Simple("gelu", kFloat, topi::Gelu),
      Simple("gelu_tanh", kFloat, topi::GeluTanh),
      Simple("hard_swish", kFloat, topi::HardSwish),
      Simple("softplus", kFloat, topi::Softplus),
      Simple("exp", kFloat, topi::Exp),
      Simple("log", kFloat, topi::Log),
      Simple("sqrt", kFloat, topi::Sqrt),
      Simple("rsqrt", kFloat, topi::Rsqrt),
      Simple("reciprocal", kFloat, topi::Reciprocal),
      Simple("erf", kFloat, topi::Erf),
      Simple("sin", kFloat, topi::Sin),
      Simple("cos", kFloat, topi::Cos),
      Simple("floor", kFloat, topi::Floor),
      Simple("ceil", kFloat, topi::Ceil),
      Simple("round", kFloat, topi::Round),
      Simple("abs", kNumber, topi::Abs),
      Simple("negative", kNumber, topi::Negative),
      Simple("sign", kNumber, topi::Sign),
      Simple("isnan", kFloat, topi::IsNan, kBool),
      Simple("isinf", kFloat, topi::IsInf, kBool),
      Simple("not", kIsBool, topi::LogicalNot),
      UnaryFunction("clip", kNumber,
                    [](const te::Tensor& x, const Attrs& a) {
                      return topi::Clip(x, FloatAttr(a, "min", -kInfinity), FloatAttr(a, "max", kInfinity), "clip");
                    }),
      UnaryFunction(
          "leaky_relu", kFloat,
          [](const te::Tensor& x, const Attrs& a) { return topi::LeakyRelu(x, FloatAttr(a, "alpha"), "leaky_relu"); }),
      UnaryFunction("elu", kFloat,
                    [](const te::Tensor& x, const Attrs& a) { return topi::Elu(x, FloatAttr(a, "alpha"), "elu"); }),
      UnaryFunction("hard_sigmoid", kFloat,
                    [](const te::Tensor& x, const Attrs& a) {
                      return topi::HardSigmoid(x, FloatAttr(a, "alpha"), FloatAttr(a, "beta"), "hard_sigmoid");
                    }),
      PowScalarOp(),
      CastOp(),
      BinaryFunction("add", kNumber, topi::Add),
      BinaryFunction("subtract", kNumber, topi::Subtract),
      BinaryFunction("multiply", kNumber, topi::Multiply),
      BinaryFunction("divide", kNumber, topi::Divide),
      BinaryFunction("mod", kNumber, topi::Mod),
      BinaryFunction("fmod", kNumber, topi::Fmod),
      BinaryFunction("maximum", kNumber, topi::Maximum),
      BinaryFunction("minimum", kNumber, topi::Minimum),
      BinaryFunction("power", kFloat, topi::Power),
      BinaryFunction("equal", kAny, topi::Equal, kBool),
      BinaryFunction("not_equal", kAny, topi::NotEqual, kBool),
      BinaryFunction("less", kNumber, topi::Less, kBool),
      BinaryFunction("less_equal", kNumber, topi::LessEqual, kBool),
      BinaryFunction("greater", kNumber, topi::Greater, kBool),
      BinaryFunction("greater_equal", kNumber, topi::GreaterEqual, kBool),
      BinaryFunction("and", kIsBool, topi::LogicalAnd),
      BinaryFunction("or", kIsBool, topi::LogicalOr),
      BinaryFunction("xor", kIsBool, topi::LogicalXor),
      BitOp("bitwise_and", BinaryOp::kBitAnd),
      BitOp("bitwise_or", BinaryOp::kBitOr),
      BitOp("bitwise_xor", BinaryOp::kBitXor),
      PreluOp(),
      WhereOp(),
  };
}

}  // namespace hone
