// Expressions.
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

constexpr int kPrimary = 16, kUnary = 14, kProduct = 13, kSum = 12, kShift = 11, kRelational = 10, kEquality = 9,
              kBitAndBinds = 8, kBitXorBinds = 7, kBitOrBinds = 6, kAndBinds = 5, kOrBinds = 4, kChoice = 3;

bool IsHalf(DType type) { return type.is_float() && type.bits == 16; }
std::string HalfName(DType type) { return type.code == TypeCode::kBFloat ? "bf16" : "f16"; }
bool IsUnsigned(DType type) { return type.code == TypeCode::kUInt; }

struct Operator {
  const char* text;
  int binds;
};
Operator ComparisonOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEq: return {"==", kEquality};
    case BinaryOp::kNe: return {"!=", kEquality};
    case BinaryOp::kLt: return {"<", kRelational};
    case BinaryOp::kLe: return {"<=", kRelational};
    case BinaryOp::kGt: return {">", kRelational};
    default: return {">=", kRelational};
  }
}

// The shortest decimal that is read back as the same number.
std::string Decimal(double value, bool is_float) {
  for (int digits = 1; digits <= 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    const double back = std::strtod(text.c_str(), nullptr);
    if (is_float ? static_cast<float>(back) != static_cast<float>(value) : back != value) continue;
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return is_float ? text + "f" : text;
  }
  HONE_UNREACHABLE() << "17 digits tell all doubles apart";
}

}  // namespace

std::string LanePrinter::Operand(const Expr& e, int binds) {
  const Text text = OnExpr(e);
  return text.binds >= binds ? text.text : absl::StrCat("(", text.text, ")");
}

LanePrinter::Text LanePrinter::Infix(const Expr& a, const char* op, int binds, const Expr& b) {
  return {absl::StrCat(Operand(a, binds), " ", op, " ", Operand(b, binds + 1)), binds};
}

LanePrinter::Text LanePrinter::Rounded(Text value, DType type) {
  if (!IsHalf(type)) return value;
  return {absl::StrCat(helpers_.Use("round_" + HalfName(type)), "(", value.text, ")")};
}

std::string LanePrinter::Element(const Buffer& buffer, const Expr& index) {
  return absl::StrCat(NameOf(buffer), "[", Value(known_.Simplify(index)), "]");
}

LanePrinter::Text LanePrinter::FromMemory(const std::string& element, DType type) {
  if (type.is_bool()) return {absl::StrCat(element, " != 0"), kEquality};
  if (IsHalf(type)) return {absl::StrCat(helpers_.Use("f32_of_" + HalfName(type)), "(", element, ")")};
  return {element};
}

std::string LanePrinter::InMemory(const Expr& value) {
  const DType type = value.type();
  if (!IsHalf(type)) return Value(value);
  // An element that is copied keeps its bits; what a cast would round first is rounded once, to the bits.
  if (const Load* load = value.As<Load>(); load != nullptr && !load->mask)
    return Element(load->buffer, load->indices[0]);
  if (const VarRef* ref = value.As<VarRef>(); ref != nullptr && bits_.contains(ref->var)) return bits_.at(ref->var);
  const std::string to_bits = helpers_.Use(HalfName(type) + "_of_f32");
  const Cast* cast = value.As<Cast>();
  if (cast != nullptr && cast->a.type() == kFloat32) return absl::StrCat(to_bits, "(", Value(cast->a), ")");
  return absl::StrCat(to_bits, "(", Value(value), ")");
}

