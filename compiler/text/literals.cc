#include "compiler/text/literals.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/scalar_arith.h"

namespace hone {

std::string QuotedText(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\n': quoted += "\\n"; break;
      case '\t': quoted += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
        } else {
          quoted.push_back(c);
        }
    }
  }
  return quoted + "\"";
}

std::string FloatDigits(double value, DType type) {
  if (std::isnan(value)) return std::signbit(value) ? "\"-nan\"" : "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[64];
  const auto reads_back = [&](const std::to_chars_result& end) {
    *end.ptr = '\0';
    return std::bit_cast<uint64_t>(RoundToType(std::strtod(text, nullptr), type)) == std::bit_cast<uint64_t>(value);
  };
  if (type.bits <= 32 && reads_back(std::to_chars(text, text + 60, static_cast<float>(value)))) return text;
  *std::to_chars(text, text + 60, value).ptr = '\0';
  return text;
}

std::string AttrText(const Attr& attr) {
  struct Visitor {
    std::string operator()(int64_t v) { return absl::StrCat(v); }
    std::string operator()(double v) { return absl::StrCat("T.float64(", FloatDigits(v, DType::Float(64)), ")"); }
    std::string operator()(const std::string& v) { return QuotedText(v); }
    std::string operator()(const std::vector<int64_t>& v) { return absl::StrCat("[", absl::StrJoin(v, ", "), "]"); }
    std::string operator()(const std::vector<std::string>& v) {
      if (v.empty()) return "T.strings()";  // an empty list of numbers is []
      std::vector<std::string> quoted;
      for (const std::string& text : v) quoted.push_back(QuotedText(text));
      return absl::StrCat("[", absl::StrJoin(quoted, ", "), "]");
    }
  };
  return std::visit(Visitor{}, attr);
}

std::string AttrsText(const Attrs& attrs) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : attrs) texts.push_back(absl::StrCat(QuotedText(key), ": ", AttrText(value)));
  return absl::StrCat("{", absl::StrJoin(texts, ", "), "}");
}

}  // namespace hone
