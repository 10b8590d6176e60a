// `name = ...`: stores, lets, and what a name is made for.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

absl::StatusOr<Stmt> Parser::StoreStatement(const Token& at, const Symbol& target) {
  const Buffer buffer = target.buffer;
  Store store{buffer, {}, Expr(), Expr()};
  IndexList list;
  Parsed value;
  Token value_at;
  std::optional<BinaryOp> update;
  if (TakeIf("[")) {
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    if (At("+=")) update = BinaryOp::kAdd;
    if (At("-=")) update = BinaryOp::kSub;
    if (At("*=")) update = BinaryOp::kMul;
    if (update.has_value()) {
      value_at = Take();
    } else {
      HONE_RETURN_IF_ERROR(Expect("="));
    }
    if (!update.has_value()) value_at = Peek();
    HONE_ASSIGN_OR_RETURN(value, Expression());
  } else {
    Take();
    if (!TakeIf("vstore")) return Unexpected(absl::StrCat("`[` or `.vstore(` after buffer `", buffer.name(), "`"));
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect("["));
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    HONE_RETURN_IF_ERROR(Expect(","));
    value_at = Peek();
    HONE_ASSIGN_OR_RETURN(value, Expression());
    if (TakeIf(",")) HONE_RETURN_IF_ERROR(Mask(list));
    HONE_RETURN_IF_ERROR(Expect(")"));
  }
  HONE_ASSIGN_OR_RETURN(const DType type, AccessType(at, buffer, list));
  if (update.has_value()) {
    const auto [holder, indices] = Resolve(buffer, list.indices);
    const Expr old = Expr::Make(Load{holder, indices, Expr()}, type);
    HONE_ASSIGN_OR_RETURN(value, Combine(value_at, *update, {old, list.depth + 1}, std::move(value)));
  }
  HONE_ASSIGN_OR_RETURN(value, Coerce(value_at, std::move(value), type, "a value to store"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  auto [holder, indices] = Resolve(buffer, std::move(list.indices));
  return Stmt::Make(Store{std::move(holder), std::move(indices), value.e, list.mask});
}

// After "x:": `T.int32 = value`.
absl::StatusOr<Stmt> Parser::TypedLet(const std::string& name, std::optional<Stmt>& wrap) {
  HONE_RETURN_IF_ERROR(Expect("T"));
  HONE_RETURN_IF_ERROR(Expect("."));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string text, ExpectName("a type"));
  std::optional<DType> type = ParseDType(text);
  if (text == "let" && TakeIf("[")) {  // x: T.let[T.float32] = value, the newest spelling
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(const std::string inner, ExpectName("a type"));
    HONE_RETURN_IF_ERROR(Expect("]"));
    type = ParseDType(inner);
  }
  if (!type.has_value() || type->lanes > kMaxLanes) return ErrorAt(at, absl::StrCat("`T.", text, "` is no type"));
  HONE_RETURN_IF_ERROR(Expect("="));
  HONE_ASSIGN_OR_RETURN(Parsed value, Expression());
  HONE_ASSIGN_OR_RETURN(value, Coerce(at, std::move(value), *type, "a value"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  const Var var(name, *type);
  Define(name, {.var = var});
  wrap = Stmt::Make(Let{var, value.e, Stmt()});
  return Stmt();
}

absl::StatusOr<Stmt> Parser::AssignStatement(BlockParts* block, std::optional<Stmt>& wrap) {
  const Token at = Peek();
  std::vector<std::string> names = {Take().text};
  if (At("[") || At(".")) {
    const Symbol* symbol = Find(names[0]);
    if (symbol == nullptr || !symbol->buffer)
      return ErrorAt(at, absl::StrCat("`", names[0], "` is no buffer defined here"));
    return StoreStatement(at, Symbol(*symbol));
  }
  while (TakeIf(",")) {
    if (At("=")) break;
    HONE_ASSIGN_OR_RETURN(std::string name, ExpectName("a variable's name"));
    names.push_back(std::move(name));
  }
  if (TakeIf(":")) return TypedLet(names[0], wrap);
  HONE_RETURN_IF_ERROR(Expect("="));
  if (At("T") && Peek(1).text == "." && Peek(2).text == "axis") {
    Take();
    Take();
    HONE_RETURN_IF_ERROR(AxisStatement(block, names));
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    return Stmt();
  }
  if (names.size() != 1) {
    if (!AtSize(block)) return ErrorAt(at, "found several names; expected one, except for sizes and T.axis.remap");
    return SizesStatement(names);
  }
  return NameStatement(names[0], block, wrap);
}

// After "name =": what the name is given to, or a value.
absl::StatusOr<Stmt> Parser::NameStatement(const std::string& name, BlockParts* block, std::optional<Stmt>& wrap) {
  const bool is_script = At("T") && Peek(1).text == ".";
  const std::string function = is_script ? WithoutSblock(Peek(2).text) : "";
  if (function == "match_buffer") {
    HONE_RETURN_IF_ERROR(MatchStatement(block, name));
    return Stmt();
  }
  if (function == "alloc_buffer" || function == "allocate" || function == "decl_buffer" || function == "Buffer") {
    return BufferStatement(name, function, block, wrap);
  }
  if (function == "env_thread") {
    HONE_RETURN_IF_ERROR(EnvThread(name));
    return Stmt();
  }
  if (function == "launch_thread") {
    for (int i = 0; i < 3; ++i) Take();
    HONE_ASSIGN_OR_RETURN(For launch, LaunchThread());
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    EnterLaunch(launch, name);
    wrap = Stmt::Make(std::move(launch));
    return Stmt();
  }
  if (AtSize(block)) return SizesStatement({name});
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  const Var var(name, value.e.type());
  Define(name, {.var = var});
  wrap = Stmt::Make(Let{var, value.e, Stmt()});
  return Stmt();
}

bool Parser::AtSize(const BlockParts* block) const {
  return block != nullptr && At("T") && Peek(1).text == "." && Peek(3).text == "(" &&
         (Peek(4).text == ")" || Peek(2).text == "var");
}

// At "T.int32()" or "T.var("int32")", one for each name: a symbolic size, or a stride that a buffer gives a meaning.
absl::StatusOr<Stmt> Parser::SizesStatement(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (i > 0) HONE_RETURN_IF_ERROR(Expect(","));
    const Token at = Peek();
    const std::string function = Peek(2).text;
    for (int token = 0; token < 4; ++token) Take();
    const std::optional<DType> type = ParseDType(function == "var" ? Take().text : function);
    if (!type.has_value() || !type->is_int() || !type->is_scalar())
      return ErrorAt(at, "a symbolic size is a T.int32() or T.int64()");
    HONE_RETURN_IF_ERROR(Expect(")"));
    const Var dim(name, *type, SizeRange{});
    function_->dims.push_back(dim);
    Define(name, {.var = dim, .is_free = true});
  }
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  return Stmt();
}

}  // namespace hone
