// Tensor cores as programs of TVM call them: fragments, which the threads of a warp hold together, are filled, loaded,
// multiplied and stored. Each call is read as what it does to the buffers that its block matches, one fragment each.
//
// T.tvm_fill_fragment(C.data, m, n, k, number, value)                    C[i, j] = value
// T.tvm_load_matrix_sync(C.data, m, n, k, number, pointer, row, layout)  C[i, j] = A[i, j], or A[j, i] of "col_major"
// T.tvm_store_matrix_sync(A.data, m, n, k, number, pointer, row, layout) C[i, j] = A[i, j], or C[j, i] = A[i, j]
// T.tvm_mma_sync(C.data, number, A.data, number, B.data, number, C.data, number)  C[i, j] += A[i, k] * B[k, j]
//
// `number` counts fragments in the memory behind the buffer, `pointer` and `row` say where a matrix begins there and
// how long its rows are; both must be those of the matched buffer.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/structural.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

Stmt ForEach(const std::vector<Var>& vars, const std::vector<Expr>& extents, Stmt body) {
  for (size_t i = vars.size(); i-- > 0;) {
    For loop;
    loop.var = vars[i];
    loop.min = IntConst(0, extents[i].type());
    loop.extent = extents[i];
    loop.body = std::move(body);
    body = Stmt::Make(std::move(loop));
  }
  return body;
}

Var Counter(const char* name, const Buffer& fragment) { return Var(name, fragment.shape()[0].type()); }

Stmt Assign(const Buffer& buffer, const std::vector<Expr>& indices, Expr value) {
  return Stmt::Make(Store{buffer, indices, MakeCast(buffer.type(), std::move(value))});
}

}  // namespace

// `A.data`
absl::StatusOr<Buffer> Parser::DataOfMatrix() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a buffer"));
  HONE_RETURN_IF_ERROR(Expect("."));
  HONE_RETURN_IF_ERROR(Expect("data"));
  const Symbol* symbol = Find(name);
  if (symbol == nullptr || !symbol->buffer || !matched_.contains(symbol->buffer.id()) || symbol->buffer.rank() != 2)
    return ErrorAt(at, absl::StrCat("`", name, "` is no matrix that its block matches; expected T.match_buffer of it"));
  return symbol->buffer;
}

absl::Status Parser::ExpectValue(absl::string_view what, const Parsed& expected) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(Parsed found, Expression());
  Parsed same = expected;
  HONE_RETURN_IF_ERROR(Unify(at, found, same));
  if (StructuralEqual(found.e, same.e)) return absl::OkStatus();
  return ErrorAt(at, absl::StrCat("found ", what, " ", ToText(found.e), "; expected ", ToText(same.e),
                                  ", as of the matched buffer"));
}

// The number of the fragment that is the whole of a buffer.
absl::Status Parser::FragmentNumber(const Buffer& fragment) {
  const Token at = Peek();
  const View& place = matched_.at(fragment.id());
  const Parsed start{place.offset}, row{place.strides[0]}, m{fragment.shape()[0]}, n{fragment.shape()[1]};
  HONE_ASSIGN_OR_RETURN(const Parsed rows, Combine(at, BinaryOp::kFloorDiv, start, row));
  HONE_ASSIGN_OR_RETURN(const Parsed down, Combine(at, BinaryOp::kFloorDiv, rows, m));
  HONE_ASSIGN_OR_RETURN(const Parsed in_row, Combine(at, BinaryOp::kFloorDiv, row, n));
  HONE_ASSIGN_OR_RETURN(const Parsed columns, Combine(at, BinaryOp::kFloorMod, start, row));
  HONE_ASSIGN_OR_RETURN(const Parsed across, Combine(at, BinaryOp::kFloorDiv, columns, n));
  HONE_ASSIGN_OR_RETURN(const Parsed before, Combine(at, BinaryOp::kMul, down, in_row));
  HONE_ASSIGN_OR_RETURN(const Parsed number, Combine(at, BinaryOp::kAdd, before, across));
  return ExpectValue("a fragment's number", number);
}

// `C.data, 16, 16, 16, number`: a fragment of a product of that size.
absl::StatusOr<Buffer> Parser::SizedFragment() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Buffer fragment, DataOfMatrix());
  int64_t size[3];
  for (int64_t& extent : size) {
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(const Expr value, IntExpression("a size of the product"));
    extent = ConstantValue(value).value_or(0);
  }
  const auto [m, n, k] = size;
  const auto is = [&](int64_t rows, int64_t columns) {
    return IsConst(fragment.shape()[0], rows) && IsConst(fragment.shape()[1], columns);
  };
  if (!is(m, n) && !is(m, k) && !is(k, n))
    return ErrorAt(
        at, absl::StrCat("a fragment of a product of ", m, " by ", n, " by ", k, " in a buffer of another size"));
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_RETURN_IF_ERROR(FragmentNumber(fragment));
  return fragment;
}

