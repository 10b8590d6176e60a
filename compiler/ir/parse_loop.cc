// `for`: loops of every kind, and T.grid.
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::optional<ForKind> LoopKind(absl::string_view function) {
  if (function == "serial") return ForKind::kSerial;
  if (function == "parallel") return ForKind::kParallel;
  if (function == "vectorized") return ForKind::kVectorized;
  if (function == "unroll" || function == "unrolled") return ForKind::kUnrolled;
  if (function == "thread_binding") return ForKind::kThreadBinding;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Range> Parser::LoopRange(absl::string_view function, std::optional<DType>& dtype, std::string& thread,
                                        Attrs& annotations) {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(Expr first, IntExpression("a loop's bound"));
  Range range{IntConst(0, first.type()), first};
  while (TakeIf(",")) {
    if (At(")")) break;
    if (TakeIf("thread")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(thread, ExpectString("a thread such as \"threadIdx.x\""));
    } else if (TakeIf("dtype")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(dtype, TypeText("an integer type"));
      if (!dtype->is_int() || !dtype->is_scalar()) return ErrorAt(at, "a loop's variable is an integer");
    } else if (TakeIf("annotations")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(annotations, AttrDict());
    } else if (Peek().kind == TokenKind::kString) {
      thread = Take().text;
    } else {
      const Token end_at = Peek();
      HONE_ASSIGN_OR_RETURN(const Expr end, IntExpression("a loop's end"));
      range.min = first;
      range.extent = ExtentOf(first, end);
      if (!range.extent) {
        HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(end_at, BinaryOp::kSub, {end}, {first}));
        range.extent = length.e;
      }
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return range;
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
  std::vector<For> loops;
  std::string function = "range";
  if (!TakeIf("range")) {
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(function,
                          ExpectName("a kind of loop: serial, parallel, vectorized, unroll, thread_binding or grid"));
  }
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
  } else {
    const std::optional<ForKind> kind = function == "range" ? ForKind::kSerial : LoopKind(function);
    if (!kind.has_value()) {
      return ErrorAt(at, absl::StrCat("`T.", function,
                                      "` is no kind of loop; expected serial, parallel, vectorized, unroll, "
                                      "thread_binding or grid"));
    }
    For loop;
    loop.kind = *kind;
    std::optional<DType> dtype;
    HONE_ASSIGN_OR_RETURN(const Range range, LoopRange(function, dtype, loop.thread, loop.annotations));
    loop.min = range.min;
    loop.extent = range.extent;
    if (dtype.has_value()) loop.var = Var(names[0], *dtype);
    loops.push_back(std::move(loop));
  }
  if (loops.size() != names.size()) {
    return ErrorAt(at, absl::StrCat("found ", loops.size(), " extents for ", names.size(), " variables"));
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (!loops[i].var) loops[i].var = Var(names[i], loops[i].extent.type());
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
