// One element in, one element out. Binary functions broadcast as numpy does: shapes are aligned at the end and a
// dimension of size 1 is repeated. Both sides have one type.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// The shape two shapes broadcast to; HONE_CHECK when they do not.
te::Shape BroadcastShape(const te::Shape& a, const te::Shape& b);
// The element of `t` that broadcasting puts at these indices of a result of shape `shape`. A dimension that is not
// repeated is read at the result's own variable, also where both have size 1.
Expr BroadcastAccess(const te::Tensor& t, const te::Indices& at, const te::Shape& shape);

// y = f(x) and y = f(a, b), named `name`: what all the others are made of.
te::Tensor Unary(const te::Tensor& x, const std::function<Expr(Expr)>& f, const std::string& name);
te::Tensor Binary(const te::Tensor& a, const te::Tensor& b, const std::function<Expr(Expr, Expr)>& f,
                  const std::string& name);

te::Tensor Add(const te::Tensor& a, const te::Tensor& b, const std::string& name = "add");
te::Tensor Subtract(const te::Tensor& a, const te::Tensor& b, const std::string& name = "subtract");
te::Tensor Multiply(const te::Tensor& a, const te::Tensor& b, const std::string& name = "multiply");
te::Tensor Divide(const te::Tensor& a, const te::Tensor& b, const std::string& name = "divide");  // integers: truncates
te::Tensor FloorDivide(const te::Tensor& a, const te::Tensor& b, const std::string& name = "floor_divide");
te::Tensor Mod(const te::Tensor& a, const te::Tensor& b, const std::string& name = "mod");    // sign of the divisor
te::Tensor Fmod(const te::Tensor& a, const te::Tensor& b, const std::string& name = "fmod");  // sign of the dividend
te::Tensor Maximum(const te::Tensor& a, const te::Tensor& b, const std::string& name = "maximum");
te::Tensor Minimum(const te::Tensor& a, const te::Tensor& b, const std::string& name = "minimum");
te::Tensor Power(const te::Tensor& a, const te::Tensor& b, const std::string& name = "power");
// x ^ exponent for a constant: 2, 3, 0.5, -0.5, -1 and other small integers become products, sqrt, rsqrt.
te::Tensor PowerScalar(const te::Tensor& x, double exponent, const std::string& name = "power");
// To bool.
te::Tensor Equal(const te::Tensor& a, const te::Tensor& b, const std::string& name = "equal");
te::Tensor NotEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name = "not_equal");
te::Tensor Less(const te::Tensor& a, const te::Tensor& b, const std::string& name = "less");
te::Tensor LessEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name = "less_equal");
te::Tensor Greater(const te::Tensor& a, const te::Tensor& b, const std::string& name = "greater");
te::Tensor GreaterEqual(const te::Tensor& a, const te::Tensor& b, const std::string& name = "greater_equal");
// Of bools.
te::Tensor LogicalAnd(const te::Tensor& a, const te::Tensor& b, const std::string& name = "logical_and");
te::Tensor LogicalOr(const te::Tensor& a, const te::Tensor& b, const std::string& name = "logical_or");
te::Tensor LogicalXor(const te::Tensor& a, const te::Tensor& b, const std::string& name = "logical_xor");
te::Tensor LogicalNot(const te::Tensor& x, const std::string& name = "logical_not");
// condition ? a : b, all three broadcast.
te::Tensor Where(const te::Tensor& condition, const te::Tensor& a, const te::Tensor& b,
                 const std::string& name = "where");

// Floating point alone.
te::Tensor Exp(const te::Tensor& x, const std::string& name = "exp");
te::Tensor Log(const te::Tensor& x, const std::string& name = "log");
te::Tensor Sqrt(const te::Tensor& x, const std::string& name = "sqrt");
te::Tensor Rsqrt(const te::Tensor& x, const std::string& name = "rsqrt");
te::Tensor Reciprocal(const te::Tensor& x, const std::string& name = "reciprocal");
te::Tensor Sin(const te::Tensor& x, const std::string& name = "sin");
te::Tensor Cos(const te::Tensor& x, const std::string& name = "cos");
te::Tensor Tanh(const te::Tensor& x, const std::string& name = "tanh");
te::Tensor Erf(const te::Tensor& x, const std::string& name = "erf");
te::Tensor Floor(const te::Tensor& x, const std::string& name = "floor");
te::Tensor Ceil(const te::Tensor& x, const std::string& name = "ceil");
te::Tensor Round(const te::Tensor& x, const std::string& name = "round");            // halves to even
te::Tensor IsNan(const te::Tensor& x, const std::string& name = "isnan");            // to bool
te::Tensor IsInf(const te::Tensor& x, const std::string& name = "isinf");            // to bool
te::Tensor Sigmoid(const te::Tensor& x, const std::string& name = "sigmoid");        // 1 / (1 + exp(-x))
te::Tensor Silu(const te::Tensor& x, const std::string& name = "silu");              // x * sigmoid(x)
te::Tensor Gelu(const te::Tensor& x, const std::string& name = "gelu");              // x / 2 * (1 + erf(x / sqrt 2))
te::Tensor GeluTanh(const te::Tensor& x, const std::string& name = "gelu_tanh");     // the tanh approximation
te::Tensor Softplus(const te::Tensor& x, const std::string& name = "softplus");      // log(1 + exp(x)), no overflow
te::Tensor Elu(const te::Tensor& x, double alpha, const std::string& name = "elu");  // x < 0 ? alpha (e^x - 1) : x
te::Tensor LeakyRelu(const te::Tensor& x, double alpha, const std::string& name = "leaky_relu");
te::Tensor Prelu(const te::Tensor& x, const te::Tensor& slope,
                 const std::string& name = "prelu");  // slope broadcasts to x
te::Tensor HardSigmoid(const te::Tensor& x, double alpha = 1.0 / 6, double beta = 0.5,
                       const std::string& name = "hard_sigmoid");                   // clip(alpha x + beta, 0, 1)
te::Tensor HardSwish(const te::Tensor& x, const std::string& name = "hard_swish");  // x * hard_sigmoid(x)
// Any number.
te::Tensor Relu(const te::Tensor& x, const std::string& name = "relu");
te::Tensor Clip(const te::Tensor& x, double low, double high, const std::string& name = "clip");  // infinite: no bound
te::Tensor Negative(const te::Tensor& x, const std::string& name = "negative");
te::Tensor Abs(const te::Tensor& x, const std::string& name = "abs");
te::Tensor Sign(const te::Tensor& x, const std::string& name = "sign");
te::Tensor AddScalar(const te::Tensor& x, double value, const std::string& name = "add");
te::Tensor MultiplyScalar(const te::Tensor& x, double value, const std::string& name = "multiply");
// Floats to integers truncate; anything to bool is "is not zero".
te::Tensor Cast(const te::Tensor& x, DType dtype, const std::string& name = "cast");
te::Tensor Identity(const te::Tensor& x, const std::string& name = "identity");

}  // namespace hone::topi
