// T.something(...) as a value.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

// Operators written as functions of two arguments, in the spellings of all releases.
struct Named {
  absl::string_view name;
  BinaryOp op;
};
constexpr Named kNamed[] = {
    {"min", BinaryOp::kMin},
    {"max", BinaryOp::kMax},
    {"Min", BinaryOp::kMin},
    {"Max", BinaryOp::kMax},
    {"Div", BinaryOp::kDiv},
    {"truncdiv", BinaryOp::kDiv},
    {"truncmod", BinaryOp::kMod},
    {"Mod", BinaryOp::kMod},
    {"floordiv", BinaryOp::kFloorDiv},
    {"FloorDiv", BinaryOp::kFloorDiv},
    {"floormod", BinaryOp::kFloorMod},
    {"FloorMod", BinaryOp::kFloorMod},
    {"Add", BinaryOp::kAdd},
    {"Sub", BinaryOp::kSub},
    {"Mul", BinaryOp::kMul},
    {"EQ", BinaryOp::kEq},
    {"NE", BinaryOp::kNe},
    {"LT", BinaryOp::kLt},
    {"LE", BinaryOp::kLe},
    {"GT", BinaryOp::kGt},
    {"GE", BinaryOp::kGe},
    {"And", BinaryOp::kAnd},
    {"Or", BinaryOp::kOr},
    {"bitwise_and", BinaryOp::kBitAnd},
    {"bitwise_or", BinaryOp::kBitOr},
    {"bitwise_xor", BinaryOp::kBitXor},
    {"shift_left", BinaryOp::kShiftLeft},
    {"shift_right", BinaryOp::kShiftRight},
};

std::string_view IntrinsicAlias(std::string_view name) {
  if (name == "fabs") return "abs";
  if (name == "power") return "pow";
  if (name == "nearbyint") return "round";
  return name;
}

// The intrinsic that the C library, or TVM, calls by this name: expf and exp, tir.exp. C's round, which rounds halves
// away from zero, is not ours.
const IntrinsicInfo* LibraryFunction(std::string_view name, DType type, const std::vector<Parsed>& args) {
  const bool is_tir = name.substr(0, 4) == "tir.";
  if (is_tir) name.remove_prefix(4);
  if (!is_tir && (name == "round" || name == "roundf")) return nullptr;
  const IntrinsicInfo* info = FindIntrinsic(IntrinsicAlias(name));
  if (info == nullptr && !is_tir && !name.empty() && name.back() == 'f' && type.element() == kFloat32) {
    name.remove_suffix(1);
    info = FindIntrinsic(IntrinsicAlias(name));
  }
  const bool fits = info != nullptr && !info->stands_alone && !info->returns_bool &&
                    info->arity == static_cast<int>(args.size()) && type.is_float() && args[0].e.type() == type;
  return fits ? info : nullptr;
}

Expr Extreme(DType type, bool largest) {
  if (type.is_float()) return FloatConst(largest ? FormatOf(type).largest : -FormatOf(type).largest, type);
  if (type.is_bool()) return IntConst(largest, type);
  if (type.code == TypeCode::kUInt) return IntConst(largest ? -1 : 0, type);
  const int64_t low = type.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (type.bits - 1));
  return IntConst(largest ? -(low + 1) : low, type);
}

}  // namespace

