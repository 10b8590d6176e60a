// Where the elements of a buffer lie: strides, offsets, and buffers that are views of others' memory.
//
// Hone's buffers are row-major and contiguous. A text may say so in numbers, or leave the numbers to variables
// (strides=("s0", "s1")), which then stand for the contiguous ones. Other numbers are of a view, whose indices are
// rewritten as indices of the buffer that it is a view of, or say how the memory of a parameter or of a buffer of the
// program's own is used: in rows that are longer than what is used of them where the strides allow, and otherwise in
// one dimension.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"
#include "compiler/text/text.h"

namespace hone {

std::vector<Expr> ContiguousStrides(const std::vector<Expr>& shape) {
  std::vector<Expr> strides(shape.size());
  Expr stride = IntConst(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = shape[i] * stride;
  }
  return strides;
}

Expr FlatIndex(const std::vector<Expr>& indices, const std::vector<Expr>& strides, Expr offset) {
  const auto is_int32 = [](const Expr& e) { return e.type().element() == kInt32; };
  const bool narrow =
      is_int32(offset) && std::ranges::all_of(indices, is_int32) && std::ranges::all_of(strides, is_int32);
  int lanes = 1;
  for (const Expr& index : indices) lanes = std::max(lanes, int{index.type().lanes});
  const auto as_index = [&](const Expr& e) {
    const Expr wide = MakeCast((narrow ? kInt32 : kInt64).with_lanes(e.type().lanes), e);
    return wide.type().lanes == lanes ? wide : MakeBroadcast(wide, lanes);
  };
  Expr flat = as_index(offset);
  for (size_t i = 0; i < indices.size(); ++i) flat = flat + as_index(indices[i]) * as_index(strides[i]);
  return flat;
}

namespace {

// The index in each dimension of a contiguous buffer of the element at `flat`.
std::vector<Expr> Unflatten(const Expr& flat, const std::vector<Expr>& shape) {
  if (shape.size() == 1) return {flat};
  const auto spread = [&](const Expr& e) {
    const Expr wide = MakeCast(flat.type().element(), e);
    return flat.type().is_scalar() ? wide : MakeBroadcast(wide, flat.type().lanes);
  };
  const std::vector<Expr> strides = ContiguousStrides(shape);
  std::vector<Expr> indices;
  for (size_t i = 0; i < shape.size(); ++i) {
    const Expr rows = FloorDiv(flat, spread(strides[i]));
    indices.push_back(i == 0 ? rows : FloorMod(rows, spread(shape[i])));
  }
  return indices;
}

bool SameShape(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) {
    const std::optional<int64_t> n = ConstantValue(x), m = ConstantValue(y);
    return (n.has_value() && n == m) || StructuralEqual(x, y);
  });
}

// The shape of rows that are as long as the strides say: memory with gaps between rows is that of longer rows, whose
// last elements are not used. nullopt where strides are no numbers, or each is no multiple of the next.
std::optional<std::vector<Expr>> ShapeWithGaps(const std::vector<Expr>& shape, const std::vector<Expr>& strides) {
  std::vector<Expr> longer = shape;
  std::optional<int64_t> inner = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const std::optional<int64_t> stride = ConstantValue(strides[i]);
    if (!stride.has_value() || *stride < 1 || *stride % *inner != 0) return std::nullopt;
    const bool is_last = i + 1 == shape.size();
    if (is_last && *stride != 1) return std::nullopt;
    if (!is_last) {
      const std::optional<int64_t> extent = ConstantValue(shape[i + 1]);
      if (!extent.has_value() || *stride / *inner < *extent) return std::nullopt;
      longer[i + 1] = IntConst(*stride / *inner, shape[i + 1].type());
    }
    inner = stride;
  }
  return longer;
}

// How many elements lie from the first to the last one. nullopt where sizes or strides are no numbers, where that is
// beyond what an int64 counts, or where two elements would lie in one place, as far as sizes and strides tell.
std::optional<int64_t> Span(const std::vector<Expr>& shape, const std::vector<Expr>& strides) {
  std::vector<std::pair<int64_t, int64_t>> stride_and_extent;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::optional<int64_t> extent = ConstantValue(shape[i]), stride = ConstantValue(strides[i]);
    if (!extent.has_value() || !stride.has_value()) return std::nullopt;
    if (*extent != 1) stride_and_extent.emplace_back(*stride, *extent);
  }
  std::ranges::sort(stride_and_extent);
  int64_t span = 1;
  for (const auto& [stride, extent] : stride_and_extent) {
    int64_t more;
    if (extent < 1 || stride < span || __builtin_mul_overflow(stride, extent - 1, &more) ||
        __builtin_add_overflow(span, more, &span)) {
      return std::nullopt;
    }
  }
  return span;
}

}  // namespace

