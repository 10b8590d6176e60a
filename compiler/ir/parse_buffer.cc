// Buffers: their shape, type and scope, and T.match_buffer.
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/support/status_macros.h"

namespace hone {

// `A = T.match_buffer(a, (128, 128), "float32")` of a parameter, or `S = T.match_buffer(A[0:4, 0:4], (4, 4),
// "float32")`.
absl::Status Parser::MatchStatement(BlockParts* block, const std::string& name) {
  const Token at = Peek();
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  const Symbol* source = AtName() ? Find(Peek().text) : nullptr;
  if (source == nullptr) return Unexpected("a handle, or a part of a buffer");
  if (source->handle >= 0) {
    const size_t handle = static_cast<size_t>(source->handle);
    if (block == nullptr || !block->is_function) return ErrorAt(at, "a handle is matched at the start of its function");
    Take();
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(true, ")"));
    if (params_[handle].has_value()) return ErrorAt(at, "this handle is matched already");
    const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
    params_[handle] = buffer;
    Define(name, {.buffer = buffer});
    return ExpectEndOfLine();
  }
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.match_buffer of a part outside of a block; expected it directly in a T.block");
  HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
  BufferSpec spec;
  spec.type = region.buffer.type();
  spec.scope = region.buffer.scope();
  if (TakeIf(",")) {
    HONE_ASSIGN_OR_RETURN(spec, BufferArguments(true, ")"));
  } else {
    HONE_RETURN_IF_ERROR(Expect(")"));
    for (const Range& range : region.region) spec.shape.push_back(range.extent);
  }
  const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
  block->block.matches.push_back({buffer, std::move(region)});
  Define(name, {.buffer = buffer});
  return ExpectEndOfLine();
}

// Shape, type and the rest of what describes a buffer, up to and with `closing`.
absl::StatusOr<Parser::BufferSpec> Parser::BufferArguments(bool shape_first, absl::string_view closing) {
  BufferSpec spec;
  bool has_shape = false;
  int position = 0;
  const auto dimension = [&]() -> absl::Status {
    const Token at = Peek();
    if (at.kind == TokenKind::kString) {  // "n": a symbolic size by its name
      Take();
      const Symbol* known = Find(at.text);
      if (known != nullptr && !known->var) return ErrorAt(at, absl::StrCat("\"", at.text, "\" is no symbolic size"));
      if (known == nullptr) {
        if (function_ == nullptr) return ErrorAt(at, "a symbolic size outside of a function");
        const Var dim(at.text, kInt64);
        function_->dims.push_back(dim);
        Define(at.text, {.var = dim});
        known = Find(at.text);
      }
      spec.shape.push_back(known->var);
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(Expr extent, IntExpression("a dimension"));
    if (const std::optional<int64_t> n = ConstantValue(extent); n.has_value() && *n < 0) {
      return ErrorAt(at, absl::StrCat("a dimension of ", *n, "; expected 0 or more"));
    }
    spec.shape.push_back(std::move(extent));
    return absl::OkStatus();
  };
  const auto shape = [&]() -> absl::Status {
    has_shape = true;
    const bool round = At("("), square = At("[");
    if (!round && !square) return dimension();
    Take();
    const absl::string_view end = round ? ")" : "]";
    while (!At(end)) {
      if (!spec.shape.empty()) {
        HONE_RETURN_IF_ERROR(Expect(","));
        if (At(end)) break;
      }
      if (spec.shape.size() >= 64) return Unexpected("at most 64 dimensions");
      HONE_RETURN_IF_ERROR(dimension());
    }
    return Expect(end);
  };
  const auto scope = [&]() -> absl::Status {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString("a scope"));
    const std::optional<Scope> parsed = ParseScope(text);
    if (!parsed.has_value()) {
      return ErrorAt(at,
                     absl::StrCat("\"", text.substr(0, 40),
                                  "\" is no scope; expected \"global\", \"local\", \"local.thread\" or \"shared\""));
    }
    spec.scope = *parsed;
    return absl::OkStatus();
  };
  while (!At(closing)) {
    if (position > 0) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    ++position;
    const Token at = Peek();
    const bool keyword = AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct;
    const std::string key = keyword         ? at.text
                            : position == 1 ? "shape"
                            : position == 2 ? "dtype"
                            : position == 3 ? "scope"
                                            : "";
    if (keyword) {
      Take();
      Take();
    }
    if (key == "shape") {
      HONE_RETURN_IF_ERROR(shape());
    } else if (key == "dtype") {
      HONE_ASSIGN_OR_RETURN(spec.type, TypeText("a type"));
    } else if (key == "scope") {
      HONE_RETURN_IF_ERROR(scope());
    } else if (key == "align" || key == "offset_factor" || key == "annotations" || key == "buffer_type" ||
               key == "data_alignment") {
      HONE_RETURN_IF_ERROR(AttrValue().status());
    } else {
      return ErrorAt(at, absl::StrCat("a buffer's `", key.empty() ? at.text : key,
                                      "` is not supported: buffers are contiguous; expected shape, dtype or scope"));
    }
  }
  if (!has_shape && shape_first) return Unexpected("a shape such as (128, 64)");
  HONE_RETURN_IF_ERROR(Expect(closing));
  return spec;
}

}  // namespace hone
