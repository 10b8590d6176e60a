// Numbers, and the types that are written as texts.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

// What TVM has types for and Hone has not; "" for what is no type at all.
absl::string_view WhyNotAType(absl::string_view text) {
  const auto has = [&](absl::string_view part) { return text.find(part) != absl::string_view::npos; };
  for (const absl::string_view digits : {"e4m3", "e5m2", "e3m4", "e8m0", "e2m1", "e2m3", "e3m2"}) {
    if (has(digits)) return "below 16 bits there are \"float8_e4m3fn\" and \"float8_e5m2\"; convert such values to one";
  }
  const absl::string_view element = text.substr(0, text.find('x'));
  for (const absl::string_view narrow : {"int1", "int2", "uint1", "uint2"}) {
    if (element == narrow) return "integers have 4 bits or more; use \"int4\" or \"uint4\"";
  }
  if (text == "handle") return "a program has buffers and no pointers; write T.Buffer";
  return "";
}

}  // namespace

absl::StatusOr<int64_t> Parser::IntegerText(const Token& token, bool negative, bool is_unsigned) const {
  absl::string_view digits = token.text;
  const bool hex = digits.size() > 2 && (digits[1] == 'x' || digits[1] == 'X');
  if (hex) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, hex ? 16 : 10);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  const uint64_t limit = uint64_t{1} << 63;
  const bool fits = is_unsigned || magnitude < limit || (negative && magnitude == limit);
  if (!whole || !fits) return ErrorAt(token, absl::StrCat("`", token.text.substr(0, 40), "` is no 64-bit integer"));
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

absl::StatusOr<Parsed> Parser::NumberLiteral(bool negative) {
  const Token token = Take();
  Parsed parsed;
  parsed.literal = true;
  if (token.kind == TokenKind::kFloat) {
    const double value = std::strtod(token.text.c_str(), nullptr);
    parsed.e = FloatConst(negative ? -value : value, kFloat32);
    return parsed;
  }
  HONE_ASSIGN_OR_RETURN(const int64_t value, IntegerText(token, negative, false));
  parsed.e = IntConst(value, value == static_cast<int32_t>(value) ? kInt32 : kInt64);
  return parsed;
}

absl::StatusOr<DType> Parser::TypeText(absl::string_view what) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString(what));
  const std::optional<DType> type = ParseDType(text);
  if (const absl::string_view reason = WhyNotAType(text); !type.has_value() && !reason.empty()) {
    return ErrorAt(at, absl::StrCat("\"", text.substr(0, 40), "\" is not supported: ", reason));
  }
  if (!type.has_value() || type->lanes > kMaxLanes) {
    return ErrorAt(
        at, absl::StrCat("\"", text.substr(0, 40), "\" names no type; expected one such as \"float32\" or \"int64\""));
  }
  return *type;
}

absl::StatusOr<int> Parser::Lanes() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Expr e, IntExpression("a number of lanes"));
  const std::optional<int64_t> lanes = ConstantValue(e);
  if (!lanes.has_value() || *lanes < 2 || *lanes > kMaxLanes) {
    return ErrorAt(at, absl::StrCat("the number of lanes must be a constant from 2 to ", kMaxLanes));
  }
  return static_cast<int>(*lanes);
}

// After "(": a number, a text such as "inf", or a value to convert.
absl::StatusOr<Parsed> Parser::TypedConstant(DType type) {
  const Token at = Peek();
  const bool wrapped = At("float") && Peek(1).text == "(";  // float("inf")
  if (wrapped) {
    Take();
    Take();
  }
  Parsed parsed;
  const bool negative = At("-") && (Peek(1).kind == TokenKind::kInt || Peek(1).kind == TokenKind::kFloat);
  const Token number = Peek(negative ? 1 : 0);
  const Token& after = Peek(negative ? 2 : 1);
  const bool alone = after.kind == TokenKind::kPunct && after.text == ")";
  if (number.kind == TokenKind::kString) {
    Take();
    double value = 0;
    if (!type.is_float() || !absl::SimpleAtod(number.text, &value)) {
      return ErrorAt(at, absl::StrCat("\"", number.text.substr(0, 40), "\" is no ", ToText(type)));
    }
    if (std::isnan(value))
      value = std::copysign(std::numeric_limits<double>::quiet_NaN(), number.text[0] == '-' ? -1.0 : 1.0);
    parsed.e = FloatConst(value, type.element());
  } else if (alone && number.kind == TokenKind::kInt && !type.is_float() && !type.is_bool()) {
    if (negative) Take();
    Take();
    HONE_ASSIGN_OR_RETURN(const int64_t value, IntegerText(number, negative, type.code == TypeCode::kUInt));
    parsed.e = IntConst(value, type.element());
    if (ConstantValue(parsed.e) != value) return ErrorAt(at, absl::StrCat(value, " does not fit ", ToText(type)));
  } else if (alone && type.is_float() && (number.kind == TokenKind::kInt || number.kind == TokenKind::kFloat)) {
    if (negative) Take();
    Take();
    const double value = std::strtod(number.text.c_str(), nullptr);
    parsed.e = FloatConst(negative ? -value : value, type.element());
  } else {
    HONE_ASSIGN_OR_RETURN(parsed, Expression());
    if (parsed.e.As<IntImm>() != nullptr && parsed.e.type().is_scalar()) {
      parsed.e = MakeCast(type.element(), parsed.e);
    } else if (parsed.e.type().element() != type.element()) {
      HONE_ASSIGN_OR_RETURN(
          parsed, Deeper(at, Expr::Make(Cast{parsed.e}, type.with_lanes(parsed.e.type().lanes)), {parsed.depth}));
    }
  }
  if (wrapped) HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (!type.is_scalar()) return Coerce(at, std::move(parsed), type, "a value");
  return parsed;
}

}  // namespace hone
