#include "compiler/ir/symbolic_sizes.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The size that makes `extent` this number, where it is a size times a number plus a number.
std::optional<std::pair<Var, int64_t>> Solve(const Expr& extent, int64_t number) {
  const Sum sum = SumOf(extent);
  if (sum.terms.size() != 1 || sum.terms[0].is_split()) return std::nullopt;
  const VarRef* size = sum.terms[0].atom.As<VarRef>();
  const int64_t rest = number - sum.constant;
  if (size == nullptr || rest % sum.terms[0].coefficient != 0) return std::nullopt;
  return std::pair(size->var, rest / sum.terms[0].coefficient);
}

absl::Status CheckShape(const PrimFunc& func, size_t param, const std::vector<int64_t>& shape,
                        const SizeValues& values) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<int64_t> size = EvaluateSize(func.params[param].shape()[d], values);
    if (size == shape[d]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("argument ", param, " (", func.params[param].name(), ") has size ", shape[d], " in dimension ", d,
                     ", expected ", size.has_value() ? absl::StrCat(*size) : "one that follows from other shapes"));
  }
  return absl::OkStatus();
}

// The function with `by(i)` in place of func.dims[i], which it states as before.
PrimFunc Replaced(const PrimFunc& func, const std::function<Expr(size_t)>& by) {
  const auto replacement = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < func.dims.size(); ++i) {
      if (func.dims[i] == var) return by(i);
    }
    return std::nullopt;
  };
  PrimFunc replaced = func;
  std::map<Buffer, Buffer> params;
  for (Buffer& param : replaced.params) {
    std::vector<Expr> shape;
    for (const Expr& extent : param.shape()) shape.push_back(Substitute(extent, replacement));
    const Buffer with(param.name(), param.type(), std::move(shape), param.scope());
    params.emplace(param, with);
    param = with;
  }
  replaced.body = ReplaceBuffers(Substitute(func.body, replacement), [&](const Buffer& b) -> std::optional<Buffer> {
    const auto found = params.find(b);
    return found == params.end() ? std::nullopt : std::optional(found->second);
  });
  return replaced;
}

}  // namespace

bool IsOverSizes(const Expr& e) {
  bool over_sizes = true;
  ForEachExpr(e, [&](const Expr& part) {
    const VarRef* ref = part.As<VarRef>();
    over_sizes = over_sizes && part.As<Load>() == nullptr && (ref == nullptr || ref->var.range().has_value());
    return over_sizes;
  });
  return over_sizes;
}

bool MentionsSize(const Expr& e) {
  const std::set<Var> free = FreeVars(e);
  return std::any_of(free.begin(), free.end(), [](const Var& var) { return var.range().has_value(); });
}

std::optional<int64_t> EvaluateSize(const Expr& e, const SizeValues& values) {
  if (const std::optional<int64_t> value = ConstantValue(e)) return value;
  if (const VarRef* ref = e.As<VarRef>()) {
    const auto found = values.find(ref->var);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  if (const Binary* node = e.As<Binary>()) {
    const DType type = node->a.type();  // of the operands: a comparison's own is bool
    if (!type.is_scalar() || type.is_float()) return std::nullopt;
    const std::optional<int64_t> a = EvaluateSize(node->a, values), b = EvaluateSize(node->b, values);
    return a.has_value() && b.has_value() ? EvalInt(node->op, *a, *b, type) : std::nullopt;
  }
  if (const Not* node = e.As<Not>()) {
    const std::optional<int64_t> a = EvaluateSize(node->a, values);
    return a.has_value() ? std::optional<int64_t>(*a == 0) : std::nullopt;
  }
  if (const Cast* node = e.As<Cast>()) {
    if (!e.type().is_int() || !(node->a.type().is_int() || node->a.type().is_bool())) return std::nullopt;
    const std::optional<int64_t> a = EvaluateSize(node->a, values);
    return a.has_value() ? std::optional(WrapToType(*a, e.type())) : std::nullopt;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<int64_t>> SizesFromShapes(const PrimFunc& func,
                                                     std::span<const std::vector<int64_t>> shapes) {
  HONE_CHECK(shapes.size() == func.params.size());
  SizeValues values;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (static_cast<int>(shapes[i].size()) != func.params[i].rank()) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " (", func.params[i].name(), ") has ",
                                                     shapes[i].size(), " dimensions, expected ",
                                                     func.params[i].rank()));
    }
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      if (const auto solved = Solve(func.params[i].shape()[d], shapes[i][d])) values.insert(*solved);
    }
  }
  for (size_t i = 0; i < shapes.size(); ++i) HONE_RETURN_IF_ERROR(CheckShape(func, i, shapes[i], values));
  std::vector<int64_t> sizes;
  for (const Var& dim : func.dims) {
    const auto found = values.find(dim);
    if (found == values.end())
      return absl::InvalidArgumentError(absl::StrCat("no argument's shape gives the size ", dim.name()));
    const SizeRange range = dim.range().value_or(SizeRange{});
    if (found->second < range.min || found->second > range.max) {
      return absl::InvalidArgumentError(absl::StrCat("the size ", dim.name(), " is ", found->second,
                                                     ", outside of its range from ", range.min, " to ", range.max));
    }
    sizes.push_back(found->second);
  }
  return sizes;
}

PrimFunc WithSizes(const PrimFunc& func, std::span<const int64_t> sizes) {
  HONE_CHECK(sizes.size() == func.dims.size());
  PrimFunc fixed = Replaced(func, [&](size_t i) { return IntConst(sizes[i], func.dims[i].type()); });
  fixed.dims.clear();
  return fixed;
}

PrimFunc WithRanges(const PrimFunc& func, std::span<const SizeRange> ranges) {
  HONE_CHECK(ranges.size() == func.dims.size());
  std::vector<Var> dims;
  for (size_t i = 0; i < ranges.size(); ++i) dims.emplace_back(func.dims[i].name(), func.dims[i].type(), ranges[i]);
  PrimFunc narrower = Replaced(func, [&](size_t i) {
    return ranges[i].min == ranges[i].max ? IntConst(ranges[i].min, dims[i].type()) : Expr(dims[i]);
  });
  narrower.dims = std::move(dims);
  return narrower;
}

}  // namespace hone
