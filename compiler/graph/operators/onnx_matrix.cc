// Matrix products.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/graph/operators/matmul.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

int64_t Product(const std::vector<int64_t>& shape, size_t from, size_t to) {
  int64_t product = 1;  // of the extents of one checked shape: it does not overflow
  for (size_t d = from; d < to; ++d) product *= shape[d];
  return product;
}

Outputs MatMul(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const int y, EmitMatmul(c, c.input(0), c.input(1)));
  return std::vector<int>{y};
}

// alpha * A' * B' + beta * C
Outputs Gemm(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const double alpha = c.FloatAttr("alpha", 1), beta = c.FloatAttr("beta", 1);
  int a = c.input(0), b = c.input(1);
  if (c.rank(a) != 2 || c.rank(b) != 2)
    return Unsupported(absl::StrCat("operands ", ToText(c.type(a)), " and ", ToText(c.type(b)), " are not matrices"));
  if (c.IntAttr("transA", 0) != 0) { HONE_ASSIGN_OR_RETURN(a, c.Transpose(a, {1, 0})); }
  if (c.IntAttr("transB", 0) != 0) { HONE_ASSIGN_OR_RETURN(b, c.Transpose(b, {1, 0})); }
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("dense", {a, b}));
  const DType dtype = c.type(y).dtype;
  if (alpha != 1) { HONE_ASSIGN_OR_RETURN(y, c.Emit("multiply", {y, c.Scalar(dtype, alpha)})); }
  if (!c.HasInput(2) || beta == 0) return std::vector<int>{y};
  int bias = c.input(2);
  if (beta != 1) { HONE_ASSIGN_OR_RETURN(bias, c.Emit("multiply", {bias, c.Scalar(dtype, beta)})); }
  const std::vector<int64_t> shape = c.shape(y);
  HONE_ASSIGN_OR_RETURN(y, c.Emit("add", {y, bias}));
  if (c.shape(y) != shape)
    return Unsupported(absl::StrCat("C is ", ToText(c.type(bias)), ", which does not broadcast to the product"));
  return std::vector<int>{y};
}

// ---- Einsum: a sum over labelled axes, two operands at a time, each pair as one product of matrices.

struct Operand {
  int value;
  std::string labels;  // one a dimension, all different
};

// The operand with its axes in this order; all of its labels appear.
absl::StatusOr<Operand> Arrange(NodeContext& c, const Operand& x, const std::string& labels) {
  std::vector<int64_t> perm;
  for (const char label : labels) perm.push_back(static_cast<int64_t>(x.labels.find(label)));
  HONE_ASSIGN_OR_RETURN(const int value, c.Transpose(x.value, perm));
  return Operand{value, labels};
}

// Sums over the labels that are not kept.
absl::StatusOr<Operand> SumOut(NodeContext& c, const Operand& x, const std::set<char>& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (keep.count(x.labels[i]) > 0) left.push_back(x.labels[i]);
    else axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  HONE_ASSIGN_OR_RETURN(const int value, c.Emit("reduce_sum", {x.value}, {{"axes", axes}, {"keepdims", int64_t{0}}}));
  return Operand{value, left};
}

// The product of two operands: labels in both that are kept are batch axes, those not kept are summed over.
absl::StatusOr<Operand> Contract(NodeContext& c, Operand a, Operand b, const std::set<char>& keep) {
  std::set<char> in_a(a.labels.begin(), a.labels.end()), in_b(b.labels.begin(), b.labels.end()), keep_a = keep,
                                                                                                 keep_b = keep;
  keep_a.insert(in_b.begin(), in_b.end());
  keep_b.insert(in_a.begin(), in_a.end());
  HONE_ASSIGN_OR_RETURN(a, SumOut(c, a, keep_a));  // a sum over an axis of one operand alone comes first
  HONE_ASSIGN_OR_RETURN(b, SumOut(c, b, keep_b));
  std::string batch, rows, columns, inner;
  for (const char label : a.labels) {
    if (in_b.count(label) == 0) rows.push_back(label);
    else if (keep.count(label) > 0) batch.push_back(label);
    else inner.push_back(label);
  }
  for (const char label : b.labels) {
    if (in_a.count(label) == 0) columns.push_back(label);
  }
  HONE_ASSIGN_OR_RETURN(a, Arrange(c, a, batch + rows + inner));
  HONE_ASSIGN_OR_RETURN(b, Arrange(c, b, batch + inner + columns));
  const std::vector<int64_t> sa = c.shape(a.value), sb = c.shape(b.value);
  const size_t nb = batch.size(), nr = rows.size(), ni = inner.size();
  std::vector<int64_t> shape(sa.begin(), sa.begin() + static_cast<int64_t>(nb + nr));
  shape.insert(shape.end(), sb.begin() + static_cast<int64_t>(nb + ni), sb.end());
  HONE_ASSIGN_OR_RETURN(const int left, c.Reshape(a.value, {Product(sa, 0, nb), Product(sa, nb, nb + nr),
                                                            Product(sa, nb + nr, sa.size())}));
  HONE_ASSIGN_OR_RETURN(const int right, c.Reshape(b.value, {Product(sb, 0, nb), Product(sb, nb, nb + ni),
                                                             Product(sb, nb + ni, sb.size())}));
  HONE_ASSIGN_OR_RETURN(int y, EmitMatmul(c, left, right));
  HONE_ASSIGN_OR_RETURN(y, c.Reshape(y, shape));
  return Operand{y, batch + rows + columns};
}

