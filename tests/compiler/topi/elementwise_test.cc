#include "compiler/topi/elementwise.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

struct UnaryCase {
  const char* name;
  std::function<Tensor(const Tensor&)> op;
  double (*naive)(double);
  Inputs inputs = {-3, 3};
};

TEST(Elementwise, Unary) {
  const Inputs positive = {0.01, 9};
  const UnaryCase cases[] = {
      {"exp", [](const Tensor& x) { return Exp(x); }, [](double x) { return std::exp(x); }},
      {"log", [](const Tensor& x) { return Log(x); }, [](double x) { return std::log(x); }, positive},
      {"sqrt", [](const Tensor& x) { return Sqrt(x); }, [](double x) { return std::sqrt(x); }, positive},
      {"rsqrt", [](const Tensor& x) { return Rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, positive},
      {"reciprocal", [](const Tensor& x) { return Reciprocal(x); }, [](double x) { return 1 / x; }, positive},
      {"sin", [](const Tensor& x) { return Sin(x); }, [](double x) { return std::sin(x); }},
      {"cos", [](const Tensor& x) { return Cos(x); }, [](double x) { return std::cos(x); }},
      {"tanh", [](const Tensor& x) { return Tanh(x); }, [](double x) { return std::tanh(x); }},
      {"erf", [](const Tensor& x) { return Erf(x); }, [](double x) { return std::erf(x); }},
      {"floor", [](const Tensor& x) { return Floor(x); }, [](double x) { return std::floor(x); }},
      {"ceil", [](const Tensor& x) { return Ceil(x); }, [](double x) { return std::ceil(x); }},
      {"round", [](const Tensor& x) { return Round(x); }, [](double x) { return std::nearbyint(x); }},
      {"sigmoid", [](const Tensor& x) { return Sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"silu", [](const Tensor& x) { return Silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }},
      {"gelu", [](const Tensor& x) { return Gelu(x); },
       [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); }},
      {"gelu_tanh", [](const Tensor& x) { return GeluTanh(x); },
       [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"softplus", [](const Tensor& x) { return Softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }},
      {"elu", [](const Tensor& x) { return Elu(x, 1.5); }, [](double x) { return x < 0 ? 1.5 * std::expm1(x) : x; }},
      {"leaky", [](const Tensor& x) { return LeakyRelu(x, 0.1); }, [](double x) { return x < 0 ? 0.1 * x : x; }},
      {"hard_sigmoid",
       [](const Tensor& x) { return HardSigmoid(x, 0.2, 0.5); },
       [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); },
       {-9, 9}},
      {"hard_swish",
       [](const Tensor& x) { return HardSwish(x); },
       [](double x) { return x * std::min(1.0, std::max(0.0, x / 6 + 0.5)); },
       {-9, 9}},
      {"relu", [](const Tensor& x) { return Relu(x); }, [](double x) { return std::max(x, 0.0); }},
      {"clip", [](const Tensor& x) { return Clip(x, -1, 2); },
       [](double x) { return std::min(2.0, std::max(-1.0, x)); }},
      {"clip_low", [](const Tensor& x) { return Clip(x, 0.5, std::numeric_limits<double>::infinity()); },
       [](double x) { return std::max(0.5, x); }},
      {"negative", [](const Tensor& x) { return Negative(x); }, [](double x) { return -x; }},
      {"abs", [](const Tensor& x) { return Abs(x); }, [](double x) { return std::abs(x); }},
      {"sign", [](const Tensor& x) { return Sign(x); }, [](double x) { return x > 0   ? 1.0
                                                                              : x < 0 ? -1.0
                                                                                      : 0.0; }},
      {"add_scalar", [](const Tensor& x) { return AddScalar(x, 3); }, [](double x) { return x + 3; }},
      {"multiply_scalar", [](const Tensor& x) { return MultiplyScalar(x, -2); }, [](double x) { return -2 * x; }},
      {"square", [](const Tensor& x) { return PowerScalar(x, 2); }, [](double x) { return x * x; }},
      {"cube", [](const Tensor& x) { return PowerScalar(x, 3); }, [](double x) { return x * x * x; }},
      {"inverse_square",
       [](const Tensor& x) { return PowerScalar(x, -2); },
       [](double x) { return 1 / (x * x); },
       {1, 3}},
      {"root", [](const Tensor& x) { return PowerScalar(x, 0.5); }, [](double x) { return std::sqrt(x); }, positive},
      {"inverse_root", [](const Tensor& x) { return PowerScalar(x, -0.5); }, [](double x) { return 1 / std::sqrt(x); },
       positive},
      {"power", [](const Tensor& x) { return PowerScalar(x, 1.7); }, [](double x) { return std::pow(x, 1.7); },
       positive},
      {"power_0", [](const Tensor& x) { return PowerScalar(x, 0); }, [](double) { return 1.0; }},
      {"identity", [](const Tensor& x) { return Identity(x); }, [](double x) { return x; }},
      {"isnan", [](const Tensor& x) { return IsNan(x); }, [](double) { return 0.0; }},
      {"to_int", [](const Tensor& x) { return Cast(x, kInt64); }, [](double x) { return std::trunc(x); }},
      {"to_bool", [](const Tensor& x) { return Cast(x, kBool); }, [](double x) { return x != 0 ? 1.0 : 0.0; }},
  };
  for (const UnaryCase& c : cases) {
    SCOPED_TRACE(c.name);
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{3, 17}, {}, {1, 2, 3, 4}}) {
      const Tensor x = Placeholder(shape, kFloat32, "x");
      ExpectComputes(
          {x}, c.op(x), [&](const std::vector<Values>& in, const Index& at) { return c.naive(in[0](at)); }, c.inputs);
    }
  }
}