// `T.tvm_access_ptr(T.type_annotation("float16"), A.data, A.elem_offset, extent, 1), row, "row_major"`
absl::StatusOr<Buffer> Parser::MatrixInMemory(bool* by_columns) {
  for (const absl::string_view word : {"T", ".", "tvm_access_ptr", "(", "T", ".", "type_annotation", "("})
    HONE_RETURN_IF_ERROR(Expect(word));
  HONE_RETURN_IF_ERROR(TypeText("the elements' type").status());
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(const Buffer matrix, DataOfMatrix());
  const View& place = matched_.at(matrix.id());
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_RETURN_IF_ERROR(ExpectValue("a matrix's start", Parsed{place.offset}));
  for (const absl::string_view what : {"how many elements it spans", "whether it is read or written"}) {
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_RETURN_IF_ERROR(IntExpression(what).status());
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_RETURN_IF_ERROR(ExpectValue("a row's length", Parsed{place.strides[0]}));
  HONE_RETURN_IF_ERROR(Expect(","));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string layout, ExpectString("\"row_major\" or \"col_major\""));
  if (layout != "row_major" && layout != "col_major")
    return ErrorAt(at,
                   absl::StrCat("a layout \"", layout.substr(0, 40), "\"; expected \"row_major\" or \"col_major\""));
  *by_columns = layout == "col_major";
  return matrix;
}

absl::StatusOr<Stmt> Parser::FillFragment() {
  HONE_ASSIGN_OR_RETURN(const Buffer c, SizedFragment());
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  const Var i = Counter("i", c), j = Counter("j", c);
  return ForEach({i, j}, c.shape(), Assign(c, {i, j}, value.e));
}

absl::StatusOr<Stmt> Parser::CopyFragment(bool loads) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Buffer fragment, SizedFragment());
  HONE_RETURN_IF_ERROR(Expect(","));
  bool by_columns = false;
  HONE_ASSIGN_OR_RETURN(const Buffer matrix, MatrixInMemory(&by_columns));
  for (const size_t d : {0, 1}) {
    if (!StructuralEqual(fragment.shape()[d], matrix.shape()[by_columns ? 1 - d : d]))
      return ErrorAt(at, "a fragment and a matrix of different shapes");
  }
  const Var i = Counter("i", fragment), j = Counter("j", fragment);
  const std::vector<Expr> here = {i, j}, there = by_columns ? std::vector<Expr>{j, i} : here;
  return ForEach(
      {i, j}, fragment.shape(),
      loads ? Assign(fragment, here, MakeLoad(matrix, there)) : Assign(matrix, there, MakeLoad(fragment, here)));
}

absl::StatusOr<Stmt> Parser::MultiplyFragments() {
  const Token at = Peek();
  std::vector<Buffer> operands;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(operands.emplace_back(), DataOfMatrix());
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_RETURN_IF_ERROR(FragmentNumber(operands.back()));
  }
  const Buffer &c = operands[0], &a = operands[1], &b = operands[2];
  if (!operands[3].SameAs(c))
    return ErrorAt(at, "a product added to another fragment than it writes; expected the same");
  const bool fits = StructuralEqual(a.shape()[0], c.shape()[0]) && StructuralEqual(a.shape()[1], b.shape()[0]) &&
                    StructuralEqual(b.shape()[1], c.shape()[1]);
  if (!fits) return ErrorAt(at, "fragments that are no factors and sum of one product, by their shapes");
  const Var i = Counter("i", c), j = Counter("j", c), k = Counter("k", c);
  const Expr factors[] = {MakeCast(c.type(), MakeLoad(a, {i, k})), MakeCast(c.type(), MakeLoad(b, {k, j}))};
  return ForEach({i, j, k}, {c.shape()[0], c.shape()[1], a.shape()[1]},
                 Assign(c, {i, j}, MakeLoad(c, {i, j}) + factors[0] * factors[1]));
}

// After "T.name".
absl::StatusOr<Stmt> Parser::FragmentStatement(const std::string& name) {
  HONE_RETURN_IF_ERROR(Expect("("));
  Stmt stmt;
  if (name == "tvm_fill_fragment") {
    HONE_ASSIGN_OR_RETURN(stmt, FillFragment());
  } else if (name == "tvm_mma_sync") {
    HONE_ASSIGN_OR_RETURN(stmt, MultiplyFragments());
  } else {
    HONE_ASSIGN_OR_RETURN(stmt, CopyFragment(/*loads=*/name == "tvm_load_matrix_sync"));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return stmt;
}

}  // namespace hone
