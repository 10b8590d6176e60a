// @T.prim_func: a tensor function's parameters and body.
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

// At the type of a symbolic size, `T.int32` or `T.int32(1, 512)`, `at` tokens from here: its range.
absl::StatusOr<SizeRange> Parser::RangeOfSize(int at) {
  const int open = at + 3;
  if (Peek(open).kind != TokenKind::kPunct || Peek(open).text != "(") return SizeRange{};
  SizeRange range;
  const bool well_formed = Peek(open + 2).text == "," && Peek(open + 4).text == ")" &&
                           Peek(open + 1).kind == TokenKind::kInt && Peek(open + 3).kind == TokenKind::kInt &&
                           absl::SimpleAtoi(Peek(open + 1).text, &range.min) &&
                           absl::SimpleAtoi(Peek(open + 3).text, &range.max);
  if (!well_formed || range.min < 0 || range.max < range.min)
    return ErrorAt(Peek(open), "the range of a symbolic size is (least, greatest), two numbers such as (1, 512)");
  return range;
}

// `n: T.int32` anywhere in the list names a symbolic size, which shapes before it may mention.
absl::Status Parser::DimensionNames(PrimFunc& f) {
  int depth = 0;
  for (int i = 0; Peek(i).kind != TokenKind::kEnd && Peek(i).kind != TokenKind::kNewline; ++i) {
    const auto is = [&](int k, absl::string_view text) {
      return Peek(k).kind != TokenKind::kString && Peek(k).text == text;
    };
    if (is(i, "(") || is(i, "[")) ++depth;
    if (is(i, ")") || is(i, "]")) --depth;
    if (depth < 0) break;
    if (depth != 0 || Peek(i).kind != TokenKind::kName || !is(i + 1, ":") || !is(i + 2, "T") || !is(i + 3, "."))
      continue;
    if (!is(i + 4, "int32") && !is(i + 4, "int64")) continue;
    HONE_ASSIGN_OR_RETURN(const SizeRange range, RangeOfSize(i + 2));
    const Var dim(Peek(i).text, is(i + 4, "int32") ? kInt32 : kInt64, range);
    if (Find(dim.name()) != nullptr) return ErrorAt(Peek(i), absl::StrCat("`", dim.name(), "` is there twice"));
    f.dims.push_back(dim);
    Define(dim.name(), {.var = dim});
  }
  return absl::OkStatus();
}

absl::Status Parser::Parameters(PrimFunc& f) {
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_RETURN_IF_ERROR(DimensionNames(f));
  while (!TakeIf(")")) {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a parameter's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(const std::string type, ExpectName("Buffer, handle, int32 or int64"));
    const Symbol* earlier = Find(name);
    const std::optional<DType> scalar = ParseDType(type);
    const bool is_dim = type == "int32" || type == "int64";
    if (earlier != nullptr && !is_dim) return ErrorAt(at, absl::StrCat("`", name, "` is there twice"));
    if (type == "handle") {
      Define(name, {.handle = static_cast<int>(params_.size())});
      params_.emplace_back();
    } else if (type == "Buffer") {
      const std::string closing = At("[") ? "]" : ")";
      HONE_RETURN_IF_ERROR(Expect(closing == "]" ? "[" : "("));
      HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(closing));
      HONE_ASSIGN_OR_RETURN(const Buffer buffer, NewBuffer(name, std::move(spec)));
      params_.emplace_back(buffer);
    } else if (scalar.has_value() && scalar->is_scalar() && !is_dim) {  // kernels take buffers: one of one element
      scalars_.emplace_back(name, *scalar, std::vector<Expr>{});
      Define(name, {.buffer = scalars_.back(), .is_scalar = true});
    } else if (!is_dim) {
      return ErrorAt(at, absl::StrCat("parameter `", name, "` is a T.", type,
                                      "; expected T.Buffer, T.handle, or a number such as T.int64 or T.float32"));
    } else if (At("(")) {  // a range, which DimensionNames has read
      for (int i = 0; i < 5; ++i) Take();
    }
    if (!At(")")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  return absl::OkStatus();
}

absl::StatusOr<PrimFunc> Parser::Function(bool wrap_root) {
  HONE_RETURN_IF_ERROR(Expect("def"));
  PrimFunc f;
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(f.name, ExpectFunctionName());
  const size_t mark = Mark();
  params_.clear();
  scalars_.clear();
  views_.clear();
  function_ = &f;
  HONE_RETURN_IF_ERROR(Parameters(f));
  if (TakeIf("->")) {
    while (!At(":") && Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) Take();
  }
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(f.body, FunctionBody(f, wrap_root));
  f.params = scalars_;  // inputs come first
  for (std::optional<Buffer>& param : params_) {
    if (!param.has_value())
      return ErrorAt(at, absl::StrCat("a T.handle of `", f.name, "` is given no shape; add T.match_buffer"));
    f.params.push_back(*std::move(param));
  }
  CountOutputs(f);
  RollBack(mark);
  function_ = nullptr;
  return f;
}

// TVM does not say which parameters are outputs: those at the end that are written, where there are several.
void Parser::CountOutputs(PrimFunc& f) const {
  if (f.attrs.count("outputs") != 0) return;
  std::set<uint64_t> written;
  ForEachStmt(f.body, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) written.insert(store->buffer.id());
    if (const BlockRealize* realize = s.As<BlockRealize>()) {
      for (const BufferRegion& region : realize->block.writes) written.insert(region.buffer.id());
    }
    return true;
  });
  int64_t outputs = 0;
  while (outputs < static_cast<int64_t>(f.params.size()) &&
         written.count(f.params[f.params.size() - 1 - static_cast<size_t>(outputs)].id()) != 0) {
    ++outputs;
  }
  if (outputs > 1) f.attrs["outputs"] = outputs;
}

absl::StatusOr<Stmt> Parser::FunctionBody(PrimFunc& f, bool wrap_root) {
  BlockParts root;
  root.is_function = true;
  HONE_ASSIGN_OR_RETURN(Stmt body, Suite(&root));
  const BlockRealize* outer = body.As<BlockRealize>();
  const bool has_root = outer != nullptr && outer->block.name == "root" && outer->block.iters.empty();
  bool has_blocks = false;
  ForEachStmt(body, [&](const Stmt& s) {
    has_blocks = has_blocks || s.As<BlockRealize>() != nullptr;
    return !has_blocks;
  });
  const bool needs_root = !root.block.allocs.empty() || (has_blocks && !has_root);
  if (!needs_root || !wrap_root) {
    if (!root.block.allocs.empty()) return ErrorAt(Peek(), "T.alloc_buffer without a root block; use T.allocate");
    return body;
  }
  root.block.name = "root";
  root.block.body = std::move(body);
  return Stmt::Make(BlockRealize{{}, True(), std::move(root.block)});
}

}  // namespace hone
