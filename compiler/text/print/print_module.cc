// Modules and graph functions as text, in the spelling of TVM 0.18.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/module.h"
#include "compiler/text/literals.h"
#include "compiler/text/names.h"
#include "compiler/text/print/expr_printer.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

std::string FunctionName(absl::string_view name) {
  NameTable names;
  return names.Define(0, name.empty() ? "main" : name);
}

class GraphPrinter {
 public:
  explicit GraphPrinter(absl::string_view module) : module_(module), exprs_(&names_) {
    // Names that mean something inside a graph function.
    uint64_t key = kReserved;
    for (const absl::string_view word : {"cls", "metadata", "meta", "Tensor", "Module"}) names_.Define(key++, word);
    if (!module.empty()) names_.Define(key, module);
  }

  std::string Function(const GraphFunc& f) {
    std::vector<std::string> said;
    if (f.is_private) said.push_back("private=True");
    if (!f.is_pure) said.push_back("pure=False");
    Line(absl::StrCat("@R.function", said.empty() ? "" : absl::StrCat("(", absl::StrJoin(said, ", "), ")")));
    for (const Var& dim : f.dims) exprs_.Define(dim);
    in_signature_ = true;
    std::vector<std::string> params;
    for (const GraphVar& param : f.params) {
      const std::string type = param.type().has_value() ? absl::StrCat(": ", Type(*param.type())) : "";
      params.push_back(absl::StrCat(Define(param), type));
    }
    const std::string returns = f.returns.has_value() ? absl::StrCat(" -> ", Type(*f.returns)) : "";
    in_signature_ = false;
    Line(absl::StrCat("def ", FunctionName(f.name), "(", absl::StrJoin(params, ", "), ")", returns, ":"));
    ++indent_;
    if (!f.attrs.empty()) Line(absl::StrCat("R.func_attr(", AttrsText(f.attrs), ")"));
    for (const Var& dim : f.dims) Line(absl::StrCat(exprs_.Name(dim), " = T.int64()"));
    const size_t head = out_.size();
    for (const BindingBlock& block : f.blocks) Block(block);
    Line(absl::StrCat("return ", Value(f.result)));
    if (names_functions_ && !module_.empty()) {
      out_.insert(head, absl::StrCat(std::string(static_cast<size_t>(indent_) * 4, ' '), "cls = ", module_, "\n"));
    }
    return std::move(out_);
  }

 private:
  static constexpr uint64_t kReserved = uint64_t{3} << 62;
  static uint64_t Key(const GraphVar& var) { return (uint64_t{1} << 63) | var.id(); }
  const std::string& Define(const GraphVar& var) { return names_.Define(Key(var), var.name()); }
  const std::string& Name(const GraphVar& var) { return names_.Lookup(Key(var), var.name()); }

  void Line(absl::string_view text) {
    out_.append(static_cast<size_t>(indent_) * 4, ' ');
    absl::StrAppend(&out_, text, "\n");
  }

  void Block(const BindingBlock& block) {
    if (block.is_dataflow) {
      Line("with R.dataflow():");
      ++indent_;
    }
    for (const GraphBinding& binding : block.bindings) {
      const std::string value = Value(binding.value);
      const std::optional<GraphType>& type = binding.var.type();
      const std::string declared = type.has_value() ? absl::StrCat(": ", Type(*type)) : "";
      Line(absl::StrCat(Define(binding.var), declared, " = ", value));
    }
    if (!block.is_dataflow) return;
    std::vector<std::string> outputs;
    for (const GraphVar& var : block.outputs) outputs.push_back(Name(var));
    Line(absl::StrCat("R.output(", absl::StrJoin(outputs, ", "), ")"));
    --indent_;
  }

  // A size is an int64 here: a plain number, or, in a signature, an expression in quotes, since its sizes are only
  // declared below.
  std::string Extent(const Expr& extent) {
    if (const std::optional<int64_t> n = ConstantValue(extent)) return absl::StrCat(*n);
    const std::string text = exprs_.Print(extent);
    return in_signature_ ? QuotedText(text) : text;
  }
  std::string Extents(const std::vector<Expr>& extents, absl::string_view open, absl::string_view close) {
    std::vector<std::string> texts;
    for (const Expr& extent : extents) texts.push_back(Extent(extent));
    const bool lone = texts.size() == 1 && open == "(";
    return absl::StrCat(open, absl::StrJoin(texts, ", "), lone ? "," : "", close);
  }

  std::string Type(const GraphType& type) {
    using Kind = GraphType::Kind;
    std::vector<std::string> parts;
    const auto quoted_dtype = [&] { return absl::StrCat("\"", hone::ToText(*type.dtype), "\""); };
    switch (type.kind) {
      case Kind::kObject: return "R.Object";
      case Kind::kTensor:
        if (type.shape.has_value()) parts.push_back(Extents(*type.shape, "(", ")"));
        if (type.dtype.has_value()) parts.push_back(absl::StrCat("dtype=", quoted_dtype()));
        if (type.rank >= 0) parts.push_back(absl::StrCat("ndim=", type.rank));
        break;
      case Kind::kShape:
        if (type.shape.has_value()) parts.push_back(Extents(*type.shape, "[", "]"));
        if (type.rank >= 0) parts.push_back(absl::StrCat("ndim=", type.rank));
        break;
      case Kind::kScalar:
        if (type.dtype.has_value()) parts.push_back(quoted_dtype());
        if (type.shape.has_value()) parts.push_back(absl::StrCat("value=", Extent(type.shape->at(0))));
        break;
      case Kind::kTuple:
        for (const GraphType& field : type.fields) parts.push_back(Type(field));
        break;
    }
    static constexpr absl::string_view kNames[] = {"Object", "Tensor", "Shape", "Prim", "Tuple"};
    return absl::StrCat("R.", kNames[static_cast<int>(type.kind)], "(", absl::StrJoin(parts, ", "), ")");
  }

