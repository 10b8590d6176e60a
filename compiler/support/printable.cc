#include "compiler/support/printable.h"

#include "absl/strings/ascii.h"

namespace hone {

std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c != '\n' && !absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return printable;
}

std::string_view Utf8Prefix(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  while (most > 0 && continues(most)) --most;
  return text.substr(0, most);
}

}  // namespace hone