TEST(Elementwise, SpecialValues) {
  const Tensor x = Placeholder({6}, kFloat32, "x");
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, inf, std::nanf("")};
  const std::vector<NdArray> arrays = {NdArray::Of<float>(kFloat32, {6}, values)};
  const auto check = [&](const Tensor& y, double (*naive)(double)) {
    ExpectComputesOn({x}, arrays, y, [&](const std::vector<Values>& in, const Index& at) { return naive(in[0](at)); });
  };
  check(Round(x), [](double v) { return std::nearbyint(v); });
  check(IsNan(x), [](double v) { return std::isnan(v) ? 1.0 : 0.0; });
  check(IsInf(x), [](double v) { return std::isinf(v) ? 1.0 : 0.0; });
}

struct BinaryCase {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
  double (*naive)(double, double);
};

TEST(Elementwise, BinaryBroadcasts) {
  const BinaryCase cases[] = {
      {"add", [](const Tensor& a, const Tensor& b) { return Add(a, b); }, [](double a, double b) { return a + b; }},
      {"subtract", [](const Tensor& a, const Tensor& b) { return Subtract(a, b); },
       [](double a, double b) { return a - b; }},
      {"multiply", [](const Tensor& a, const Tensor& b) { return Multiply(a, b); },
       [](double a, double b) { return a * b; }},
      {"divide", [](const Tensor& a, const Tensor& b) { return Divide(a, b); },
       [](double a, double b) { return a / b; }},
      {"maximum", [](const Tensor& a, const Tensor& b) { return Maximum(a, b); },
       [](double a, double b) { return std::max(a, b); }},
      {"minimum", [](const Tensor& a, const Tensor& b) { return Minimum(a, b); },
       [](double a, double b) { return std::min(a, b); }},
      {"power", [](const Tensor& a, const Tensor& b) { return Power(a, b); },
       [](double a, double b) { return std::pow(a, b); }},
      {"less", [](const Tensor& a, const Tensor& b) { return Less(a, b); },
       [](double a, double b) { return a < b ? 1.0 : 0; }},
      {"greater_equal", [](const Tensor& a, const Tensor& b) { return GreaterEqual(a, b); },
       [](double a, double b) { return a >= b ? 1.0 : 0; }},
      {"fmod", [](const Tensor& a, const Tensor& b) { return Fmod(a, b); },
       [](double a, double b) { return std::fmod(a, b); }},
      {"floor_divide", [](const Tensor& a, const Tensor& b) { return FloorDivide(a, b); },
       [](double a, double b) { return std::floor(a / b); }},
  };
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> shapes = {
      {{2, 3, 5}, {2, 3, 5}}, {{2, 3, 5}, {5}}, {{2, 3, 5}, {3, 1}}, {{4, 1}, {1, 6}}, {{3}, {}}, {{1, 7}, {4, 2, 7}}};
  const auto broadcast = [](const Values& t, const Index& at) {
    Index from(at.end() - t.rank(), at.end());
    for (int d = 0; d < t.rank(); ++d) from[d] = t.dim(d) == 1 ? 0 : from[d];
    return t(from);
  };
  for (const BinaryCase& c : cases) {
    for (const auto& [left, right] : shapes) {
      SCOPED_TRACE(std::string(c.name) + testing::PrintToString(left) + testing::PrintToString(right));
      const Tensor a = Placeholder(left, kFloat32, "a"), b = Placeholder(right, kFloat32, "b");
      ExpectComputes(
          {a, b}, c.op(a, b),
          [&](const std::vector<Values>& in, const Index& at) {
            return static_cast<double>(static_cast<float>(c.naive(broadcast(in[0], at), broadcast(in[1], at))));
          },
          {0.5, 2});
    }
  }
}

