#include "compiler/arith/linear.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

class Detector {
 public:
  explicit Detector(std::span<const Var> vars) : vars_(vars), form_{std::vector<int64_t>(vars.size()), Expr()} {}

  // Adds scale * e; false when e is not affine.
  bool Add(const Expr& e, int64_t scale) {
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = std::ranges::find(vars_, ref->var);
      if (found == vars_.end()) return AddBase(e, scale);
      form_.coefficients[found - vars_.begin()] += scale;
      return true;
    }
    if (!Mentions(e)) return AddBase(e, scale);
    if (const Cast* cast = e.As<Cast>();
        cast != nullptr && cast->a.type().is_int() && e.type().bits >= cast->a.type().bits) {
      return Add(cast->a, scale);
    }
    const Binary* op = e.As<Binary>();
    if (op == nullptr) return false;
    switch (op->op) {
      case BinaryOp::kAdd: return Add(op->a, scale) && Add(op->b, scale);
      case BinaryOp::kSub: return Add(op->a, scale) && Add(op->b, -scale);
      case BinaryOp::kMul:
        if (const std::optional<int64_t> c = ConstantValue(op->b)) return Add(op->a, scale * *c);
        if (const std::optional<int64_t> c = ConstantValue(op->a)) return Add(op->b, scale * *c);
        return false;
      default: return false;
    }
  }
  LinearForm Result(DType type) {
    if (!form_.base) form_.base = IntConst(0, type);
    return std::move(form_);
  }

 private:
  bool AddBase(const Expr& e, int64_t scale) {
    if (scale == 0) return true;
    Expr scaled = e * IntConst(scale, e.type());
    form_.base = form_.base ? form_.base + scaled : scaled;
    return true;
  }
  bool Mentions(const Expr& e) const {
    bool found = false;
    ForEachExpr(e, [&](const Expr& part) {
      const VarRef* ref = part.As<VarRef>();
      found = found || (ref != nullptr && std::ranges::find(vars_, ref->var) != vars_.end());
      return !found;
    });
    return found;
  }
  std::span<const Var> vars_;
  LinearForm form_;
};

}  // namespace

std::optional<LinearForm> DetectLinear(const Expr& e, std::span<const Var> vars) {
  Detector direct(vars);
  if (direct.Add(e, 1)) return direct.Result(e.type());
  const Expr simple = Simplify(e);  // (i*4) // 4 and its like
  if (simple.SameAs(e)) return std::nullopt;
  Detector second(vars);
  if (second.Add(simple, 1)) return second.Result(e.type());
  return std::nullopt;
}

std::optional<int64_t> StrideOf(const Expr& e, const Var& var) {
  const std::optional<LinearForm> form = DetectLinear(e, std::span(&var, 1));
  return form ? std::optional(form->coefficients[0]) : std::nullopt;
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
