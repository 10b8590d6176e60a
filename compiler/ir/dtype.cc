#include "compiler/ir/dtype.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace hone {

std::string ToText(DType type) {
  std::string text;
  switch (type.code) {
    case TypeCode::kBool: text = "bool"; break;
    case TypeCode::kInt: text = absl::StrCat("int", int{type.bits}); break;
    case TypeCode::kUInt: text = absl::StrCat("uint", int{type.bits}); break;
    case TypeCode::kFloat: text = absl::StrCat("float", int{type.bits}); break;
    case TypeCode::kBFloat: text = "bfloat16"; break;
    case TypeCode::kFloat8E4M3: text = "float8_e4m3fn"; break;
    case TypeCode::kFloat8E5M2: text = "float8_e5m2"; break;
  }
  if (type.lanes != 1) absl::StrAppend(&text, "x", int{type.lanes});
  return text;
}

std::optional<DType> ParseDType(std::string_view text) {
  int lanes = 1;
  if (const size_t x = text.rfind('x'); x != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + x + 1, end, lanes);
    if (error != std::errc() || stop != end || lanes < 1 || lanes > 65535) return std::nullopt;
    text = text.substr(0, x);
  }
  if (text == "bool") return DType::Bool(lanes);
  if (text == "bfloat16") return DType::BFloat16(lanes);
  if (text == "float8_e4m3fn" || text == "e4m3_float8") return DType::Float8E4M3(lanes);  // the latter: TVM 0.18
  if (text == "float8_e5m2" || text == "e5m2_float8") return DType::Float8E5M2(lanes);
  for (const auto& [prefix, code] :
       {std::pair{"int", TypeCode::kInt}, {"uint", TypeCode::kUInt}, {"float", TypeCode::kFloat}}) {
    if (text.substr(0, std::string_view(prefix).size()) != prefix) continue;
    const std::string_view digits = text.substr(std::string_view(prefix).size());
    for (const int bits : {4, 8, 16, 32, 64}) {
      if (digits != std::to_string(bits) || (code == TypeCode::kFloat && bits < 16)) continue;
      return DType{code, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
    }
  }
  return std::nullopt;
}

}  // namespace hone