// A number, or the name of a variable in quotes or without.
absl::StatusOr<Parser::Given> Parser::GivenNumber() {
  const Token at = Peek();
  if (at.kind == TokenKind::kString) {
    HONE_ASSIGN_OR_RETURN(Expr size, NamedSize(Take()));
    return Given{at, std::move(size)};
  }
  HONE_ASSIGN_OR_RETURN(Expr value, IntExpression("a stride or an offset"));
  return Given{at, std::move(value)};
}

absl::Status Parser::GivenStrides(BufferSpec& spec) {
  if (TakeIf("None")) return absl::OkStatus();
  const Token at = Peek();
  const absl::string_view closing = At("[") ? "]" : ")";
  if (!TakeIf("[")) HONE_RETURN_IF_ERROR(Expect("("));
  while (!At(closing)) {
    if (!spec.strides.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    HONE_ASSIGN_OR_RETURN(Given stride, GivenNumber());
    spec.strides.push_back(std::move(stride));
  }
  Take();
  if (spec.strides.empty() || spec.strides.size() == spec.shape.size()) return absl::OkStatus();
  return ErrorAt(at, absl::StrCat("found ", spec.strides.size(), " strides for ", spec.shape.size(),
                                  " dimensions; expected one for each, after the shape"));
}

absl::Status Parser::Require(const Given& given, const Expr& actual, absl::string_view what) {
  const DType type = given.value.type();
  HONE_ASSIGN_OR_RETURN(const Parsed same, Coerce(given.at, {actual}, type, what));
  if (const VarRef* ref = given.value.As<VarRef>()) {
    const Symbol* symbol = Find(ref->var.name());
    const bool sizes_something = std::ranges::any_of(params_, [&](const std::optional<Buffer>& param) {
      return param.has_value() &&
             std::ranges::any_of(param->shape(), [&](const Expr& extent) { return UsesVar(extent, ref->var); });
    });
    if (symbol != nullptr && symbol->var == ref->var && symbol->is_free && !sizes_something) {
      if (function_ != nullptr) std::erase(function_->dims, ref->var);
      symbols_[ref->var.name()].back() = {.meaning = same.e};
      return absl::OkStatus();
    }
  }
  if (CompareSums(SumOf(given.value), SumOf(same.e)) == 0) return absl::OkStatus();
  return ErrorAt(given.at, absl::StrCat("found ", what, " ", ToText(given.value), "; expected ", ToText(same.e),
                                        ": buffers are row-major and contiguous"));
}

absl::Status Parser::RequireLayout(const BufferSpec& spec, const std::vector<Expr>& strides, const Expr& offset) {
  for (size_t i = 0; i < spec.strides.size() && i < strides.size(); ++i) {
    const bool is_one = IsConst(spec.shape[i], 1) && ConstantValue(spec.strides[i].value).has_value();
    if (!is_one) HONE_RETURN_IF_ERROR(Require(spec.strides[i], strides[i], "a stride"));
  }
  if (spec.offset.has_value()) return Require(*spec.offset, offset, "an offset");
  return absl::OkStatus();
}

absl::StatusOr<Buffer> Parser::NewBuffer(const std::string& name, BufferSpec spec) {
  if (!spec.data.empty()) return Unexpected("a buffer with memory of its own; one with `data` is a statement");
  std::vector<Expr> strides = ContiguousStrides(spec.shape);
  for (size_t i = 0; i < spec.strides.size(); ++i) {
    if (!IsConst(spec.shape[i], 1)) strides[i] = spec.strides[i].value;
  }
  const std::optional<int64_t> number = spec.offset ? ConstantValue(spec.offset->value) : std::nullopt;
  const int64_t offset = number.value_or(0);
  if (std::optional<std::vector<Expr>> longer = ShapeWithGaps(spec.shape, strides); longer && offset == 0) {
    spec.shape = *std::move(longer);
    spec.strides.clear();
  } else if (const std::optional<int64_t> span = Span(spec.shape, strides);
             span && offset >= 0 && !spec.shape.empty()) {
    int64_t size;
    if (__builtin_add_overflow(*span, offset, &size)) return ErrorAt(spec.offset->at, "an offset that no memory has");
    if (spec.offset && !number) HONE_RETURN_IF_ERROR(Require(*spec.offset, IntConst(0), "an offset"));
    const DType index = size > std::numeric_limits<int32_t>::max() ? kInt64 : spec.shape[0].type();
    const Buffer memory(name, spec.type, {IntConst(size, index)}, spec.scope);
    const Buffer view(name, spec.type, std::move(spec.shape), spec.scope);
    views_.emplace(view.id(), View{memory, std::move(strides), IntConst(offset, index)});
    Define(name, {.buffer = view});
    return memory;
  }
  HONE_RETURN_IF_ERROR(RequireLayout(spec, ContiguousStrides(spec.shape), IntConst(0)));
  const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
  Define(name, {.buffer = buffer});
  return buffer;
}

absl::StatusOr<Parsed> Parser::PlaceOf(const Buffer& buffer) {
  Take();
  View place{buffer, ContiguousStrides(buffer.shape()), IntConst(0)};
  for (const auto* places : {&views_, &matched_}) {
    if (const auto found = places->find(buffer.id()); found != places->end()) place = found->second;
  }
  const Token at = Take();
  if (at.text == "elem_offset") return Meaning(at, place.offset);
  HONE_RETURN_IF_ERROR(Expect("["));
  HONE_ASSIGN_OR_RETURN(const Expr number, IntExpression("the number of a dimension"));
  HONE_RETURN_IF_ERROR(Expect("]"));
  const std::optional<int64_t> dimension = ConstantValue(number);
  if (dimension && *dimension >= 0 && *dimension < static_cast<int64_t>(place.strides.size()))
    return Meaning(at, place.strides[static_cast<size_t>(*dimension)]);
  return ErrorAt(at, absl::StrCat("a stride of a dimension that a buffer of ", place.strides.size(), " has not"));
}

// `name = T.alloc_buffer(...)`, T.allocate, T.decl_buffer or T.Buffer.
absl::StatusOr<Stmt> Parser::BufferStatement(const std::string& name, absl::string_view function, BlockParts* block,
                                             std::optional<Stmt>& wrap) {
  const Token at = Peek();
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(")"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  if (!spec.data.empty()) {
    HONE_RETURN_IF_ERROR(DefineView(at, name, std::move(spec)));
    return Stmt();
  }
  if (function == "Buffer") {
    return ErrorAt(at, "a T.Buffer of no memory; expected data=, such as T.Buffer((16,), data=A.data)");
  }
  HONE_ASSIGN_OR_RETURN(const Buffer buffer, NewBuffer(name, std::move(spec)));
  if (function != "alloc_buffer") {
    wrap = Stmt::Make(Alloc{buffer, Stmt()});
  } else if (block == nullptr) {
    return ErrorAt(at,
                   "T.alloc_buffer outside of a block; expected it directly in a T.block or function, or T.allocate");
  } else {
    block->block.allocs.push_back(buffer);
  }
  return Stmt();
}

absl::Status Parser::DefineView(const Token& at, const std::string& name, BufferSpec spec) {
  const Symbol* symbol = Find(spec.data);
  if (symbol == nullptr || !symbol->buffer)
    return ErrorAt(at, absl::StrCat("`", spec.data, "` is no buffer defined here"));
  Buffer target = symbol->buffer;
  if (spec.type != target.type()) {
    return ErrorAt(at, absl::StrCat("a view of ", ToText(spec.type), " elements of `", spec.data, "`, which holds ",
                                    ToText(target.type()), "; expected the same type"));
  }
  View view{target, ContiguousStrides(spec.shape), IntConst(0)};
  for (size_t i = 0; i < spec.strides.size(); ++i) view.strides[i] = spec.strides[i].value;
  if (spec.offset.has_value()) view.offset = spec.offset->value;
  const bool is_plain = spec.strides.empty() && IsConst(view.offset, 0);
  if (is_plain && SameShape(spec.shape, target.shape())) {
    Define(name, {.buffer = target});
    return absl::OkStatus();
  }
  if (const auto outer = views_.find(target.id()); outer != views_.end()) {  // a view of a view
    if (outer->second.strides.size() != 1 || !IsConst(outer->second.strides[0], 1)) {
      return ErrorAt(at, absl::StrCat("a view of `", spec.data,
                                      "`, itself a view of several dimensions; expected one "
                                      "of the buffer that has the memory"));
    }
    view.target = outer->second.target;
    view.offset = view.offset + outer->second.offset;
    HONE_RETURN_IF_ERROR(Meaning(at, view.offset).status());
  }
  const Buffer buffer(name, spec.type, std::move(spec.shape), target.scope());
  views_.emplace(buffer.id(), std::move(view));
  Define(name, {.buffer = buffer});
  return absl::OkStatus();
}

std::pair<Buffer, std::vector<Expr>> Parser::Resolve(const Buffer& buffer, std::vector<Expr> indices) const {
  const auto found = views_.find(buffer.id());
  if (found == views_.end()) return {buffer, std::move(indices)};
  const View& view = found->second;
  return {view.target, Unflatten(FlatIndex(indices, view.strides, view.offset), view.target.shape())};
}

}  // namespace hone
