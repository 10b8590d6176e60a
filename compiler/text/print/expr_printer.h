// Expressions as text, for who prints what they stand in; others use ToText (compiler/text/text.h).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/ir/stmt.h"
#include "compiler/text/names.h"

namespace hone {

// How strongly an operator binds, from Python's grammar; an operand that binds less is put in parentheses.
enum Precedence : int {
  kLowest = 0,
  kOrLevel,
  kAndLevel,
  kNotLevel,
  kCompareLevel,
  kAddLevel,
  kMulLevel,
  kUnaryLevel,
  kAtom
};

class ExprPrinter {
 public:
  explicit ExprPrinter(NameTable* names) : names_(names) {}
  std::string Print(const Expr& e, int context = kLowest);
  std::string Indices(const std::vector<Expr>& indices);  // "vi, vj"; "()" when there are none
  std::string Region(const BufferRegion& region);         // "A[vi, 0:16]"
  std::string Shape(const std::vector<Expr>& shape);      // "(128, 64)", "(128,)", "()"
  const std::string& Name(const Var& var) { return names_->Lookup(var.id() * 2, var.name()); }
  const std::string& Name(const Buffer& buffer) { return names_->Lookup(buffer.id() * 2 + 1, buffer.name()); }
  const std::string& Define(const Var& var) { return names_->Define(var.id() * 2, var.name()); }
  const std::string& Define(const Buffer& buffer) { return names_->Define(buffer.id() * 2 + 1, buffer.name()); }
  // The end of a half-open range, so printed that reading takes its start off again: ExtentOf (parse/parser.h).
  std::string End(const Range& range);

 private:
  std::string BinaryText(const Binary& node, const Expr& e, int context);
  std::string CallText(absl::string_view function, const std::vector<Expr>& args);
  NameTable* names_;
};

}  // namespace hone
