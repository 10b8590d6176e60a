// Text into tokens, with Python's rules: indentation makes blocks, brackets join lines, '#' starts a comment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

enum class TokenKind : uint8_t { kName, kInt, kFloat, kString, kPunct, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;          // a string's value without its quotes; otherwise as written
  int line = 1, column = 1;  // both from 1
};

// The last token is kEnd. InvalidArgument names the line and column of a character or an indentation that fits nowhere.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text);

// "`foo`", "the end of the line": for messages.
std::string Describe(const Token& token);
absl::Status ErrorAt(const Token& token, absl::string_view message);  // "line 3, column 7: message"

}  // namespace hone