TEST(Elementwise, Integers) {
  const Tensor a = Placeholder({40}, kInt64, "a"), b = Placeholder({40}, kInt64, "b");
  const Inputs how = {0, 0, -7, 8};
  std::vector<NdArray> arrays = RandomArrays({a, b}, how, 3);
  for (int64_t i = 0; i < 40; ++i) {
    if (arrays[1].GetInt(i) == 0) arrays[1].SetInt(i, 3);
  }
  const auto check = [&](const Tensor& y, int64_t (*naive)(int64_t, int64_t)) {
    ExpectComputesOn({a, b}, arrays, y, [&](const std::vector<Values>& in, const Index& at) {
      return static_cast<double>(naive(static_cast<int64_t>(in[0](at)), static_cast<int64_t>(in[1](at))));
    });
  };
  check(Divide(a, b), [](int64_t x, int64_t y) { return x / y; });
  check(Mod(a, b), [](int64_t x, int64_t y) { return ((x % y) + y) % y; });
  check(Fmod(a, b), [](int64_t x, int64_t y) { return x % y; });
  check(Equal(a, b), [](int64_t x, int64_t y) -> int64_t { return x == y; });
  check(Maximum(a, b), [](int64_t x, int64_t y) { return std::max(x, y); });
  check(Cast(a, kFloat32), [](int64_t x, int64_t) { return x; });
  check(Abs(a), [](int64_t x, int64_t) { return std::abs(x); });
}

TEST(Elementwise, PreluSlopes) {
  const Tensor x = Placeholder({2, 3, 4}, kFloat32, "x"), slope = Placeholder({4}, kFloat32, "slope");
  ExpectComputes({x, slope}, Prelu(x, slope), [](const std::vector<Values>& in, const Index& at) {
    return in[0](at) < 0 ? in[0](at) * in[1]({at[2]}) : in[0](at);
  });
}

TEST(Elementwise, BoolsAndWhere) {
  const Tensor p = Placeholder({3, 4}, kBool, "p"), q = Placeholder({4}, kBool, "q");
  const auto check = [&](const Tensor& y, bool (*naive)(bool, bool)) {
    ExpectComputes({p, q}, y, [&](const std::vector<Values>& in, const Index& at) {
      return naive(in[0](at) != 0, in[1]({at[1]}) != 0) ? 1.0 : 0.0;
    });
  };
  check(LogicalAnd(p, q), [](bool a, bool b) { return a && b; });
  check(LogicalOr(p, q), [](bool a, bool b) { return a || b; });
  check(LogicalXor(p, q), [](bool a, bool b) { return a != b; });
  const Tensor x = Placeholder({3, 1}, kFloat32, "x"), y = Placeholder({}, kFloat32, "y");
  ExpectComputes({q, x, y}, Where(q, x, y), [](const std::vector<Values>& in, const Index& at) {
    return in[0]({at[1]}) != 0 ? in[1]({at[0], 0}) : in[2]({});
  });
  ExpectComputes({q}, LogicalNot(q), [](const std::vector<Values>& in, const Index& at) { return 1 - in[0](at); });
}

TEST(ElementwiseDeathTest, ShapesMustBroadcast) {
  const Tensor a = Placeholder({2, 3}, kFloat32, "a"), b = Placeholder({4}, kFloat32, "b");
  EXPECT_DEATH(Add(a, b), "sizes 3 and 4 do not broadcast");
  const Tensor c = Placeholder({3}, kInt32, "c");
  EXPECT_DEATH(Add(a, c), "add of float32 and int32");
}

}  // namespace
}  // namespace hone::topi
