#include "compiler/text/parse/lexer.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kMaxIndents = 200;
// Longest first, so that "//" is not two divisions.
constexpr std::array<std::string_view, 38> kPuncts = {
    "...", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->",
    "+=",  "-=",  "*=",  "/=",  "%=", ":=", "(",  ")",  "[",  "]",  "{",  "}",  ",",
    ":",   ".",   "=",   "+",   "-",  "*",  "/",  "%",  "<",  ">",  "@",  "&"};
constexpr std::string_view kOtherPuncts = "|^~;";

bool StartsName(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool InName(char c) { return StartsName(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (pos_ < text_.size()) {
      if (at_line_start_ && brackets_ == 0) {
        HONE_RETURN_IF_ERROR(Indentation());
        if (pos_ >= text_.size()) break;
        if (at_line_start_) continue;  // the line was blank
      }
      HONE_RETURN_IF_ERROR(Next());
    }
    Mark();
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) Push(TokenKind::kNewline, "");
    for (size_t i = 1; i < indents_.size(); ++i) Push(TokenKind::kDedent, "");
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  void Advance() {
    if (text_[pos_] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
    ++pos_;
  }
  void Mark() {
    start_line_ = line_;
    start_column_ = column_;
  }
  void Push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), start_line_, start_column_});
  }
  absl::Status Error(absl::string_view message) const {
    return ErrorAt({TokenKind::kEnd, "", start_line_, start_column_}, message);
  }

  void SkipComment() {
    while (pos_ < text_.size() && text_[pos_] != '\n') Advance();
  }

  absl::Status Indentation() {
    int width = 0;
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\r') {
      width = Peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
      Advance();
    }
    Mark();
    if (Peek() == '#') SkipComment();
    if (pos_ >= text_.size()) return absl::OkStatus();
    if (Peek() == '\n') {
      Advance();
      return absl::OkStatus();
    }
    at_line_start_ = false;
    if (width > indents_.back()) {
      if (indents_.size() > kMaxIndents) return Error(absl::StrCat("blocks nest deeper than ", kMaxIndents));
      indents_.push_back(width);
      Push(TokenKind::kIndent, "");
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      Push(TokenKind::kDedent, "");
    }
    if (width != indents_.back()) return Error("this indentation matches no line above");
    return absl::OkStatus();
  }

  absl::Status Next() {
    Mark();
    const char c = Peek();
    if (c == '\n') {
      Advance();
      if (brackets_ == 0) {
        Push(TokenKind::kNewline, "");
        at_line_start_ = true;
      }
      return absl::OkStatus();
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      Advance();
      return absl::OkStatus();
    }
    if (c == '#') {
      SkipComment();
      return absl::OkStatus();
    }
    if (c == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'))) {
      while (Peek() != '\n') Advance();
      Advance();
      return absl::OkStatus();
    }
    if (StartsName(c)) {
      const size_t begin = pos_;
      while (InName(Peek())) Advance();
      Push(TokenKind::kName, std::string(text_.substr(begin, pos_ - begin)));
      return absl::OkStatus();
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (c == '"' || c == '\'') return String();
    return Punct();
  }

  absl::Status Number() {
    const size_t begin = pos_;
    bool is_float = false;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      Advance();
      Advance();
      while (absl::ascii_isxdigit(static_cast<unsigned char>(Peek()))) Advance();
    } else {
      while (IsDigit(Peek()) || Peek() == '_') Advance();
      if (Peek() == '.') {
        is_float = true;
        Advance();
        while (IsDigit(Peek())) Advance();
      }
      const bool has_sign = Peek(1) == '+' || Peek(1) == '-';
      if ((Peek() == 'e' || Peek() == 'E') && IsDigit(Peek(has_sign ? 2 : 1))) {
        is_float = true;
        Advance();
        if (has_sign) Advance();
        while (IsDigit(Peek())) Advance();
      }
    }
    std::string digits(text_.substr(begin, pos_ - begin));
    if (InName(Peek()))
      return Error(absl::StrCat("`", digits, "` runs into `", std::string(1, Peek()), "`; a number ends here"));
    std::erase(digits, '_');
    Push(is_float ? TokenKind::kFloat : TokenKind::kInt, std::move(digits));
    return absl::OkStatus();
  }

  absl::Status String() {
    const char quote = Peek();
    const bool triple = Peek(1) == quote && Peek(2) == quote;
    for (int i = 0; i < (triple ? 3 : 1); ++i) Advance();
    std::string value;
    while (true) {
      if (pos_ >= text_.size() || (!triple && Peek() == '\n')) return Error("this text in quotes has no end");
      if (Peek() == quote && (!triple || (Peek(1) == quote && Peek(2) == quote))) break;
      if (Peek() == '\\') {
        HONE_RETURN_IF_ERROR(Escape(value));
        continue;
      }
      value.push_back(Peek());
      Advance();
    }
    for (int i = 0; i < (triple ? 3 : 1); ++i) Advance();
    Push(TokenKind::kString, std::move(value));
    return absl::OkStatus();
  }

  absl::Status Escape(std::string& value) {
    Advance();
    const char c = Peek();
    if (pos_ >= text_.size()) return Error("this text in quotes has no end");
    if (c == 'x') {
      const auto is_hex = [](char h) { return absl::ascii_isxdigit(static_cast<unsigned char>(h)); };
      if (!is_hex(Peek(1)) || !is_hex(Peek(2))) return Error("`\\x` in quotes needs two hexadecimal digits");
      value.push_back(static_cast<char>(std::stoi(std::string(text_.substr(pos_ + 1, 2)), nullptr, 16)));
      for (int i = 0; i < 3; ++i) Advance();
      return absl::OkStatus();
    }
    switch (c) {
      case 'n': value.push_back('\n'); break;
      case 't': value.push_back('\t'); break;
      case 'r': value.push_back('\r'); break;
      case '\n': break;
      default: value.push_back(c);
    }
    Advance();
    return absl::OkStatus();
  }

  absl::Status Punct() {
    const std::string_view rest = text_.substr(pos_);
    std::string found;
    for (const std::string_view p : kPuncts) {
      if (rest.substr(0, p.size()) == p) {
        found = p;
        break;
      }
    }
    if (found.empty() && kOtherPuncts.find(Peek()) != std::string_view::npos) found = Peek();
    if (found.empty()) {
      const unsigned char c = static_cast<unsigned char>(Peek());
      return Error(absl::ascii_isprint(c)
                       ? absl::StrCat("`", std::string(1, Peek()), "` means nothing here")
                       : absl::StrCat("byte 0x", absl::Hex(c, absl::kZeroPad2), " means nothing here"));
    }
    if (found == "(" || found == "[" || found == "{") ++brackets_;
    if ((found == ")" || found == "]" || found == "}") && brackets_ > 0) --brackets_;
    for (size_t i = 0; i < found.size(); ++i) Advance();
    Push(TokenKind::kPunct, std::move(found));
    return absl::OkStatus();
  }

  const std::string_view text_;
  size_t pos_ = 0;
  int line_ = 1, column_ = 1, start_line_ = 1, start_column_ = 1;
  int brackets_ = 0;
  bool at_line_start_ = true;
  std::vector<int> indents_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text) { return Lexer(text).Run(); }

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kString: return absl::StrCat("the text \"", token.text.substr(0, 40), "\"");
    case TokenKind::kNewline: return "the end of the line";
    case TokenKind::kIndent: return "a deeper indentation";
    case TokenKind::kDedent: return "the end of the block";
    case TokenKind::kEnd: return "the end of the text";
    default: return absl::StrCat("`", token.text.substr(0, 40), "`");
  }
}

absl::Status ErrorAt(const Token& token, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("line ", token.line, ", column ", token.column, ": ", message));
}

}  // namespace hone
