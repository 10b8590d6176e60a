#include "compiler/codegen/gpu/helpers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

struct Template {
  absl::string_view name, text;
};

// {T} is the type, {U} its unsigned one, {f} the suffix of functions of float.
constexpr Template kOfOneType[] = {
    {"floor_div", "{T} floor_div_{name}({T} a, {T} b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }"},
    {"floor_mod",
     "{T} floor_mod_{name}({T} a, {T} b) { {T} r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }"},
    {"abs", "{T} abs_{name}({T} a) { return a < 0 ? ({T})(0 - ({U})a) : a; }"},
    {"min", "{T} min_{name}({T} a, {T} b) { return a != a || a <= b ? a : b; }"},
    {"max", "{T} max_{name}({T} a, {T} b) { return a != a || a >= b ? a : b; }"},
    {"floor_modf",
     "{T} floor_modf_{name}({T} a, {T} b) { {T} r = fmod{f}(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }"},
};

std::string FillOfOneType(const Dialect& dialect, absl::string_view text, const std::string& type) {
  const DType dtype = *ParseDType(type);
  const absl::string_view suffix = dtype == kFloat32 ? dialect.float_suffix : "";
  const DType bits = DType::UInt(dtype.bits);
  return absl::StrReplaceAll(
      text, {{"{T}", ValueType(dialect, dtype)}, {"{U}", ValueType(dialect, bits)}, {"{name}", type}, {"{f}", suffix}});
}

// An integer with the suffix that its type wants.
std::string Limit(const Dialect& dialect, DType type, bool most) {
  const bool is_unsigned = type.code == TypeCode::kUInt;
  const std::string suffix = absl::StrCat(is_unsigned ? "u" : "", type.bits == 64 ? dialect.long_suffix : "");
  if (!most && is_unsigned) return absl::StrCat("0", suffix);
  const uint64_t largest = ~uint64_t{0} >> (64 - type.bits + (is_unsigned ? 0 : 1));
  return most ? absl::StrCat(largest, suffix) : absl::StrCat("(-", largest, suffix, " - 1)");
}

// Compared with powers of two, which floats hold exactly.
std::string SaturatingCast(const Dialect& dialect, const std::string& name, DType to, DType from) {
  const bool is_unsigned = to.code == TypeCode::kUInt;
  const double power = std::ldexp(1.0, to.bits - (is_unsigned ? 0 : 1));
  const absl::string_view f = from == kFloat32 ? "f" : "";
  const std::string above = absl::StrFormat("%.1f%s", power, f);
  const std::string below = is_unsigned ? absl::StrCat("0.0", f) : absl::StrCat("-", above);
  return absl::StrCat(ValueType(dialect, to), " ", name, "(", ValueType(dialect, from),
                      " x) { return x != x ? 0 : x <= ", below, " ? ", Limit(dialect, to, false), " : x >= ", above,
                      " ? ", Limit(dialect, to, true), " : (", ValueType(dialect, to), ")x; }");
}

std::string OfArgument(absl::string_view text, absl::string_view argument) {
  return absl::StrReplaceAll(text, {{"{0}", argument}});
}

}  // namespace

std::string Helpers::Use(const std::string& name) {
  if (!used_.insert(name).second) return name;
  texts_.push_back(TextOf(name));  // what it calls has been noted on the way
  return name;
}

std::string Helpers::Use(const std::string& name, const std::string& text) {
  if (used_.insert(name).second) texts_.push_back(text);
  return name;
}

std::string Helpers::TextOf(const std::string& name) {
  for (const Dialect::Helper& helper : dialect_.helpers) {
    if (helper.name == name) return std::string(helper.text);
  }
  const std::string u16(ValueType(dialect_, DType::UInt(16))), u32(ValueType(dialect_, DType::UInt(32)));
  if (name == "f32_of_bf16") {
    return absl::StrCat("float f32_of_bf16(", u16, " bits) { return ",
                        OfArgument(dialect_.float_of_bits, absl::StrCat("(", u32, ")bits << 16")), "; }");
  }
  if (name == "bf16_of_f32") {
    // Adds half of the last place kept, or a hair less where that place is even; NaN stays a quiet NaN.
    return absl::StrCat(u16, " bf16_of_f32(float x) {\n  const ", u32,
                        " bits = ", OfArgument(dialect_.bits_of_float, "x"), ";\n  return (", u16,
                        ")((x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n}");
  }
  for (const std::string type : {"f16", "bf16"}) {
    if (name != absl::StrCat("round_", type)) continue;
    return absl::StrCat("float ", name, "(float x) { return ", Use(absl::StrCat("f32_of_", type)), "(",
                        Use(absl::StrCat(type, "_of_f32")), "(x)); }");
  }
  const std::vector<std::string> parts = absl::StrSplit(name, "_of_");
  if (parts.size() == 2) return SaturatingCast(dialect_, name, *ParseDType(parts[0]), *ParseDType(parts[1]));
  for (const Template& one : kOfOneType) {
    const std::string start = absl::StrCat(one.name, "_");
    if (name.starts_with(start)) return FillOfOneType(dialect_, one.text, name.substr(start.size()));
  }
  HONE_UNREACHABLE() << "there is no helper " << name;
}

std::string Helpers::Text() const {
  std::string all;
  for (const std::string& text : texts_) absl::StrAppend(&all, dialect_.helper, text, "\n");
  return all;
}

}  // namespace hone
