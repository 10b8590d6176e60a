// Buffers: their shape, type and scope, and T.match_buffer.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/limits.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

// `A = T.match_buffer(a, (128, 128), "float32")` of a parameter.
absl::Status Parser::MatchParameter(BlockParts* block, const std::string& name, size_t handle) {
  const Token at = Peek();
  if (block == nullptr || !block->is_function) return ErrorAt(at, "a handle is matched at the start of its function");
  Take();
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(")"));
  if (params_[handle].has_value()) return ErrorAt(at, "this handle is matched already");
  HONE_ASSIGN_OR_RETURN(const Buffer buffer, NewBuffer(name, std::move(spec)));
  params_[handle] = buffer;
  return ExpectEndOfLine();
}

// `S = T.match_buffer(A[0:4, 0:4], (4, 4), "float32")`, or of a parameter.
absl::Status Parser::MatchStatement(BlockParts* block, const std::string& name) {
  const Token at = Peek();
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  const Symbol* source = AtName() ? Find(Peek().text) : nullptr;
  if (source == nullptr) return Unexpected("a handle, or a part of a buffer");
  if (source->handle >= 0) return MatchParameter(block, name, static_cast<size_t>(source->handle));
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.match_buffer of a part outside of a block; expected it directly in a T.block");
  HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
  BufferSpec spec;
  spec.type = region.buffer.type();
  spec.scope = region.buffer.scope();
  if (TakeIf(",")) {
    HONE_ASSIGN_OR_RETURN(spec, BufferArguments(")"));
  } else {
    HONE_RETURN_IF_ERROR(Expect(")"));
    for (const Range& range : region.region) spec.shape.push_back(range.extent);
  }
  const std::vector<Expr> strides = ContiguousStrides(region.buffer.shape());
  std::vector<Expr> start;
  for (const Range& range : region.region) start.push_back(range.min);
  const size_t left_out = strides.size() - std::min(strides.size(), spec.shape.size());
  View place{region.buffer,
             {strides.begin() + static_cast<ptrdiff_t>(left_out), strides.end()},
             FlatIndex(start, strides, IntConst(0))};
  HONE_RETURN_IF_ERROR(RequireLayout(spec, place.strides, place.offset));
  const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
  matched_.emplace(buffer.id(), std::move(place));
  block->block.matches.push_back({buffer, std::move(region)});
  Define(name, {.buffer = buffer});
  return ExpectEndOfLine();
}

// A symbolic size by its name, which may be its first mention.
absl::StatusOr<Expr> Parser::NamedSize(const Token& name) {
  const Symbol* known = Find(name.text);
  if (known != nullptr && !known->var) return ErrorAt(name, absl::StrCat("\"", name.text, "\" is no symbolic size"));
  if (known != nullptr) return Expr(known->var);
  if (function_ == nullptr) return ErrorAt(name, "a symbolic size outside of a function");
  const Var dim(name.text, kInt64, SizeRange{});
  function_->dims.push_back(dim);
  Define(name.text, {.var = dim, .is_free = true});
  return Expr(dim);
}

absl::StatusOr<Expr> Parser::Dimension() {
  const Token at = Peek();
  if (at.kind == TokenKind::kString) return NamedSize(Take());
  HONE_ASSIGN_OR_RETURN(Expr extent, IntExpression("a dimension"));
  if (const std::optional<int64_t> n = ConstantValue(extent); n.has_value() && *n < 0) {
    return ErrorAt(at, absl::StrCat("a dimension of ", *n, "; expected 0 or more"));
  }
  return extent;
}

absl::Status Parser::BufferShape(BufferSpec& spec) {
  const bool round = At("("), square = At("[");
  if (!round && !square) {
    HONE_ASSIGN_OR_RETURN(Expr extent, Dimension());
    spec.shape.push_back(std::move(extent));
    return absl::OkStatus();
  }
  Take();
  const absl::string_view end = round ? ")" : "]";
  while (!At(end)) {
    if (!spec.shape.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(end)) break;
    }
    if (spec.shape.size() >= kMostBufferDimensions)
      return Unexpected(absl::StrCat("at most ", kMostBufferDimensions, " dimensions"));
    HONE_ASSIGN_OR_RETURN(Expr extent, Dimension());
    spec.shape.push_back(std::move(extent));
  }
  return Expect(end);
}

absl::StatusOr<Scope> Parser::ScopeText() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString("a scope"));
  // Whether the size of shared memory is fixed when the kernel is built or when it is launched changes no program, nor
  // does it which registers of a warp hold a fragment, or that it is in registers.
  const bool is_fragment = text == "wmma.matrix_a" || text == "wmma.matrix_b" || text == "wmma.accumulator";
  const std::optional<Scope> scope = text == "shared.dyn" ? Scope::kShared
                                     : is_fragment        ? Scope::kWarp
                                                          : ParseScope(text);
  if (scope.has_value()) return *scope;
  return ErrorAt(
      at, absl::StrCat("\"", text.substr(0, 40),
                       "\" is no scope; expected \"global\", \"local\", \"local.thread\", \"shared\" or \"warp\""));
}

absl::Status Parser::BufferArgument(BufferSpec& spec, const std::string& key) {
  if (key == "shape") return BufferShape(spec);
  if (key == "dtype") {
    HONE_ASSIGN_OR_RETURN(spec.type, TypeText("a type"));
  } else if (key == "scope") {
    HONE_ASSIGN_OR_RETURN(spec.scope, ScopeText());
  } else if (key == "strides") {
    HONE_RETURN_IF_ERROR(GivenStrides(spec));
  } else if (key == "elem_offset") {
    if (TakeIf("None")) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(spec.offset, GivenNumber());
  } else if (key == "data") {
    if (TakeIf("None")) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(spec.data, ExpectName("a buffer in whose memory it lies"));
    if (TakeIf(".")) HONE_RETURN_IF_ERROR(Expect("data"));
  } else {  // align, offset_factor, annotations, buffer_type
    HONE_RETURN_IF_ERROR(AttrValue().status());
  }
  return absl::OkStatus();
}

// Shape, type and the rest of what describes a buffer, up to and with `closing`.
absl::StatusOr<Parser::BufferSpec> Parser::BufferArguments(absl::string_view closing) {
  static constexpr absl::string_view kPositions[] = {"shape", "dtype", "scope"};
  static constexpr absl::string_view kKeys[] = {"shape",         "dtype",          "scope",      "strides",
                                                "elem_offset",   "data",           "align",      "annotations",
                                                "offset_factor", "data_alignment", "buffer_type"};
  BufferSpec spec;
  bool has_shape = false;
  for (size_t position = 0; !At(closing); ++position) {
    if (position > 0) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    const Token at = Peek();
    const bool is_keyword = AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct;
    const std::string key(is_keyword                         ? absl::string_view(at.text)
                          : position < std::size(kPositions) ? kPositions[position]
                                                             : "");
    if (std::ranges::find(kKeys, key) == std::end(kKeys)) {
      return ErrorAt(at, absl::StrCat("a buffer has no `", key.empty() ? at.text : key,
                                      "` here; expected shape, dtype, scope, strides, elem_offset or data"));
    }
    if (is_keyword) {
      Take();
      Take();
    }
    has_shape = has_shape || key == "shape";
    HONE_RETURN_IF_ERROR(BufferArgument(spec, key));
  }
  if (!has_shape) return Unexpected("a shape such as (128, 64)");
  HONE_RETURN_IF_ERROR(Expect(closing));
  return spec;
}

}  // namespace hone
