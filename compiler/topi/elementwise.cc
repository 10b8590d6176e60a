#include "compiler/topi/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"

namespace hone::topi {
namespace {

Expr One(const Expr& x) { return Const(1, x.type()); }
Expr Zero(const Expr& x) { return Const(0, x.type()); }
Expr Scalar(double value, const Expr& x) { return Const(value, x.type()); }

std::function<Expr(Expr)> Intrinsic(const char* name) {
  return [name](Expr x) { return MakeCall(name, {std::move(x)}); };
}

Expr ClipExpr(const Expr& x, double low, double high) {
  Expr y = x;
  if (low != -std::numeric_limits<double>::infinity()) y = Max(y, Scalar(low, x));
  if (high != std::numeric_limits<double>::infinity()) y = Min(y, Scalar(high, x));
  return y;
}

Expr HardSigmoidExpr(const Expr& x, double alpha, double beta) {
  return ClipExpr(x * Scalar(alpha, x) + Scalar(beta, x), 0, 1);
}

Expr ToTypeExpr(DType dtype, const Expr& x) {
  if (x.type() == dtype) return x;
  if (dtype.is_bool()) return Ne(x, Zero(x));
  return MakeCast(dtype, x);
}

// x * x * x by as few products as binary powers give.
Expr IntegerPower(const Expr& x, int64_t exponent) {
  if (exponent == 0) return One(x);
  if (exponent < 0) return One(x) / IntegerPower(x, -exponent);
  const Expr half = IntegerPower(x, exponent / 2);
  const Expr square = exponent / 2 == 0 ? One(x) : half * half;
  return exponent % 2 == 0 ? square : exponent == 1 ? x : square * x;
}

}  // namespace

te::Shape BroadcastShape(const te::Shape& a, const te::Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  te::Shape shape;
  for (size_t d = 0; d < rank; ++d) {
    const Expr x = d + a.size() >= rank ? a[d + a.size() - rank] : Expr(1);
    const Expr y = d + b.size() >= rank ? b[d + b.size() - rank] : Expr(1);
    const std::optional<int64_t> m = ConstantValue(x), n = ConstantValue(y);
    HONE_CHECK(!m || !n || *m == *n || *m == 1 || *n == 1) << "sizes " << *m << " and " << *n << " do not broadcast";
    shape.push_back(m && *m == 1 ? y : x);
  }
  return shape;
}

Expr BroadcastAccess(const te::Tensor& t, const te::Indices& at, const te::Shape& shape) {
  HONE_CHECK(t.rank() <= static_cast<int>(at.size())) << t.name() << " has a higher rank than what it broadcasts to";
  std::vector<Expr> indices;
  for (int d = 0; d < t.rank(); ++d) {
    const size_t place = at.size() - t.rank() + d;
    const bool repeated = IsConst(t.shape()[d], 1) && !IsConst(shape[place], 1);
    indices.push_back(repeated ? IntConst(0, at[place].type()) : Expr(at[place]));
  }
  return t(indices);
}

te::Tensor Unary(const te::Tensor& x, const std::function<Expr(Expr)>& f, const std::string& name) {
  return te::Compute(
      x.shape(), [&](const te::Indices& i) { return f(x(i)); }, name);
}

te::Tensor Binary(const te::Tensor& a, const te::Tensor& b, const std::function<Expr(Expr, Expr)>& f,
                  const std::string& name) {
  HONE_CHECK(a.dtype() == b.dtype()) << name << " of " << ToText(a.dtype()) << " and " << ToText(b.dtype());
  const te::Shape shape = BroadcastShape(a.shape(), b.shape());
  return te::Compute(
      shape, [&](const te::Indices& i) { return f(BroadcastAccess(a, i, shape), BroadcastAccess(b, i, shape)); }, name);
}

te::Tensor Add(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x + y; }, name);
}
te::Tensor Subtract(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x - y; }, name);
}
te::Tensor Multiply(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x * y; }, name);
}
te::Tensor Divide(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x / y; }, name);
}
te::Tensor FloorDivide(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x.type().is_float() ? MakeCall("floor", {x / y}) : FloorDiv(x, y); }, name);
}
te::Tensor Mod(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return FloorMod(x, y); }, name);
}
te::Tensor Fmod(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return MakeBinary(BinaryOp::kMod, x, y); }, name);
}
te::Tensor Maximum(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return Max(x, y); }, name);
}
te::Tensor Minimum(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return Min(x, y); }, name);
}
te::Tensor Power(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b,
      [](Expr x, Expr y) {
        return MakeCall("pow", {x, y});
      },
      name);
}

te::Tensor PowerScalar(const te::Tensor& x, double exponent, const std::string& name) {
  return Unary(
      x,
      [exponent](Expr e) {
        if (exponent == std::floor(exponent) && std::abs(exponent) <= 8) {
          return IntegerPower(e, static_cast<int64_t>(exponent));
        }
        if (exponent == 0.5) return MakeCall("sqrt", {e});
        if (exponent == -0.5) return MakeCall("rsqrt", {e});
        return MakeCall("pow", {e, Scalar(exponent, e)});
      },
      name);
}

