// Elements and parts of buffers: what stands between brackets.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

// After "[": the indices of one access. A slice such as A[0:16] is a vector of neighbours.
absl::StatusOr<Parser::IndexList> Parser::Indices(const Token& at, const Buffer& buffer) {
  HONE_ASSIGN_OR_RETURN(std::vector<Subscript> parts, Subscripts(at, buffer));
  IndexList list;
  for (Subscript& part : parts) {
    if (part.extent) {
      const std::optional<int64_t> n = ConstantValue(part.extent);
      if (!n.has_value() || *n < 1 || *n > kMaxLanes) {
        return ErrorAt(at, absl::StrCat("a slice of a value needs a constant length from 1 to ", kMaxLanes));
      }
      if (*n > 1) part.min = MakeRamp(part.min, IntConst(1, part.min.type()), static_cast<int>(*n));
    }
    const int lanes = part.min.type().lanes;
    if (lanes != 1 && list.lanes != 1 && lanes != list.lanes) {
      return ErrorAt(at, absl::StrCat("indices of ", list.lanes, " and of ", lanes, " lanes"));
    }
    list.depth = std::max(list.depth, part.depth);
    list.lanes = std::max(list.lanes, lanes);
    list.indices.push_back(part.min);
  }
  return list;
}

// After ".vload(" or ".vstore(" and the indices: `predicate=mask`.
absl::Status Parser::Mask(IndexList& list) {
  if (TakeIf("predicate")) HONE_RETURN_IF_ERROR(Expect("="));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  list.mask = value.e;
  const DType type = list.mask.type();
  if (!type.is_bool()) return ErrorAt(at, absl::StrCat("a mask of type ", ToText(type), "; expected bool"));
  if (list.lanes != type.lanes && list.lanes != 1) {
    return ErrorAt(at, absl::StrCat("a mask of ", type.lanes, " lanes; expected ", list.lanes));
  }
  list.depth = std::max(list.depth, value.depth);
  list.lanes = type.lanes;
  return absl::OkStatus();
}

absl::StatusOr<DType> Parser::AccessType(const Token& at, const Buffer& buffer, const IndexList& list) {
  const int lanes = buffer.type().lanes * list.lanes;
  if (lanes > kMaxLanes) return ErrorAt(at, absl::StrCat("a vector of more than ", kMaxLanes, " lanes"));
  return buffer.type().with_lanes(lanes);
}

absl::StatusOr<Parsed> Parser::LoadFrom(const Token& at, const Buffer& buffer) {
  IndexList list;
  if (TakeIf("[")) {
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
  } else if (At(".") && Peek(1).text == "vload") {
    Take();
    Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect("["));
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    if (TakeIf(",")) HONE_RETURN_IF_ERROR(Mask(list));
    HONE_RETURN_IF_ERROR(Expect(")"));
  } else {
    return Unexpected(absl::StrCat("`[` after buffer `", buffer.name(), "`"));
  }
  HONE_ASSIGN_OR_RETURN(const DType type, AccessType(at, buffer, list));
  const int view_depth = views_.contains(buffer.id()) ? 2 * buffer.rank() + 4 : 0;
  auto [holder, indices] = Resolve(buffer, std::move(list.indices));
  return Deeper(at, Expr::Make(Load{std::move(holder), std::move(indices), list.mask}, type),
                {list.depth + view_depth});
}

// After "[": up to and with "]". As many as the buffer has dimensions.
absl::StatusOr<std::vector<Parser::Subscript>> Parser::Subscripts(const Token& at, const Buffer& buffer) {
  constexpr absl::string_view closing = "]";
  std::vector<Subscript> parts;
  const bool empty = At("(") && Peek(1).text == ")" && Peek(1).kind == TokenKind::kPunct;
  if (empty) {
    Take();
    Take();
  }
  while (!At(closing)) {
    if (empty || (!parts.empty() && !At(","))) return Unexpected(absl::StrCat("`,` or `", closing, "`"));
    if (!parts.empty()) Take();
    if (At(closing)) break;
    if (static_cast<int>(parts.size()) == buffer.rank()) {
      return ErrorAt(at, absl::StrCat("`", buffer.name(), "` has ", buffer.rank(), " dimensions; found more indices"));
    }
    const Token index_at = Peek();
    Subscript part;
    Expr end;
    if (At(":")) {
      part.min = IntConst(0);
    } else {
      HONE_ASSIGN_OR_RETURN(const Parsed index, Expression());
      if (!index.e.type().is_int()) {
        return ErrorAt(index_at, absl::StrCat("an index of type ", ToText(index.e.type()), "; expected an integer"));
      }
      part.min = index.e;
      part.depth = index.depth;
    }
    if (TakeIf(":")) {
      if (At(",") || At(closing)) {
        end = buffer.shape()[parts.size()];
      } else {
        HONE_ASSIGN_OR_RETURN(end, IntExpression("a slice's end"));
      }
      if (!part.min.type().is_scalar()) return ErrorAt(index_at, "a slice of vectors; expected scalars");
      part.extent = ExtentOf(part.min, end);
      if (!part.extent) {
        HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(index_at, BinaryOp::kSub, {end}, {part.min}));
        part.extent = length.e;
      }
    }
    parts.push_back(std::move(part));
  }
  HONE_RETURN_IF_ERROR(Expect(closing));
  if (static_cast<int>(parts.size()) != buffer.rank()) {
    return ErrorAt(
        at, absl::StrCat("`", buffer.name(), "` has ", buffer.rank(), " dimensions; found ", parts.size(), " indices"));
  }
  return parts;
}

}  // namespace hone
