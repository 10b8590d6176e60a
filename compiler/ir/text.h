// Programs as text: the TVMScript dialect (README.md beside this file). Printing then parsing gives back an equal program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

std::string ToText(const Expr& e);
std::string ToText(const Stmt& s);
std::string ToText(const PrimFunc& f);              // "@T.prim_func\ndef name(...):\n ..."

// InvalidArgument with "line L, column C: what was found, what was expected" when the text is not a program.
absl::StatusOr<PrimFunc> ParsePrimFunc(std::string_view text);
// Every @T.prim_func of the text: bare ones and those in an @I.ir_module class.
absl::StatusOr<std::vector<PrimFunc>> ParseModule(std::string_view text);

}  // namespace hone