te::Tensor Equal(const te::Tensor& a, const te::Tensor& b, const std::string& name) { return Binary(a, b, Eq, name); }
te::Tensor NotEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(a, b, Ne, name);
}
te::Tensor Less(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x < y; }, name);
}
te::Tensor LessEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x <= y; }, name);
}
te::Tensor Greater(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x > y; }, name);
}
te::Tensor GreaterEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(
      a, b, [](Expr x, Expr y) { return x >= y; }, name);
}
te::Tensor LogicalAnd(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(a, b, And, name);
}
te::Tensor LogicalOr(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(a, b, Or, name);
}
te::Tensor LogicalXor(const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  return Binary(a, b, Ne, name);
}
te::Tensor LogicalNot(const te::Tensor& x, const std::string& name) { return Unary(x, MakeNot, name); }

te::Tensor Where(const te::Tensor& condition, const te::Tensor& a, const te::Tensor& b, const std::string& name) {
  HONE_CHECK(condition.dtype().is_bool() && a.dtype() == b.dtype()) << name << ": types do not match";
  const te::Shape shape = BroadcastShape(condition.shape(), BroadcastShape(a.shape(), b.shape()));
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        return MakeSelect(BroadcastAccess(condition, i, shape), BroadcastAccess(a, i, shape),
                          BroadcastAccess(b, i, shape));
      },
      name);
}

te::Tensor Exp(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("exp"), name); }
te::Tensor Log(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("log"), name); }
te::Tensor Sqrt(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("sqrt"), name); }
te::Tensor Rsqrt(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("rsqrt"), name); }
te::Tensor Reciprocal(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return One(e) / e; }, name);
}
te::Tensor Sin(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("sin"), name); }
te::Tensor Cos(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("cos"), name); }
te::Tensor Tanh(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("tanh"), name); }
te::Tensor Erf(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("erf"), name); }
te::Tensor Floor(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("floor"), name); }
te::Tensor Ceil(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("ceil"), name); }
te::Tensor Round(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("round"), name); }
te::Tensor IsNan(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("isnan"), name); }
te::Tensor IsInf(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("isinf"), name); }
te::Tensor Sigmoid(const te::Tensor& x, const std::string& name) { return Unary(x, Intrinsic("sigmoid"), name); }
te::Tensor Silu(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return e * MakeCall("sigmoid", {e}); }, name);
}
te::Tensor Gelu(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return e * Scalar(0.5, e) * (One(e) + MakeCall("erf", {e * Scalar(std::sqrt(0.5), e)})); }, name);
}
te::Tensor GeluTanh(const te::Tensor& x, const std::string& name) {
  return Unary(
      x,
      [](Expr e) {
        const Expr inner = Scalar(std::sqrt(2 / M_PI), e) * (e + Scalar(0.044715, e) * e * e * e);
        return e * Scalar(0.5, e) * (One(e) + MakeCall("tanh", {inner}));
      },
      name);
}
te::Tensor Softplus(const te::Tensor& x, const std::string& name) {
  return Unary(
      x,
      [](Expr e) {
        return Max(e, Zero(e)) + MakeCall("log", {One(e) + MakeCall("exp", {Zero(e) - MakeCall("abs", {e})})});
      },
      name);
}
te::Tensor Elu(const te::Tensor& x, double alpha, const std::string& name) {
  return Unary(
      x,
      [alpha](Expr e) {
        const Expr below = Scalar(alpha, e) * (MakeCall("exp", {Min(e, Zero(e))}) - One(e));
        return MakeSelect(e < Zero(e), below, e);
      },
      name);
}
te::Tensor LeakyRelu(const te::Tensor& x, double alpha, const std::string& name) {
  return Unary(
      x, [alpha](Expr e) { return MakeSelect(e < Zero(e), e * Scalar(alpha, e), e); }, name);
}
te::Tensor Prelu(const te::Tensor& x, const te::Tensor& slope, const std::string& name) {
  return Binary(
      x, slope, [](Expr e, Expr s) { return MakeSelect(e < Zero(e), e * s, e); }, name);
}
te::Tensor HardSigmoid(const te::Tensor& x, double alpha, double beta, const std::string& name) {
  return Unary(
      x, [=](Expr e) { return HardSigmoidExpr(e, alpha, beta); }, name);
}
te::Tensor HardSwish(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return e * HardSigmoidExpr(e, 1.0 / 6, 0.5); }, name);
}

te::Tensor Relu(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return Max(e, Zero(e)); }, name);
}
te::Tensor Clip(const te::Tensor& x, double low, double high, const std::string& name) {
  return Unary(
      x, [=](Expr e) { return ClipExpr(e, low, high); }, name);
}
te::Tensor Negative(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return -e; }, name);
}
te::Tensor Abs(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return e.type().is_float() ? MakeCall("abs", {e}) : Max(e, Zero(e) - e); }, name);
}
te::Tensor Sign(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return MakeSelect(e > Zero(e), One(e), MakeSelect(e < Zero(e), Scalar(-1, e), Zero(e))); }, name);
}
te::Tensor AddScalar(const te::Tensor& x, double value, const std::string& name) {
  return Unary(
      x, [value](Expr e) { return e + Scalar(value, e); }, name);
}
te::Tensor MultiplyScalar(const te::Tensor& x, double value, const std::string& name) {
  return Unary(
      x, [value](Expr e) { return e * Scalar(value, e); }, name);
}
te::Tensor Cast(const te::Tensor& x, DType dtype, const std::string& name) {
  return Unary(
      x, [dtype](Expr e) { return ToTypeExpr(dtype, e); }, name);
}
te::Tensor Identity(const te::Tensor& x, const std::string& name) {
  return Unary(
      x, [](Expr e) { return e; }, name);
}

}  // namespace hone::topi
