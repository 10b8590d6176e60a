// A sum over labelled axes, two operands at a time, each pair as one product of matrices.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/graph/operators/emit_matmul.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

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
  HONE_ASSIGN_OR_RETURN(const int left,
                        c.Reshape(a.value, {ProductOfExtents(sa, 0, nb), ProductOfExtents(sa, nb, nb + nr),
                                            ProductOfExtents(sa, nb + nr, sa.size())}));
  HONE_ASSIGN_OR_RETURN(const int right,
                        c.Reshape(b.value, {ProductOfExtents(sb, 0, nb), ProductOfExtents(sb, nb, nb + ni),
                                            ProductOfExtents(sb, nb + ni, sb.size())}));
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

}  // namespace

HONE_OPERATORS(einsum) { return {{.onnx = {{"Einsum", 12, Einsum, "", true}}}}; }

}  // namespace hone