// The equation with "..." written out: its dimensions get the labels '0', '1', ... counted so that the last one is the
// same in every term.
struct Equation {
  std::vector<std::string> terms;
  std::string result;
};
absl::StatusOr<Equation> ParseEquation(NodeContext& c, std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const auto refuse = [&](const std::string& why) {
    return Unsupported(absl::StrCat("equation \"", text, "\": ", why));
  };
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  Equation equation;
  equation.terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || static_cast<int>(equation.terms.size()) != c.num_inputs())
    return refuse("it does not fit the inputs");
  constexpr std::string_view kEllipsis = "...", kDigits = "0123456789";
  const auto split = [&](const std::string& term, std::string& before, std::string& after) {
    const size_t at = term.find(kEllipsis);
    before = term.substr(0, at);
    after = at == std::string::npos ? "" : term.substr(at + kEllipsis.size());
    const std::string letters = before + after;
    return std::all_of(letters.begin(), letters.end(), [](unsigned char l) { return std::isalpha(l) != 0; });
  };
  size_t most = 0;  // dimensions that "..." stands for
  std::string before, after;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const std::string& term = equation.terms[i];
    const size_t rank = c.shape(c.input(static_cast<int>(i))).size();
    if (!split(term, before, after)) return refuse("labels are letters, and \"...\" once a term");
    const size_t named = before.size() + after.size();
    const bool open = term.size() != named;
    if (named > rank || (!open && named != rank)) return refuse("a term does not name each dimension of its input");
    if (rank - named > kDigits.size()) return refuse("\"...\" stands for too many dimensions");
    most = std::max(most, rank - named);
  }
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    split(equation.terms[i], before, after);
    const size_t count = c.shape(c.input(static_cast<int>(i))).size() - before.size() - after.size();
    equation.terms[i] = before + std::string(kDigits.substr(most - count, count)) + after;
  }
  const std::string all(kDigits.substr(0, most));
  if (sides.size() == 2) {
    if (!split(sides[1], before, after)) return refuse("labels are letters, and \"...\" once in the result");
    equation.result = before + (sides[1].size() == before.size() + after.size() ? "" : all) + after;
    return equation;
  }
  std::map<char, int> count;
  for (const std::string& term : equation.terms) {
    for (const char label : term) ++count[label];
  }
  equation.result = all;
  for (const auto& [label, times] : count) {
    if (times == 1 && std::isalpha(static_cast<unsigned char>(label))) equation.result.push_back(label);
  }
  return equation;
}

// The elements where the axes of a label that comes twice meet: as the last two they are one, of which every n + 1st
// counts.
absl::StatusOr<Operand> Diagonal(NodeContext& c, Operand x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const size_t again = x.labels.find(x.labels[i], i + 1);
    if (again == std::string::npos) continue;
    const char label = x.labels[i];
    std::vector<int64_t> perm;
    std::string left;
    for (size_t d = 0; d < x.labels.size(); ++d) {
      if (d == i || d == again) continue;
      perm.push_back(static_cast<int64_t>(d));
      left.push_back(x.labels[d]);
    }
    perm.push_back(static_cast<int64_t>(i));
    perm.push_back(static_cast<int64_t>(again));
    std::vector<int64_t> shape = c.shape(x.value);
    const int64_t n = shape[i];
    if (shape[again] != n)
      return Unsupported(absl::StrCat("label ", std::string(1, label), " is ", n, " and ", shape[again]));
    HONE_ASSIGN_OR_RETURN(int value, c.Transpose(x.value, perm));
    shape = c.shape(value);
    shape.pop_back();
    shape.back() = n * n;
    HONE_ASSIGN_OR_RETURN(value, c.Reshape(value, shape));
    std::vector<int64_t> steps(left.size(), 1);
    steps.push_back(n + 1);
    shape.back() = n;
    HONE_ASSIGN_OR_RETURN(
        value, c.Emit("slice", {value},
                      {{"starts", std::vector<int64_t>(shape.size(), 0)}, {"sizes", shape}, {"steps", steps}}));
    return Diagonal(c, {value, left + label});
  }
  return x;
}