  std::string FunctionText(absl::string_view name) {
    names_functions_ = true;
    return absl::StrCat("cls.", FunctionName(name));
  }

  std::vector<std::string> Values(const std::vector<GraphExpr>& values) {
    std::vector<std::string> texts;
    for (const GraphExpr& value : values) texts.push_back(Value(value));
    return texts;
  }
  std::string Tuple(const std::vector<GraphExpr>& items) {
    return absl::StrCat("(", absl::StrJoin(Values(items), ", "), items.size() == 1 ? ",)" : ")");
  }

  std::string LiteralText(const Literal& literal) {
    struct Visitor {
      std::string operator()(std::monostate) { return "None"; }
      std::string operator()(bool v) { return v ? "True" : "False"; }
      std::string operator()(int64_t v) { return absl::StrCat(v); }
      std::string operator()(double v) {
        std::string digits = FloatDigits(std::isnan(v) ? std::abs(v) : v, DType::Float(64));
        if (!std::isfinite(v)) return absl::StrCat("float(", digits, ")");
        if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
        return digits;
      }
      std::string operator()(const std::string& v) { return QuotedText(v); }
    };
    return std::visit(Visitor{}, literal.value);
  }

  std::string CallTirText(const CallTir& call) {
    std::string text = call.packed ? absl::StrCat("R.call_dps_packed(", QuotedText(call.function))
                                   : absl::StrCat("R.call_tir(", FunctionText(call.function));
    absl::StrAppend(&text, ", ", Tuple(call.args), ", out_sinfo=");
    std::vector<std::string> outputs;
    for (const GraphType& output : call.outputs) outputs.push_back(Type(output));
    absl::StrAppend(&text, outputs.size() == 1 ? outputs[0] : absl::StrCat("[", absl::StrJoin(outputs, ", "), "]"));
    if (!call.sizes.empty()) absl::StrAppend(&text, ", tir_vars=R.shape(", Extents(call.sizes, "[", "]"), ")");
    return absl::StrCat(text, ")");
  }

  std::string CallText(const GraphCall& call) {
    std::vector<std::string> args = Values(call.args);
    for (const auto& [name, value] : call.named) args.push_back(absl::StrCat(name, "=", Value(value)));
    const std::string function = call.callee ? Value(call.callee) : absl::StrCat("R.", call.op);
    return absl::StrCat(function, "(", absl::StrJoin(args, ", "), ")");
  }

  std::string Value(const GraphExpr& value) {
    struct Visitor {
      GraphPrinter& p;
      std::string operator()(const GraphVarRef& n) { return p.Name(n.var); }
      std::string operator()(const FunctionRef& n) { return p.FunctionText(n.name); }
      std::string operator()(const Literal& n) { return p.LiteralText(n); }
      std::string operator()(const TypeLiteral& n) {
        const bool is_dtype = n.type.kind == GraphType::Kind::kScalar && n.type.dtype && !n.type.shape;
        return is_dtype ? absl::StrCat("R.dtype(\"", hone::ToText(*n.type.dtype), "\")") : p.Type(n.type);
      }
      std::string operator()(const ScalarValue& n) {
        return absl::StrCat("R.prim_value(", p.exprs_.Print(n.value), ")");
      }
      std::string operator()(const ShapeValue& n) {
        return absl::StrCat("R.shape(", p.Extents(n.extents, "[", "]"), ")");
      }
      std::string operator()(const TensorConstant& n) {
        return absl::StrCat("R.const(", p.Value(n.value), ", \"", hone::ToText(n.dtype), "\")");
      }
      std::string operator()(const StoredConstant& n) {
        return absl::StrCat("metadata[\"relax.expr.Constant\"][", n.index, "]");
      }
      std::string operator()(const GraphTuple& n) {
        return n.is_list ? absl::StrCat("[", absl::StrJoin(p.Values(n.items), ", "), "]") : p.Tuple(n.items);
      }
      std::string operator()(const TupleItem& n) { return absl::StrCat(p.Value(n.tuple), "[", n.index, "]"); }
      std::string operator()(const CallTir& n) { return p.CallTirText(n); }
      std::string operator()(const GraphCall& n) { return p.CallText(n); }
    };
    return std::visit(Visitor{*this}, value.node().kind);
  }

  const std::string module_;
  NameTable names_;
  ExprPrinter exprs_;
  std::string out_;
  int indent_ = 0;
  bool in_signature_ = false, names_functions_ = false;
};

std::string FunctionText(const PrimFunc& f, absl::string_view) { return ToText(f); }
std::string FunctionText(const GraphFunc& f, absl::string_view module) { return GraphPrinter(module).Function(f); }

}  // namespace

std::string ToText(const GraphFunc& f) { return GraphPrinter("").Function(f); }

std::string ToText(const IrModule& module) {
  std::vector<std::string> texts;
  for (const auto& function : module.functions) {
    texts.push_back(std::visit([&](const auto& f) { return FunctionText(f, module.name); }, function));
  }
  if (module.name.empty()) return absl::StrJoin(texts, "\n");
  std::string out = absl::StrCat("@I.ir_module\nclass ", module.name, ":\n");
  if (!module.attrs.empty()) absl::StrAppend(&out, "    I.module_attrs(", AttrsText(module.attrs), ")\n");
  if (texts.empty()) absl::StrAppend(&out, "    pass\n");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += "\n";
    for (const absl::string_view line : absl::StrSplit(texts[i], '\n', absl::SkipEmpty())) {
      absl::StrAppend(&out, "    ", line, "\n");
    }
  }
  return out;
}

}  // namespace hone
