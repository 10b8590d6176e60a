// T.block: its axes and the regions it reads and writes.
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/ir/block_regions.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

std::vector<Range> WholeOf(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer.shape()) ranges.push_back({IntConst(0, extent.type()), extent});
  return ranges;
}

std::optional<IterKind> AxisKind(absl::string_view name) {
  if (name == "spatial" || name == "S") return IterKind::kSpatial;
  if (name == "reduce" || name == "R") return IterKind::kReduce;
  if (name == "opaque" || name == "scan") return IterKind::kOpaque;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Stmt> Parser::BlockStatement(bool of_tvm) {
  BlockParts parts;
  HONE_RETURN_IF_ERROR(Expect("("));
  if (!At(")")) {
    HONE_ASSIGN_OR_RETURN(parts.block.name, ExpectString("the block's name"));
    TakeIf(",");
    if (TakeIf("no_realize")) {  // a block that is its own realization, in the newest spelling
      HONE_RETURN_IF_ERROR(Expect("="));
      Take();
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(parts.block.body, Suite(&parts));
  const bool is_root = parts.block.name == "root" && parts.block.iters.empty();
  // TVM prints code that its scheduler does not look into as a block that touches nothing.
  if (of_tvm && parts.block.iters.empty() && parts.block.reads.empty() && parts.block.writes.empty())
    parts.has_reads = parts.has_writes = false;
  if (!is_root && !(parts.has_reads && parts.has_writes)) {
    AccessedRegions derived = InferRegions(parts.block);
    if (!parts.has_reads) parts.block.reads = std::move(derived.reads);
    if (!parts.has_writes) parts.block.writes = std::move(derived.writes);
  }
  return Stmt::Make(BlockRealize{std::move(parts.values), parts.predicate, std::move(parts.block)});
}

// At "(low, high)" or "[low, high]"; "(n + 31) // 32" is one number.
bool Parser::AtBounds() const {
  if (!At("(") && !At("[")) return false;
  int depth = 0;
  for (int i = 0; Peek(i).kind != TokenKind::kEnd && Peek(i).kind != TokenKind::kNewline; ++i) {
    const Token& token = Peek(i);
    if (token.kind != TokenKind::kPunct) continue;
    if (token.text == "(" || token.text == "[") ++depth;
    if ((token.text == ")" || token.text == "]") && --depth == 0) return false;
    if (token.text == "," && depth == 1) return true;
  }
  return false;
}

absl::Status Parser::AxisStatement(BlockParts* block, const std::vector<std::string>& names) {
  const Token at = Peek();
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.axis outside of a block; expected it directly in a T.block");
  HONE_RETURN_IF_ERROR(Expect("axis"));
  HONE_RETURN_IF_ERROR(Expect("."));
  HONE_ASSIGN_OR_RETURN(const std::string kind, ExpectName("spatial, reduce, opaque or remap"));
  HONE_RETURN_IF_ERROR(Expect("("));
  if (kind == "remap") return RemapAxes(at, *block, names);
  const std::optional<IterKind> iter = AxisKind(kind);
  if (!iter.has_value()) {
    return ErrorAt(at, absl::StrCat("`T.axis.", kind, "` is not known; expected spatial, reduce, opaque or remap"));
  }
  if (names.size() != 1) return ErrorAt(at, absl::StrCat("T.axis.", kind, " gives one variable; found ", names.size()));
  return BoundAxis(*block, names[0], *iter);
}

void Parser::AddAxis(BlockParts& block, const std::string& name, IterKind kind, Range domain, Expr value) {
  const Var var(name, value.type());
  block.block.iters.push_back({var, std::move(domain), kind});
  block.values.push_back(std::move(value));
  Define(name, {.var = var});
}

// After "T.axis.remap(": kinds, and the loops whose variables and ranges the block takes over.
absl::Status Parser::RemapAxes(const Token& at, BlockParts& block, const std::vector<std::string>& names) {
  HONE_ASSIGN_OR_RETURN(const std::string kinds, ExpectString("kinds such as \"SSR\""));
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_RETURN_IF_ERROR(Expect("["));
  std::vector<std::pair<Var, Range>> loops;
  while (!At("]")) {
    if (!loops.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At("]")) break;
    }
    const Token loop_at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a loop's variable"));
    const Symbol* symbol = Find(name);
    if (symbol == nullptr || !symbol->loop.has_value())
      return ErrorAt(loop_at, absl::StrCat("`", name, "` is no loop's variable"));
    loops.emplace_back(symbol->var, *symbol->loop);
  }
  Take();
  TakeIf(",");
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (kinds.size() != names.size() || loops.size() != names.size()) {
    return ErrorAt(at, absl::StrCat("found ", names.size(), " variables, ", kinds.size(), " kinds and ", loops.size(),
                                    " loops; expected as many of each"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (kinds[i] != 'S' && kinds[i] != 'R') return ErrorAt(at, "a kind in remap is S (spatial) or R (reduce)");
    AddAxis(block, names[i], kinds[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, loops[i].second, loops[i].first);
  }
  return absl::OkStatus();
}

// After "T.axis.spatial(": a domain and the value that the variable is bound to. The two may be of different integer
// types, as in T.axis.spatial(1, T.int64(0)); the variable, its domain and its value then meet in one.
absl::Status Parser::BoundAxis(BlockParts& block, const std::string& name, IterKind kind) {
  Range domain;
  if (AtBounds()) {
    const bool square = At("[");
    Take();
    HONE_ASSIGN_OR_RETURN(const Expr first, IntExpression("the start of a domain"));
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(domain, RangeTo(first, "the end of a domain"));
    HONE_RETURN_IF_ERROR(Expect(square ? "]" : ")"));
  } else {
    HONE_ASSIGN_OR_RETURN(domain.extent, IntExpression("the extent of a domain"));
    domain.min = IntConst(0, domain.extent.type());
  }
  HONE_RETURN_IF_ERROR(Expect(","));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(Parsed value, Expression());
  if (!value.e.type().is_int() || !value.e.type().is_scalar()) {
    return ErrorAt(at, absl::StrCat("a binding of type ", ToText(value.e.type()), "; expected an integer"));
  }
  std::optional<DType> dtype;
  if (TakeIf(",") && TakeIf("dtype")) {
    HONE_RETURN_IF_ERROR(Expect("="));
    HONE_ASSIGN_OR_RETURN(dtype, TypeText("an integer type"));
    if (!dtype->is_int() || !dtype->is_scalar()) return ErrorAt(at, "a block's variable is an integer");
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  DType type = domain.extent.type();
  const bool is_number = ConstantValue(value.e).has_value();
  if (type == kInt32 && ((value.e.type() == kInt64 && !is_number) || dtype == kInt64)) type = kInt64;
  HONE_ASSIGN_OR_RETURN(domain, RangeOf(at, std::move(domain), type));
  HONE_ASSIGN_OR_RETURN(value, Coerce(at, std::move(value), type, "a binding"));
  AddAxis(block, name, kind, std::move(domain), value.e);
  return absl::OkStatus();
}

absl::StatusOr<BufferRegion> Parser::Region() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a part of a buffer, such as A[vi, 0:16]"));
  const Symbol* symbol = Find(name);
  if (symbol == nullptr || !symbol->buffer) return ErrorAt(at, absl::StrCat("`", name, "` is no buffer defined here"));
  const Buffer buffer = symbol->buffer;
  const bool is_view = views_.contains(buffer.id());
  if (!is_view && !At("[")) return BufferRegion{buffer, WholeOf(buffer)};
  std::vector<Subscript> parts;
  if (TakeIf("[")) { HONE_ASSIGN_OR_RETURN(parts, Subscripts(at, buffer)); }
  BufferRegion region{buffer, {}};
  for (Subscript& part : parts) {
    if (!part.min.type().is_scalar()) return ErrorAt(at, "a region of vectors; expected scalars and slices");
    if (!part.extent) part.extent = IntConst(1, part.min.type());
    region.region.push_back({std::move(part.min), std::move(part.extent)});
  }
  if (!is_view) return region;
  // The elements of a larger part lie apart in memory.
  std::vector<Expr> element;
  for (const Range& range : region.region) {
    if (IsConst(range.extent, 1)) element.push_back(range.min);
  }
  if (element.empty() || element.size() != region.region.size()) {
    return ErrorAt(at, absl::StrCat("a region of `", name, "`, a view of `", views_.at(buffer.id()).target.name(),
                                    "` in another shape; expected one element, or a region of that buffer"));
  }
  std::tie(region.buffer, element) = Resolve(buffer, std::move(element));
  region.region.clear();
  for (Expr& index : element) {
    const DType type = index.type();
    region.region.push_back({std::move(index), IntConst(1, type)});
  }
  return region;
}

absl::StatusOr<std::vector<BufferRegion>> Parser::Regions() {
  std::vector<BufferRegion> regions;
  HONE_RETURN_IF_ERROR(Expect("("));
  const bool list = TakeIf("[");
  const absl::string_view closing = list ? "]" : ")";
  while (!At(closing)) {
    if (!regions.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
    regions.push_back(std::move(region));
  }
  Take();
  if (list) HONE_RETURN_IF_ERROR(Expect(")"));
  return regions;
}

}  // namespace hone
