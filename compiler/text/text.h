// Programs as text: the TVMScript dialect (README.md beside this file). Printing then parsing gives back an equal
// program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

struct GraphFunc;  // compiler/ir/module.h
struct IrModule;

std::string ToText(const Expr& e);
std::string ToText(const Stmt& s);
std::string ToText(const PrimFunc& f);       // "@T.prim_func\ndef name(...):\n ..."
std::string ToText(const GraphFunc& f);      // "@R.function\ndef name(...):\n ..."
std::string ToText(const IrModule& module);  // "@I.ir_module\nclass Module:\n ..."; without a name: its functions

// InvalidArgument with "line L, column C: what was found, what was expected" when the text is not a program.
absl::StatusOr<PrimFunc> ParsePrimFunc(std::string_view text);
// Every function of the text: bare ones and those in an @I.ir_module class. What is no program (imports, plain python
// functions) is passed over.
absl::StatusOr<IrModule> ParseIrModule(std::string_view text);
// The tensor functions of it alone.
absl::StatusOr<std::vector<PrimFunc>> ParseModule(std::string_view text);

}  // namespace hone
