// T.block: its axes and the regions it reads and writes.
#include "absl/strings/str_cat.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/parser.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::vector<Range> WholeOf(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer.shape()) ranges.push_back({IntConst(0, extent.type()), extent});
  return ranges;
}

}  // namespace

absl::StatusOr<Stmt> Parser::BlockStatement() {
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
  const auto add = [&](const std::string& name, IterKind k, Range domain, DType type, Expr value) {
    const Var var(name, type);
    block->block.iters.push_back({var, std::move(domain), k});
    block->values.push_back(std::move(value));
    Define(name, {.var = var});
  };
  if (kind == "remap") {
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
      add(names[i], kinds[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, loops[i].second, loops[i].first.type(),
          loops[i].first);
    }
    return absl::OkStatus();
  }
  IterKind iter = IterKind::kOpaque;
  if (kind == "spatial" || kind == "S") {
    iter = IterKind::kSpatial;
  } else if (kind == "reduce" || kind == "R") {
    iter = IterKind::kReduce;
  } else if (kind != "opaque" && kind != "scan") {
    return ErrorAt(at, absl::StrCat("`T.axis.", kind, "` is not known; expected spatial, reduce, opaque or remap"));
  }
  if (names.size() != 1) return ErrorAt(at, absl::StrCat("T.axis.", kind, " gives one variable; found ", names.size()));
  Range domain;
  if (AtBounds()) {
    const bool square = At("[");
    Take();
    const Token end_at = Peek();
    HONE_ASSIGN_OR_RETURN(domain.min, IntExpression("the start of a domain"));
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(const Expr end, IntExpression("the end of a domain"));
    HONE_RETURN_IF_ERROR(Expect(square ? "]" : ")"));
    domain.extent = ExtentOf(domain.min, end);
    if (!domain.extent) {
      HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(end_at, BinaryOp::kSub, {end}, {domain.min}));
      domain.extent = length.e;
    }
  } else {
    HONE_ASSIGN_OR_RETURN(domain.extent, IntExpression("the extent of a domain"));
    domain.min = IntConst(0, domain.extent.type());
  }
  HONE_RETURN_IF_ERROR(Expect(","));
  const Token value_at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (!value.e.type().is_int() || !value.e.type().is_scalar()) {
    return ErrorAt(value_at, absl::StrCat("a binding of type ", ToText(value.e.type()), "; expected an integer"));
  }
  DType type = domain.extent.type();
  if (TakeIf(",") && TakeIf("dtype")) {
    HONE_RETURN_IF_ERROR(Expect("="));
    HONE_ASSIGN_OR_RETURN(type, TypeText("an integer type"));
    if (!type.is_int() || !type.is_scalar()) return ErrorAt(value_at, "a block's variable is an integer");
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  add(names[0], iter, std::move(domain), type, value.e);
  return absl::OkStatus();
}

absl::StatusOr<BufferRegion> Parser::Region() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a part of a buffer, such as A[vi, 0:16]"));
  const Symbol* symbol = Find(name);
  if (symbol == nullptr || !symbol->buffer) return ErrorAt(at, absl::StrCat("`", name, "` is no buffer defined here"));
  const Buffer buffer = symbol->buffer;
  if (!TakeIf("[")) return BufferRegion{buffer, WholeOf(buffer)};
  HONE_ASSIGN_OR_RETURN(std::vector<Subscript> parts, Subscripts(at, buffer));
  BufferRegion region{buffer, {}};
  for (Subscript& part : parts) {
    if (!part.min.type().is_scalar()) return ErrorAt(at, "a region of vectors; expected scalars and slices");
    if (!part.extent) part.extent = IntConst(1, part.min.type());
    region.region.push_back({std::move(part.min), std::move(part.extent)});
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