LanePrinter::Text LanePrinter::OnExpr(const Expr& e) {
  const DType type = e.type();
  HONE_CHECK(type.is_scalar()) << "a vector where a scalar is printed: " << ToText(e);
  if ((type.is_float() && type.bits < 16) || (type.is_int() && type.bits < 8))
    Refuse("elements of type ", ToText(type), ", which it has no arithmetic for; cast them to a wider type before");
  if (e.As<IntImm>() != nullptr || e.As<FloatImm>() != nullptr) return OnConstant(e);
  if (const VarRef* ref = e.As<VarRef>()) {
    const auto element = bits_.find(ref->var);
    return element == bits_.end() ? Text{NameOf(ref->var)} : FromMemory(element->second, type);
  }
  if (const Binary* binary = e.As<Binary>()) return OnBinary(*binary, binary->a.type());
  if (const Not* negation = e.As<Not>()) return {absl::StrCat("!", Operand(negation->a, kUnary)), kUnary};
  if (const Cast* cast = e.As<Cast>()) return OnCast(cast->a, type);
  if (const Select* choice = e.As<Select>()) return OnExpr(IfThenElse(choice->condition, choice->yes, choice->no));
  if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
    return {absl::StrCat(Operand(choice->condition, kChoice + 1), " ? ", Operand(choice->yes, kChoice + 1), " : ",
                         Operand(choice->no, kChoice)),
            kChoice};
  }
  if (const LetExpr* let = e.As<LetExpr>()) return OnLetExpr(*let);
  if (const Load* load = e.As<Load>()) { return FromMemory(Element(load->buffer, load->indices[0]), type); }
  if (const Call* call = e.As<Call>()) return OnCall(*call, type);
  HONE_UNREACHABLE() << "an expression that lane programs do not have: " << ToText(e);
}

