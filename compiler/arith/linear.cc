#include "compiler/arith/linear.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

bool Mentions(const Expr& e, std::span<const Var> vars) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& part) {
    const VarRef* ref = part.As<VarRef>();
    found = found || (ref != nullptr && std::ranges::find(vars, ref->var) != vars.end());
    return !found;
  });
  return found;
}

// What the sum says of the variables; nullopt where one of them is inside an atom.
std::optional<LinearForm> LinearIn(const Sum& sum, std::span<const Var> vars, DType type) {
  LinearForm form{std::vector<int64_t>(vars.size()), Expr()};
  Sum base = Sum::Constant(sum.constant);
  for (const Term& term : sum.terms) {
    const VarRef* ref = term.atom.As<VarRef>();
    const auto found = ref == nullptr ? vars.end() : std::ranges::find(vars, ref->var);
    if (found != vars.end()) {
      form.coefficients[found - vars.begin()] = term.coefficient;
    } else if (ref == nullptr && Mentions(term.atom, vars)) {
      return std::nullopt;
    } else {
      AddTerm(base, term);
    }
  }
  form.base = ToExpr(base, type);
  return form;
}

}  // namespace

std::optional<LinearForm> DetectLinear(const Expr& e, std::span<const Var> vars) {
  if (std::optional<LinearForm> form = LinearIn(SumOf(e), vars, e.type())) return form;
  const Expr simple = Simplify(e);  // (i*4) // 4 and its like
  return simple.SameAs(e) ? std::nullopt : LinearIn(SumOf(simple), vars, e.type());
}

std::optional<int64_t> StrideOf(const Expr& e, const Var& var) {
  const std::optional<LinearForm> form = DetectLinear(e, std::span(&var, 1));
  return form ? std::optional(form->coefficients[0]) : std::nullopt;
}

std::optional<int64_t> MostElements(const Buffer& buffer) {
  if (const std::optional<int64_t> elements = buffer.NumElements()) return elements;
  Analyzer known;
  int64_t most = 1;
  for (const Expr& extent : buffer.shape()) {
    const Bounds bounds = known.ConstBounds(extent);
    if (!bounds.bounded_above() || __builtin_mul_overflow(most, std::max<int64_t>(bounds.max, 0), &most))
      return std::nullopt;
  }
  return most;
}

Expr FlatIndex(const Buffer& buffer, std::span<const Expr> indices) {
  HONE_CHECK(static_cast<int>(indices.size()) == buffer.rank())
      << buffer.name() << " with " << indices.size() << " indices";
  Expr flat = 0;
  for (size_t i = 0; i < indices.size(); ++i) flat = i == 0 ? indices[0] : flat * buffer.shape()[i] + indices[i];
  return flat;
}

std::optional<int64_t> ElementStride(const Buffer& buffer, std::span<const Expr> indices, const Var& var) {
  int64_t stride = 0, step = 1;  // of the dimension, in elements
  for (size_t i = indices.size(); i-- > 0;) {
    const std::optional<int64_t> moves = StrideOf(indices[i], var);
    if (!moves.has_value()) return std::nullopt;
    if (*moves != 0 && step == 0) return std::nullopt;  // an inner dimension is symbolic
    stride += *moves * step;
    const std::optional<int64_t> extent = ConstantValue(buffer.shape()[i]);
    step = extent.has_value() ? step * *extent : 0;
  }
  return stride;
}

}  // namespace hone
