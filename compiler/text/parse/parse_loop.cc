// `for`: loops of every kind, and T.grid.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

std::optional<ForKind> LoopKind(absl::string_view function) {
  if (function == "serial" || function == "range") return ForKind::kSerial;
  if (function == "parallel") return ForKind::kParallel;
  if (function == "vectorized") return ForKind::kVectorized;
  if (function == "unroll" || function == "unrolled") return ForKind::kUnrolled;
  if (function == "thread_binding") return ForKind::kThreadBinding;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Range> Parser::RangeOf(const Token& at, Range range, DType type) {
  HONE_ASSIGN_OR_RETURN(const Parsed min, Coerce(at, {range.min}, type, "the start of a range"));
  HONE_ASSIGN_OR_RETURN(const Parsed extent, Coerce(at, {range.extent}, type, "the extent of a range"));
  return Range{min.e, extent.e};
}

absl::StatusOr<Range> Parser::RangeTo(Expr first, absl::string_view what) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Expr last, IntExpression(what));
  Parsed min{first}, end{last};
  HONE_RETURN_IF_ERROR(Unify(at, min, end));
  if (const Expr extent = ExtentOf(min.e, end.e)) return Range{min.e, extent};
  HONE_ASSIGN_OR_RETURN(const Parsed extent, Combine(at, BinaryOp::kSub, {end.e}, {min.e}));
  return Range{min.e, extent.e};
}

absl::StatusOr<For> Parser::LoopHead(ForKind kind) {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Expr first, IntExpression("a loop's bound"));
  Range range{IntConst(0, first.type()), first};
  DType type = first.type();
  For loop{.kind = kind};
  while (TakeIf(",")) {
    if (At(")")) break;
    if (TakeIf("thread")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(loop.thread, ExpectString("a thread such as \"threadIdx.x\""));
    } else if (TakeIf("dtype")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(type, TypeText("an integer type"));
      if (!type.is_int() || !type.is_scalar()) return ErrorAt(at, "a loop's variable is an integer");
    } else if (TakeIf("annotations")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(loop.annotations, AttrDict());
    } else if (Peek().kind == TokenKind::kString) {
      loop.thread = Take().text;
    } else {
      HONE_ASSIGN_OR_RETURN(range, RangeTo(first, "a loop's end"));
      type = range.extent.type();
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_ASSIGN_OR_RETURN(range, RangeOf(at, std::move(range), type));
  loop.min = range.min;
  loop.extent = range.extent;
  return loop;
}

absl::StatusOr<std::vector<For>> Parser::LoopHeads() {
  const Token at = Peek();
  std::string function = "range";
  if (!TakeIf("range")) {
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(function,
                          ExpectName("a kind of loop: serial, parallel, vectorized, unroll, thread_binding or grid"));
  }
  std::vector<For> loops;
  if (function == "grid") {
    HONE_RETURN_IF_ERROR(Expect("("));
    while (!At(")")) {
      if (!loops.empty()) {
        HONE_RETURN_IF_ERROR(Expect(","));
        if (At(")")) break;
      }
      HONE_ASSIGN_OR_RETURN(const Expr extent, IntExpression("a loop's extent"));
      loops.push_back(For{.min = IntConst(0, extent.type()), .extent = extent});
    }
    Take();
    return loops;
  }
  const std::optional<ForKind> kind = LoopKind(function);
  if (!kind.has_value()) {
    return ErrorAt(at, absl::StrCat("`T.", function,
                                    "` is no kind of loop; expected serial, parallel, vectorized, unroll, "
                                    "thread_binding or grid"));
  }
  HONE_ASSIGN_OR_RETURN(For loop, LoopHead(*kind));
  loops.push_back(std::move(loop));
  return loops;
}

absl::StatusOr<Stmt> Parser::ForStatement() {
  Take();
  const size_t mark = Mark();
  const int depth = stmt_depth_;
  std::vector<std::string> names;
  do {
    HONE_ASSIGN_OR_RETURN(std::string name, ExpectName("a loop variable's name"));
    names.push_back(std::move(name));
  } while (TakeIf(","));
  HONE_RETURN_IF_ERROR(Expect("in"));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(std::vector<For> loops, LoopHeads());
  if (loops.size() != names.size()) {
    return ErrorAt(at, absl::StrCat("found ", loops.size(), " extents for ", names.size(), " variables"));
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    loops[i].var = Var(names[i], loops[i].extent.type());
    Define(names[i], {.var = loops[i].var, .loop = Range{loops[i].min, loops[i].extent}});
  }
  stmt_depth_ += static_cast<int>(loops.size());
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(Stmt body, Suite(nullptr));
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(body);
    body = Stmt::Make(std::move(loops[i]));
  }
  RollBack(mark);
  stmt_depth_ = depth;
  return body;
}

}  // namespace hone
