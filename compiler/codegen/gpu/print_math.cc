// Functions on floats: one that the language has is called by its name, any other is a helper made of its expansion.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"

namespace hone {

std::string LanePrinter::Function(absl::string_view name, DType type, const std::vector<std::string>& args) {
  const DType working = DType::Float(type.bits == 64 ? 64 : 32);
  const absl::string_view suffix = working == kFloat32 ? dialect_.float_suffix : "";
  if (const MathFunction* math = FindMathFunction({name.data(), name.size()})) {
    std::string callee = dialect_.name_of_math(*math);
    if (callee.empty()) {
      callee = absl::StrCat(name, "_", ToText(working));
      helpers_.Use(callee, MathHelper(*math, callee, working));
    } else {
      absl::StrAppend(&callee, suffix);
    }
    return absl::StrCat(callee, "(", absl::StrJoin(args, ", "), ")");
  }
  for (const Dialect::Function& function : dialect_.functions) {
    if (function.name != name) continue;
    std::vector<std::pair<std::string, std::string>> values = {{"{f}", std::string(suffix)}};
    for (size_t i = 0; i < args.size(); ++i) values.emplace_back(absl::StrCat("{", i, "}"), args[i]);
    return absl::StrReplaceAll(function.text, values);
  }
  Refuse("the function ", name, " has no words for it");
  return "0";
}

std::string LanePrinter::MathHelper(const MathFunction& function, const std::string& name, DType type) {
  const Var x("x", type);
  const std::optional<Expr> made_of = ExpandMath(Call{std::string(function.name), {x}}, /*precise=*/false);
  if (!made_of.has_value()) {
    Refuse("the function ", std::string(function.name), " has neither a name in it nor an expansion");
    return "";
  }
  LanePrinter inside(dialect_, {}, helpers_);
  inside.lets_are_lines_ = true;
  inside.data_.insert(x);
  const std::string value_type(ValueType(dialect_, type));
  inside.Open(absl::StrCat(value_type, " ", name, "(", value_type, " ", inside.NameOf(x), ") {"));
  inside.Line(absl::StrCat("return ", inside.Value(*made_of), ";"));
  inside.Close();
  if (!inside.status_.ok()) status_ = inside.status_;
  return inside.out_.substr(0, inside.out_.size() - 1);
}

LanePrinter::Text LanePrinter::OnLetExpr(const LetExpr& let) {
  if (!lets_are_lines_) return OnExpr(Substitute(let.body, let.var, let.value));
  if (lines_.insert(let.var).second) {
    const std::string value = Value(let.value);
    data_.insert(let.var);
    Line(absl::StrCat("const ", ValueType(dialect_, let.var.type()), " ", NameOf(let.var), " = ", value, ";"));
  }
  return OnExpr(let.body);
}

}  // namespace hone