// After "T.let(" or "T.Let(".
absl::StatusOr<Parsed> Parser::LetCall() {
  const Token at = Peek();
  const auto bind = [&](const std::string& name, const Parsed& value) {
    const Var var(name, value.e.type());
    Define(name, {.var = var});
    return var;
  };
  const size_t mark = Mark();
  if (AtName() && Peek(1).text == "," && Peek(1).kind == TokenKind::kPunct && !At("T")) {  // T.let(x, value, body)
    const std::string name = Take().text;
    Take();
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(","));
    const Var var = bind(name, value);
    HONE_ASSIGN_OR_RETURN(const Parsed body, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    RollBack(mark);
    return Deeper(at, Expr::Make(LetExpr{var, value.e, body.e}, body.e.type()), {value.depth, body.depth});
  }
  // T.Let(body, where={x: value}): the definitions stand behind their use.
  const size_t body_at = pos_;
  for (int depth = 0; !(depth == 0 && At("where"));) {
    if (Peek().kind == TokenKind::kEnd || Peek().kind == TokenKind::kNewline || (depth == 0 && At(")"))) {
      return Unexpected("where={variable: value}");
    }
    const Token token = Take();
    if (token.kind != TokenKind::kPunct) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
  }
  Take();
  HONE_RETURN_IF_ERROR(Expect("="));
  HONE_RETURN_IF_ERROR(Expect("{"));
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a variable"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  HONE_RETURN_IF_ERROR(Expect("}"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  const size_t end = pos_;
  if (++let_replays_ > kMaxNesting)
    return ErrorAt(at, absl::StrCat("more than ", kMaxNesting, " T.Let in one function"));
  pos_ = body_at;
  const Var var = bind(name, value);
  HONE_ASSIGN_OR_RETURN(const Parsed body, Expression());
  HONE_RETURN_IF_ERROR(Expect(","));
  pos_ = end;
  RollBack(mark);
  return Deeper(at, Expr::Make(LetExpr{var, value.e, body.e}, body.e.type()), {value.depth, body.depth});
}

// After "T.Cast(": (type, value), or in old texts (value, type).
absl::StatusOr<Parsed> Parser::CastCall(const Token& at, const std::string&) {
  DType type;
  Parsed value;
  const bool type_first = Peek().kind == TokenKind::kString;
  if (type_first) {
    HONE_ASSIGN_OR_RETURN(type, TypeText("a type"));
    HONE_RETURN_IF_ERROR(Expect(","));
  }
  HONE_ASSIGN_OR_RETURN(value, Expression());
  if (!type_first) {
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(type, TypeText("a type"));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (type.is_scalar()) type = type.with_lanes(value.e.type().lanes);
  if (type.lanes != value.e.type().lanes)
    return ErrorAt(at, absl::StrCat("a cast from ", ToText(value.e.type()), " to ", ToText(type)));
  return Deeper(at, Expr::Make(Cast{value.e}, type), {value.depth});
}

absl::StatusOr<Parsed> Parser::ChoiceCall(const Token& at, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 3));
  return Choice(at, name == "if_then_else", args[0], args[1], args[2]);
}

absl::StatusOr<Parsed> Parser::RampCall(const Token& at, const std::string&) {
  HONE_ASSIGN_OR_RETURN(Parsed base, Expression());
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(Parsed stride, Expression());
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(const int lanes, Lanes());
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Unify(at, base, stride));
  if (!base.e.type().is_int() || !base.e.type().is_scalar())
    return ErrorAt(at, absl::StrCat("a ramp of ", ToText(base.e.type()), "; expected integers"));
  const DType type = base.e.type().with_lanes(lanes);
  return Deeper(at, Expr::Make(Ramp{base.e, stride.e}, type), {base.depth, stride.depth});
}

absl::StatusOr<Parsed> Parser::BroadcastCall(const Token& at, const std::string&) {
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(const int lanes, Lanes());
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (!value.e.type().is_scalar())
    return ErrorAt(at, absl::StrCat("a broadcast of ", ToText(value.e.type()), "; expected a scalar"));
  const DType type = value.e.type().with_lanes(lanes);
  return Deeper(at, Expr::Make(Broadcast{value.e}, type), {value.depth});
}

// T.min_value("float32"), T.max_value, T.infinity.
absl::StatusOr<Parsed> Parser::LimitCall(const Token& at, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const DType type, TypeText("a type"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (!type.is_scalar()) return ErrorAt(at, absl::StrCat("T.", name, " of a vector; expected a scalar type"));
  if (name == "min_value" || name == "max_value") return Parsed{Extreme(type, name == "max_value")};
  if (!type.is_float()) return ErrorAt(at, absl::StrCat("infinity of ", ToText(type), "; expected a floating type"));
  return Parsed{FloatConst(std::numeric_limits<double>::infinity(), type)};
}

absl::StatusOr<Parsed> Parser::NotCall(const Token& at, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 1));
  if (name == "bitwise_not") return Combine(at, BinaryOp::kBitXor, args[0], {IntConst(-1), 1, true});
  if (!args[0].e.type().is_bool())
    return ErrorAt(at, absl::StrCat("T.Not of ", ToText(args[0].e.type()), "; expected bool"));
  return Deeper(at, Expr::Make(Not{args[0].e}, args[0].e.type()), {args[0].depth});
}