LanePrinter::Text LanePrinter::OnConstant(const Expr& e) {
  const DType type = e.type();
  if (const FloatImm* imm = e.As<FloatImm>()) {
    const double value = RoundToType(imm->value, type);
    const bool is_float = type.bits != 64;
    if (std::isfinite(value)) {
      std::string text = Decimal(value, is_float);
      return {text, text[0] == '-' ? kUnary : kPrimary};
    }
    const std::string bits =
        is_float
            ? absl::StrFormat("0x%08xu",
                              std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(static_cast<float>(value)))
            : absl::StrFormat("0x%016xu%s", std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<uint64_t>(value),
                              dialect_.long_suffix);
    return {absl::StrReplaceAll(is_float ? dialect_.float_of_bits : dialect_.double_of_bits, {{"{0}", bits}})};
  }
  const int64_t value = e.As<IntImm>()->value;
  if (type.is_bool()) return {value != 0 ? "true" : "false"};
  const absl::string_view suffix = type.bits == 64 ? dialect_.long_suffix : "";
  if (IsUnsigned(type)) return {absl::StrCat(static_cast<uint64_t>(value), "u", suffix)};
  const bool least =
      value == (type.bits == 64 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
  if (least) return {absl::StrCat("(", value + 1, suffix, " - 1)")};  // C has no constant for it
  return {absl::StrCat(value, suffix), value < 0 ? kUnary : kPrimary};
}

LanePrinter::Text LanePrinter::OnBinary(const Binary& binary, DType type) {
  const BinaryOp op = binary.op;
  if (IsComparison(op)) {
    const Operator c = ComparisonOf(op);
    return Infix(binary.a, c.text, c.binds, binary.b);
  }
  switch (op) {
    case BinaryOp::kAnd: return Infix(binary.a, "&&", kAndBinds, binary.b);
    case BinaryOp::kOr:
      // C compilers warn of && inside || without parentheses.
      return {absl::StrCat(Operand(binary.a, kBitOrBinds), " || ", Operand(binary.b, kBitOrBinds)), kOrBinds};
    default: return type.is_float() ? OnFloatBinary(binary, type) : OnIntBinary(binary, type);
  }
}

LanePrinter::Text LanePrinter::OnFloatBinary(const Binary& binary, DType type) {
  const std::string name = type.bits == 64 ? "float64" : "float32";
  const auto call = [&](const std::string& function) {
    return Text{absl::StrCat(function, "(", Value(binary.a), ", ", Value(binary.b), ")")};
  };
  switch (binary.op) {
    case BinaryOp::kAdd: return Rounded(Infix(binary.a, "+", kSum, binary.b), type);
    case BinaryOp::kSub: return Rounded(Infix(binary.a, "-", kSum, binary.b), type);
    case BinaryOp::kMul: return Rounded(Infix(binary.a, "*", kProduct, binary.b), type);
    case BinaryOp::kDiv: return Rounded(Infix(binary.a, "/", kProduct, binary.b), type);
    case BinaryOp::kMin: return call(helpers_.Use("min_" + name));
    case BinaryOp::kMax: return call(helpers_.Use("max_" + name));
    case BinaryOp::kMod: return Rounded({Function("fmod", type, {Value(binary.a), Value(binary.b)})}, type);
    case BinaryOp::kFloorMod: return Rounded(call(helpers_.Use("floor_modf_" + name)), type);
    case BinaryOp::kFloorDiv:
      return Rounded({Function("floor", type, {Infix(binary.a, "/", kProduct, binary.b).text})}, type);
    default: HONE_UNREACHABLE() << "an operation that floats do not have";
  }
}

// Index arithmetic: 32- and 64-bit, of variables and constants; not of what was loaded.
bool LanePrinter::IsIndexArithmetic(const Expr& e) const {
  if (e.type() != kInt32 && e.type() != kInt64) return false;
  if (e.As<IntImm>() != nullptr) return true;
  if (const VarRef* ref = e.As<VarRef>()) return !data_.contains(ref->var);
  if (const Cast* cast = e.As<Cast>()) return IsIndexArithmetic(cast->a);
  const Binary* binary = e.As<Binary>();
  return binary != nullptr && IsIndexArithmetic(binary->a) && IsIndexArithmetic(binary->b);
}

LanePrinter::Text LanePrinter::OnIntBinary(const Binary& binary, DType type) {
  const auto& [op, a, b] = binary;
  const std::string cast = absl::StrCat("(", ValueType(dialect_, type), ")");
  const std::string to_unsigned = absl::StrCat("(", ValueType(dialect_, DType::UInt(type.bits)), ")");
  const auto narrowed = [&](const Text& text) { return Text{absl::StrCat(cast, "(", text.text, ")"), kUnary}; };
  // In the type's width; narrower operands are computed as int and cut back.
  const auto wrapping = [&](const char* sign, int binds) -> Text {
    if (type.is_bool() || type.bits < 32) return narrowed(Infix(a, sign, binds, b));
    if (IsUnsigned(type) || (IsIndexArithmetic(a) && IsIndexArithmetic(b))) return Infix(a, sign, binds, b);
    return narrowed({absl::StrCat(to_unsigned, Operand(a, kUnary), " ", sign, " ", to_unsigned, Operand(b, kUnary))});
  };
  switch (op) {
    case BinaryOp::kAdd: return wrapping("+", kSum);
    case BinaryOp::kSub: return wrapping("-", kSum);
    case BinaryOp::kMul: return wrapping("*", kProduct);
    case BinaryOp::kDiv: return Infix(a, "/", kProduct, b);
    case BinaryOp::kMod: return Infix(a, "%", kProduct, b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return OnQuotient(binary, type);
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      // One type for both, which a constant does not have by itself where it is narrow.
      const std::string to = type.bits < 32 ? cast : "";
      return {absl::StrCat(op == BinaryOp::kMin ? "min(" : "max(", to, Operand(a, to.empty() ? 0 : kUnary), ", ", to,
                           Operand(b, to.empty() ? 0 : kUnary), ")")};
    }
    case BinaryOp::kBitAnd: return {absl::StrCat(Operand(a, kPrimary), " & ", Operand(b, kPrimary)), kBitAndBinds};
    case BinaryOp::kBitOr: return {absl::StrCat(Operand(a, kPrimary), " | ", Operand(b, kPrimary)), kBitOrBinds};
    case BinaryOp::kBitXor: return {absl::StrCat(Operand(a, kPrimary), " ^ ", Operand(b, kPrimary)), kBitXorBinds};
    case BinaryOp::kShiftLeft:
      return narrowed({absl::StrCat(to_unsigned, Operand(a, kUnary), " << ", Operand(b, kPrimary))});
    case BinaryOp::kShiftRight: return {absl::StrCat(Operand(a, kPrimary), " >> ", Operand(b, kPrimary)), kShift};
    default: HONE_UNREACHABLE() << "an operation that integers do not have";
  }
}

LanePrinter::Text LanePrinter::OnQuotient(const Binary& binary, DType type) {
  const bool quotient = binary.op == BinaryOp::kFloorDiv;
  const std::optional<int64_t> divisor = ConstantValue(binary.b);
  const bool positive = divisor.has_value() ? *divisor > 0 : known_.ConstBounds(binary.b).min > 0;
  if (IsUnsigned(type) || (positive && known_.ConstBounds(binary.a).min >= 0))
    return Infix(binary.a, quotient ? "/" : "%", kProduct, binary.b);
  if (positive && divisor.has_value() && std::has_single_bit(static_cast<uint64_t>(*divisor))) {
    const Expr bits =
        quotient ? IntConst(std::countr_zero(static_cast<uint64_t>(*divisor)), type) : IntConst(*divisor - 1, type);
    return {absl::StrCat(Operand(binary.a, kPrimary), quotient ? " >> " : " & ", Value(bits)),
            quotient ? kShift : kBitAndBinds};
  }
  const std::string name = absl::StrCat(quotient ? "floor_div_" : "floor_mod_", type.bits == 64 ? "int64" : "int32");
  return {absl::StrCat(helpers_.Use(name), "(", Value(binary.a), ", ", Value(binary.b), ")")};
}

LanePrinter::Text LanePrinter::OnCast(const Expr& from, DType to) {
  const DType source = from.type();
  if (source == to) return OnExpr(from);
  if (to.is_bool()) return {absl::StrCat(Operand(from, kEquality + 1), " != 0"), kEquality};
  if (source.is_float() && to.is_int()) {
    const std::string name = absl::StrCat(ToText(to), "_of_", source.bits == 64 ? "float64" : "float32");
    return {absl::StrCat(helpers_.Use(name), "(", Value(from), ")")};
  }
  if (IsHalf(to)) {
    const bool exact_in_float =
        source.bits <= 32 && (source.is_float() || source.bits <= 16 || to.code == TypeCode::kFloat);
    if (!exact_in_float)
      Refuse("a cast from ", ToText(source), " to ", ToText(to), " would round twice; cast to float32 first");
    return Rounded({absl::StrCat("(float)", Operand(from, kUnary)), kUnary}, to);
  }
  if (IsHalf(source) && to == kFloat32) return OnExpr(from);  // it is kept as one
  return {absl::StrCat("(", ValueType(dialect_, to), ")", Operand(from, kUnary)), kUnary};
}

LanePrinter::Text LanePrinter::OnCall(const Call& call, DType type) {
  const DType operand = call.args[0].type();
  std::vector<std::string> args;
  for (const Expr& arg : call.args) args.push_back(Value(arg));
  if (operand.is_float()) return Rounded({Function(call.name, operand, args)}, type);
  if (call.name == "isnan" || call.name == "isinf") return {"false"};
  if (call.name == "fma") return OnExpr(call.args[0] * call.args[1] + call.args[2]);
  if (call.name == "floor" || call.name == "ceil" || call.name == "round" || call.name == "trunc")
    return OnExpr(call.args[0]);
  if (call.name == "abs" && IsUnsigned(operand)) return OnExpr(call.args[0]);
  if (call.name == "abs") return {absl::StrCat(helpers_.Use("abs_" + ToText(operand)), "(", args[0], ")")};
  if (call.name == "popcount" && operand.bits == 32) return {Function("popcount", operand, args)};
  Refuse(call.name, " of ", ToText(operand), " has no code; cast the argument to another type");
  return {"0"};
}

}  // namespace hone
