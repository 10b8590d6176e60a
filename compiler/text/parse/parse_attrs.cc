// Annotations: dictionaries of numbers, texts and lists of them.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

absl::StatusOr<Attrs> Parser::AttrDict() {
  Attrs attrs;
  HONE_RETURN_IF_ERROR(Expect("{"));
  while (!At("}")) {
    HONE_ASSIGN_OR_RETURN(std::string key, ExpectString("an attribute's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_ASSIGN_OR_RETURN(std::optional<Attr> value, AttrValue());
    if (value.has_value()) attrs.insert_or_assign(std::move(key), *std::move(value));
    if (!At("}")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  Take();
  return attrs;
}

// Lists of lists, which TVM writes ([[0, 1, 8, 2]]), are read as one list.
absl::Status Parser::AttrItems(AttrList& list, int depth) {
  const absl::string_view closing = At("[") ? "]" : ")";
  if (depth > kMaxNesting) return ErrorAt(Peek(), absl::StrCat("lists nest deeper than ", kMaxNesting));
  Take();
  while (!At(closing)) {
    const Token element = Peek();
    if (element.kind == TokenKind::kString) {
      list.texts.push_back(Take().text);
    } else if (At("[") || At("(")) {
      HONE_RETURN_IF_ERROR(AttrItems(list, depth + 1));
    } else if (AtMetadata()) {
      HONE_RETURN_IF_ERROR(GraphStoredConstant().status());
      list.is_outside = true;
    } else if (const Symbol* symbol = Find(element.text); symbol != nullptr && symbol->buffer && AtName()) {
      Take();  // a buffer: which of them a layout may be chosen for
      list.is_outside = true;
    } else {
      HONE_ASSIGN_OR_RETURN(const Expr e, IntExpression("an element of a list"));
      const std::optional<int64_t> n = ConstantValue(e);
      if (!n.has_value()) return ErrorAt(element, "an element of a list that is no constant");
      list.numbers.push_back(*n);
    }
    if (!list.numbers.empty() && !list.texts.empty()) {
      return ErrorAt(element, "a list of numbers and texts; expected one of them");
    }
    if (!At(closing)) HONE_RETURN_IF_ERROR(Expect(","));
  }
  Take();
  return absl::OkStatus();
}

// A number, text, or list of one of them; nothing for None and for what describes a target.
absl::StatusOr<std::optional<Attr>> Parser::AttrValue() {
  const Token at = Peek();
  if (at.kind == TokenKind::kString) return Attr(Take().text);
  if (TakeIf("None")) return std::nullopt;
  if (AtMetadata()) {  // a value kept outside of the text: it says nothing here
    HONE_RETURN_IF_ERROR(GraphStoredConstant().status());
    return std::nullopt;
  }
  if (At("[") || At("(")) {
    AttrList list;
    HONE_RETURN_IF_ERROR(AttrItems(list, 0));
    if (list.is_outside) return std::nullopt;
    if (!list.texts.empty()) return Attr(std::move(list.texts));
    return Attr(std::move(list.numbers));
  }
  if (At("T") && Peek(1).text == "." && (Peek(2).text == "strings" || Peek(2).text == "target")) {
    const bool strings = Peek(2).text == "strings";
    for (int i = 0; i < 3; ++i) Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    if (!strings) {
      for (int depth = 1; depth > 0;) {
        if (Peek().kind == TokenKind::kEnd) return Unexpected("`)`");
        const Token token = Take();
        if (token.kind == TokenKind::kPunct && token.text == "(") ++depth;
        if (token.kind == TokenKind::kPunct && token.text == ")") --depth;
      }
      return std::nullopt;
    }
    HONE_RETURN_IF_ERROR(Expect(")"));
    return Attr(std::vector<std::string>());
  }
  // Plain decimals are doubles here, not float32.
  const bool negative = At("-") && Peek(1).kind == TokenKind::kFloat;
  if (negative || at.kind == TokenKind::kFloat) {
    if (negative) Take();
    const double value = std::strtod(Take().text.c_str(), nullptr);
    return Attr(negative ? -value : value);
  }
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (const IntImm* n = value.e.As<IntImm>()) return Attr(n->value);
  if (const FloatImm* n = value.e.As<FloatImm>()) return Attr(n->value);
  return ErrorAt(at, "an attribute that is no constant; expected a number, a text or a list");
}

}  // namespace hone
