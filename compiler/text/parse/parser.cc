#include "compiler/text/parse/parser.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/names.h"

namespace hone {

// `tir.grid` is T.grid and `relax.add` is R.add: the names under which the language was imported.
Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if (tokens_[i].kind != TokenKind::kName || tokens_[i + 1].text != "." || tokens_[i + 1].kind != TokenKind::kPunct) {
      continue;
    }
    if (i > 0 && tokens_[i - 1].text == ".") continue;
    if (tokens_[i].text == "tir") tokens_[i].text = "T";
    if (tokens_[i].text == "relax") tokens_[i].text = "R";
  }
}

const Token& Parser::Peek(int ahead) const {
  const size_t at = pos_ + static_cast<size_t>(ahead);
  return at < tokens_.size() ? tokens_[at] : tokens_.back();
}
Token Parser::Take() {
  Token token = Peek();
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return token;
}
bool Parser::At(absl::string_view text) const {
  const Token& token = Peek();
  return (token.kind == TokenKind::kPunct || token.kind == TokenKind::kName) && token.text == text;
}
bool Parser::TakeIf(absl::string_view text) {
  if (!At(text)) return false;
  Take();
  return true;
}
absl::Status Parser::Unexpected(absl::string_view expected) const {
  return ErrorAt(Peek(), absl::StrCat("found ", Describe(Peek()), "; expected ", expected));
}
absl::Status Parser::Expect(absl::string_view text) {
  if (!TakeIf(text)) return Unexpected(absl::StrCat("`", text, "`"));
  return absl::OkStatus();
}
absl::StatusOr<std::string> Parser::ExpectName(absl::string_view what) {
  if (!AtName()) return Unexpected(what);
  return Take().text;
}
absl::StatusOr<std::string> Parser::ExpectFunctionName() {
  if (!AtName()) return Unexpected("a function's name");
  if (IsReserved(Peek().text)) {
    return ErrorAt(Peek(), absl::StrCat("`", Peek().text, "` is a word of the language; expected another name"));
  }
  return Take().text;
}
absl::StatusOr<std::string> Parser::ExpectString(absl::string_view what) {
  if (Peek().kind != TokenKind::kString) return Unexpected(absl::StrCat(what, " in quotes"));
  return Take().text;
}
absl::Status Parser::ExpectEndOfLine() {
  TakeIf(";");
  if (Peek().kind == TokenKind::kEnd || Peek().kind == TokenKind::kDedent) return absl::OkStatus();
  if (Peek().kind != TokenKind::kNewline) return Unexpected("the end of the line");
  Take();
  return absl::OkStatus();
}
void Parser::SkipLine() {
  while (Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) Take();
  if (Peek().kind == TokenKind::kNewline) Take();
}
void Parser::SkipSuite() {
  SkipLine();
  if (Peek().kind != TokenKind::kIndent) return;
  int depth = 0;
  do {
    const TokenKind kind = Take().kind;
    depth += kind == TokenKind::kIndent ? 1 : kind == TokenKind::kDedent ? -1 : 0;
  } while (depth > 0 && Peek().kind != TokenKind::kEnd);
}

void Parser::RollBack(size_t mark) {
  while (scope_.size() > mark) {
    const auto found = symbols_.find(scope_.back());
    found->second.pop_back();
    if (found->second.empty()) symbols_.erase(found);
    scope_.pop_back();
  }
}
void Parser::Define(const std::string& name, Symbol symbol) {
  symbols_[name].push_back(std::move(symbol));
  scope_.push_back(name);
}
const Symbol* Parser::Find(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second.back();
}

}  // namespace hone