absl::StatusOr<Parsed> Parser::LikelyCall(const Token&, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 1));
  return args[0];
}

// T.call_extern("float32", "expf", x), and T.call_intrin("float32", "tir.exp", x): functions of the mathematical
// library are those of the table in intrinsics.h; the verifier names the others.
absl::StatusOr<Parsed> Parser::NamedCall(const Token& at, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const DType type, TypeText("the type of the call"));
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(const std::string callee, ExpectString("the name of the function"));
  std::vector<Parsed> args;
  if (TakeIf(",")) {
    HONE_ASSIGN_OR_RETURN(args, Arguments(name, -1));
  } else {
    HONE_RETURN_IF_ERROR(Expect(")"));
  }
  if (const IntrinsicInfo* info = LibraryFunction(callee, type, args)) return IntrinsicCall(at, *info, std::move(args));
  Call call{callee, {}};
  int depth = 1;
  for (const Parsed& arg : args) {
    call.args.push_back(arg.e);
    depth = std::max(depth, arg.depth);
  }
  return Deeper(at, Expr::Make(std::move(call), type), {depth});
}

absl::StatusOr<Parsed> Parser::IntrinsicCall(const Token& at, const IntrinsicInfo& info, std::vector<Parsed> args) {
  for (size_t i = 1; i < args.size(); ++i) { HONE_RETURN_IF_ERROR(Unify(at, args[0], args[i])); }
  Call call{std::string(info.name), {}};
  int depth = 1;
  const DType type = args.empty() ? kFloat32 : args[0].e.type();
  for (Parsed& arg : args) {
    HONE_ASSIGN_OR_RETURN(arg, Coerce(at, std::move(arg), type, "an argument"));
    call.args.push_back(arg.e);
    depth = std::max(depth, arg.depth);
  }
  return Deeper(at, Expr::Make(std::move(call), info.returns_bool ? DType::Bool(type.lanes) : type), {depth});
}

absl::StatusOr<Parsed> Parser::ScriptCall() {
  using Form = absl::StatusOr<Parsed> (Parser::*)(const Token& at, const std::string& name);
  static constexpr std::pair<absl::string_view, Form> kForms[] = {
      {"Cast", &Parser::CastCall},
      {"cast", &Parser::CastCall},
      {"Select", &Parser::ChoiceCall},
      {"if_then_else", &Parser::ChoiceCall},
      {"Ramp", &Parser::RampCall},
      {"ramp", &Parser::RampCall},
      {"Broadcast", &Parser::BroadcastCall},
      {"broadcast", &Parser::BroadcastCall},
      {"min_value", &Parser::LimitCall},
      {"max_value", &Parser::LimitCall},
      {"infinity", &Parser::LimitCall},
      {"inf", &Parser::LimitCall},
      {"Not", &Parser::NotCall},
      {"bitwise_not", &Parser::NotCall},
      {"likely", &Parser::LikelyCall},
      {"call_extern", &Parser::NamedCall},
      {"call_pure_extern", &Parser::NamedCall},
      {"call_intrin", &Parser::NamedCall},
      {"call", &Parser::NamedCall},
  };
  Take();
  HONE_RETURN_IF_ERROR(Expect("."));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a function's name"));
  HONE_RETURN_IF_ERROR(Expect("("));
  if (const std::optional<DType> type = ParseDType(name); type.has_value() && type->lanes <= kMaxLanes)
    return TypedConstant(*type);
  if (name == "let" || name == "Let") return LetCall();
  for (const auto& [form, read] : kForms) {
    if (form == name) return (this->*read)(at, name);
  }
  for (const Named& named : kNamed) {
    if (named.name != name) continue;
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 2));
    return Combine(at, named.op, args[0], args[1]);
  }
  const IntrinsicInfo* info = FindIntrinsic(IntrinsicAlias(name));
  if (info == nullptr)
    return ErrorAt(at, absl::StrCat("`T.", name, "` is not known here; expected a function such as T.exp or T.max"));
  HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, info->arity));
  return IntrinsicCall(at, *info, std::move(args));
}

}  // namespace hone
