// Operators on the bits of integers.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

// 2^y for y in [0, bits), from the binary digits of y.
Expr PowerOfTwo(const Expr& y, int bits) {
  const DType type = y.type();
  Expr power = IntConst(1, type);
  for (int digit = 0; (1 << digit) < bits; ++digit) {
    const Expr set = Ne(MakeBinary(BinaryOp::kBitAnd, y, IntConst(1 << digit, type)), IntConst(0, type));
    power = power * MakeSelect(set, IntConst(int64_t{1} << (1 << digit), type), IntConst(1, type));
  }
  return power;
}

// By a negative number, or by all bits and more, leaves what comes in from the other side: 0.
Expr Shift(const Expr& x, const Expr& y, bool left) {
  const int bits = x.type().bits;
  const Expr zero = IntConst(0, y.type());
  Expr inside = y < IntConst(bits, y.type());
  if (y.type().code == TypeCode::kInt) inside = And(y >= zero, inside);
  const Expr power = PowerOfTwo(MakeSelect(inside, y, zero), bits);
  return MakeSelect(inside, left ? x * power : x / power, IntConst(0, x.type()));
}
Expr ShiftLeft(const Expr& x, const Expr& y) { return Shift(x, y, true); }
Expr ShiftRight(const Expr& x, const Expr& y) { return Shift(x, y, false); }

// Of signed integers: the sign bit comes in from the left.
Expr ShiftRightSigned(const Expr& x, const Expr& y) {
  const DType type = x.type();
  const Expr last = IntConst(type.bits - 1, type), zero = IntConst(0, type);
  const Expr inside = And(y >= zero, y < last);
  const Expr power = PowerOfTwo(MakeSelect(inside, y, zero), type.bits - 1);
  return MakeSelect(inside, FloorDiv(x, power), MakeSelect(x < zero, IntConst(-1, type), zero));
}

Outputs BitShift(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const std::string direction = c.StringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return Unsupported("direction is neither LEFT nor RIGHT");
  const DType dtype = c.type(c.input(0)).dtype;
  const Value x = Input(c, 0), y = Input(c, 1);
  const char* right = dtype.code == TypeCode::kInt ? "shift_right_signed" : "shift_right";
  return Results({Apply(direction == "LEFT" ? "shift_left" : right, {x, y})});
}

// "to": the same bytes as elements of another type.
OpInfo BitCastOp() {
  OpInfo op{.name = "bitcast", .kind = OpKind::kView};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::optional<DType> to = ParseDType(StringAttr(attrs, "to"));
    if (!to.has_value() || to->bytes() != in[0].dtype.bytes() || to->is_bool())
      return Refuse("elements of ", ToText(in[0].dtype), " as ", StringAttr(attrs, "to"));
    return Types{{*to, in[0].shape}};
  };
  return op;
}

Outputs BitCast(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t number = c.IntAttr("to", 0);
  const std::optional<DType> to = OnnxDType(number);
  if (!to.has_value()) return Unsupported(absl::StrCat("elements of type ", OnnxDTypeName(number)));
  if (*to == c.type(c.input(0)).dtype) return Results({Input(c, 0)});
  if (to->is_bool()) return Results({Not(Input(c, 0) == Number(Input(c, 0), 0))});
  return Results({Apply("bitcast", {Input(c, 0)}, {{"to", ToText(*to)}})});
}

OpInfo BitOp(std::string_view name, BinaryOp bit_op) {
  OpInfo op = BinaryFunction(name, Accepts::kInt, nullptr);
  op.lower = [name, bit_op](TensorSpan in, const Attrs&, TypeSpan) {
    const auto apply = [bit_op](Expr a, Expr b) { return MakeBinary(bit_op, a, b); };
    return std::vector{topi::Binary(in[0], in[1], apply, std::string(name))};
  };
  return op;
}

Outputs BitwiseNot(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  return Results({Apply("bitwise_xor", {x, Value(c, c.Scalar(x.dtype(), -1))})});
}

}  // namespace

HONE_OPERATORS(bits) {
  return {
      {{IntFunction2("shift_left", ShiftLeft), IntFunction2("shift_right", ShiftRight),
        IntFunction2("shift_right_signed", ShiftRightSigned)},
       {{.name = "BitShift", .since = 11, .import = BitShift}}},
      {{BitCastOp()}, {{.name = "BitCast", .since = 26, .import = BitCast}}},
      {{BitOp("bitwise_and", BinaryOp::kBitAnd), BitOp("bitwise_or", BinaryOp::kBitOr),
        BitOp("bitwise_xor", BinaryOp::kBitXor)},
       {
           {"BitwiseAnd", 18, [](NodeContext& c) { return ImportAs(c, 2, "bitwise_and"); }},
           {"BitwiseOr", 18, [](NodeContext& c) { return ImportAs(c, 2, "bitwise_or"); }},
           {"BitwiseXor", 18, [](NodeContext& c) { return ImportAs(c, 2, "bitwise_xor"); }},
           {"BitwiseNot", 18, BitwiseNot},
       }},
  };
}

}  // namespace hone