Outputs Einsum(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 16));
  const std::string text = c.StringAttr("equation", "");
  HONE_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(c, text));
  const auto refuse = [&](const std::string& why) {
    return Unsupported(absl::StrCat("equation \"", text, "\": ", why));
  };
  std::vector<Operand> operands;
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const Operand operand, Diagonal(c, {c.input(static_cast<int>(i)), equation.terms[i]}));
    for (size_t d = 0; d < operand.labels.size(); ++d) {
      int64_t& extent = extents.emplace(operand.labels[d], 1).first->second;
      extent = std::max(extent, c.shape(operand.value)[d]);
    }
    operands.push_back(operand);
  }
  for (Operand& operand : operands) {  // an extent of 1 goes with any other: without it there is nothing to match
    const std::vector<int64_t> shape = c.shape(operand.value);
    std::vector<int64_t> kept;
    std::string labels;
    for (size_t d = 0; d < shape.size(); ++d) {
      const char label = operand.labels[d];
      if (shape[d] == 1 && extents[label] != 1) continue;
      if (shape[d] != extents[label])
        return refuse(absl::StrCat("label ", std::string(1, label), " is ", extents[label], " and ", shape[d]));
      kept.push_back(shape[d]);
      labels.push_back(label);
    }
    HONE_ASSIGN_OR_RETURN(const int value, c.Reshape(operand.value, kept));
    operand = {value, labels};
  }
  const std::string& result = equation.result;
  for (size_t i = 0; i < result.size(); ++i) {
    if (extents.count(result[i]) == 0 || result.find(result[i]) != i)
      return refuse("the result has a label that is unknown or twice there");
  }
  while (operands.size() > 1) {
    std::set<char> keep(result.begin(), result.end());
    for (size_t i = 2; i < operands.size(); ++i) keep.insert(operands[i].labels.begin(), operands[i].labels.end());
    HONE_ASSIGN_OR_RETURN(operands[0], Contract(c, operands[0], operands[1], keep));
    operands.erase(operands.begin() + 1);
  }
  HONE_ASSIGN_OR_RETURN(Operand y, SumOut(c, operands[0], std::set<char>(result.begin(), result.end())));
  HONE_ASSIGN_OR_RETURN(y, Arrange(c, y, result));
  return std::vector<int>{y.value};
}

constexpr OnnxOperator kOperators[] = {
    {"Einsum", 12, Einsum, "", true},
    {"Gemm", 7, Gemm, "", true},
    {"MatMul", 1, MatMul, "", true},
};

}  // namespace

absl::StatusOr<int> EmitMatmul(NodeContext& c, int a, int b) {
  if (c.rank(a) == 0 || c.rank(b) == 0) return Unsupported("a product of scalars");
  // A vector is a row on the left and a column on the right; its dimension vanishes afterwards.
  const bool row = c.rank(a) == 1, column = c.rank(b) == 1;
  if (row) { HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {1, c.shape(a)[0]})); }
  if (column) { HONE_ASSIGN_OR_RETURN(b, c.Reshape(b, {c.shape(b)[0], 1})); }
  const std::vector<int64_t> sa = c.shape(a), sb = c.shape(b);
  int y = -1;
  std::vector<int64_t> shape;
  if (sb.size() == 2) {
    if (sa.back() != sb[0])
      return Unsupported(
          absl::StrCat("the product of ", ToText(c.type(a)), " and ", ToText(c.type(b)), " does not exist"));
    HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {Product(sa, 0, sa.size() - 1), sa.back()}));
    HONE_ASSIGN_OR_RETURN(y, c.Emit("dense", {a, b}));
    shape.assign(sa.begin(), sa.end() - 1);
    shape.push_back(sb.back());
  } else {
    // Leading dimensions become one where that keeps their pairing: equal ones, or all of them 1 on one side.
    const int64_t na = Product(sa, 0, sa.size() - 2), nb = Product(sb, 0, sb.size() - 2);
    const std::vector<int64_t> la(sa.begin(), sa.end() - 2), lb(sb.begin(), sb.end() - 2);
    const bool one = na == 1 || nb == 1;
    if (la == lb || one) {
      HONE_ASSIGN_OR_RETURN(a, c.Reshape(a, {na, sa.end()[-2], sa.end()[-1]}));
      HONE_ASSIGN_OR_RETURN(b, c.Reshape(b, {nb, sb.end()[-2], sb.end()[-1]}));
      const size_t rank = std::max(la.size(), lb.size());
      shape.assign(rank, 1);  // broadcast, aligned at the end; one side is all 1 or both are equal
      for (size_t i = 0; i < rank; ++i) {
        const int64_t da = i < la.size() ? la.end()[-1 - static_cast<int64_t>(i)] : 1;
        const int64_t db = i < lb.size() ? lb.end()[-1 - static_cast<int64_t>(i)] : 1;
        shape[rank - 1 - i] = std::max(da, db);
      }
      shape.push_back(sa.end()[-2]);
      shape.push_back(sb.end()[-1]);
    }
    HONE_ASSIGN_OR_RETURN(y, c.Emit("batch_matmul", {a, b}));
    if (shape.empty()) shape = c.shape(y);
  }
  if (column) shape.pop_back();
  if (row) shape.erase(column ? shape.end() - 1 : shape.end() - 2);
  return c.Reshape(y, shape);
}

std::span<const OnnxOperator> MatrixOperators() { return kOperators; }

}  // namespace hone
