// Accuracy of the mathematical functions over their whole range, special values included, against the C library: float
// functions in units in the last place against the double function, double functions against long double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "compiler/ir/math_functions.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/random.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

PrimFunc Apply(const std::string& name, DType type, int64_t n, int arity) {
  std::string args;
  for (int i = 0; i < arity; ++i) args += std::string(i == 0 ? "" : ", ") + (i == 0 ? "A[v]" : "B[v]");
  const std::string shape = "T.Buffer((" + std::to_string(n) + ",), \"" + ToText(type) + "\")";
  return ParseOrDie("@T.prim_func\ndef main(A: " + shape + ", B: " + shape + ", C: " + shape + R"():
    for o in range()" +
                    std::to_string(n / 16) + R"():
        for i in T.vectorized(16):
            with T.block("C"):
                v = T.axis.spatial()" +
                    std::to_string(n) + ", o * 16 + i)\n" + "                C[v] = T." + name + "(" + args + ")\n");
}

std::vector<NdArray> Evaluate(const std::string& name, DType type, const std::vector<double>& a,
                              const std::vector<double>& b, int arity, NumericLevel numeric = NumericLevel::kDefault) {
  const int64_t n = (static_cast<int64_t>(a.size()) + 15) / 16 * 16;
  std::vector<NdArray> args(3, NdArray(type, {n}));
  for (size_t i = 0; i < a.size(); ++i) args[0].Set(static_cast<int64_t>(i), a[i]);
  for (size_t i = 0; i < b.size(); ++i) args[1].Set(static_cast<int64_t>(i), b[i]);
  const PrimFunc func = Apply(name, type, n, arity);
  const absl::StatusOr<CompiledKernel> kernel =
      CompileKernel(ScheduledProgram{func, {}}, HostTarget(), {.numeric = numeric});
  HONE_CHECK(kernel.ok()) << kernel.status();
  const absl::Status ran = RunCompiled(*kernel, args);
  HONE_CHECK(ran.ok()) << ran;
  return args;
}

struct FunctionCase {
  const char* name;
  long double (*exact)(long double);
  double low, high;  // range to sample; the special values are always tried
  double ulp;        // allowed in float
  double relative;   // allowed in double
};
long double Sigmoid(long double x) { return 1 / (1 + expl(-x)); }
long double Rsqrt(long double x) { return 1 / sqrtl(x); }

const FunctionCase kCases[] = {
    {"exp", expl, -110, 95, 2, 1e-15},         {"exp2", exp2l, -155, 130, 2, 1e-15},
    {"log", logl, 0, 1e30, 3, 1e-15},          {"log2", log2l, 0, 1e30, 4, 1e-15},
    {"tanh", tanhl, -25, 25, 4, 2e-15},        {"erf", erfl, -7, 7, 2, 2e-15},
    {"sigmoid", Sigmoid, -100, 100, 3, 1e-15}, {"sin", sinl, -1e4, 1e4, 1, 1e-13},
    {"cos", cosl, -1e4, 1e4, 1, 1e-13},        {"tan", tanl, -1e4, 1e4, 1, 1e-13},
    {"expm1", expm1l, -110, 95, 5, 4e-15},     {"log1p", log1pl, -0.9999, 1e30, 5, 4e-15},
    {"atan", atanl, -1e30, 1e30, 4, 1e-15},    {"rsqrt", Rsqrt, 0, 1e30, 2, 1e-15},
    {"sqrt", sqrtl, 0, 1e30, 0.5, 1e-15},      {"asin", asinl, -1, 1, 4, 1e-15},
    {"acos", acosl, -1, 1, 4, 1e-15},          {"sinh", sinhl, -90, 90, 4, 2e-15},
    {"cosh", coshl, -90, 90, 4, 2e-15},        {"asinh", asinhl, -1e30, 1e30, 4, 4e-15},
    {"acosh", acoshl, 1, 1e30, 4, 4e-15},      {"atanh", atanhl, -1, 1, 4, 4e-15},
};

// Those whose value is a number of the type, and those of two arguments: by the tests at the end.
constexpr const char *kExact[] = {"floor", "ceil", "round", "trunc", "abs"}, *kOfTwo[] = {"atan2", "pow"};

// A function that is added needs a row in one of the tables above.
TEST(MathFunctionTable, EveryFunctionIsHeldToAnAccuracy) {
  std::set<std::string_view> rows(std::begin(kExact), std::end(kExact));
  rows.insert(std::begin(kOfTwo), std::end(kOfTwo));
  for (const FunctionCase& c : kCases) EXPECT_TRUE(rows.insert(c.name).second) << c.name << " has two rows";
  for (const MathFunction& function : MathFunctions())
    EXPECT_EQ(rows.erase(function.name), 1u) << function.name << " has no row in kCases: how accurate is it?";
  EXPECT_TRUE(rows.empty()) << *rows.begin() << " is no mathematical function";
}

class Accuracy : public ::testing::TestWithParam<FunctionCase> {};

// Uniform over the range, close to 0 and 1, and over all magnitudes.
std::vector<double> Samples(const FunctionCase& c, bool wide) {
  Random random(11);
  std::vector<double> x;
  for (int i = 0; i < 20000; ++i) x.push_back(c.low + (c.high - c.low) * random.Uniform());
  for (int i = 0; i < 4000; ++i) x.push_back((c.low < 0 ? 2 : 1) * random.Uniform() - (c.low < 0 ? 1 : 0));
  for (int i = 0; i < 4000; ++i) x.push_back(1 + (random.Uniform() - 0.5) * 1e-3);
  for (int i = 0; i < 4000; ++i) {
    const double magnitude =
        std::ldexp(1 + random.Uniform(), static_cast<int>(random.Below(wide ? 600 : 140)) - (wide ? 500 : 130));
    if (magnitude <= c.high) x.push_back(c.low < 0 && random.Chance(0.5) ? -magnitude : magnitude);
  }
  return x;
}

// The largest error of the float function, in units of the last place of the result.
void ExpectWithin(const FunctionCase& c, NumericLevel numeric, double allowed) {
  const std::vector<double> x = Samples(c, false);
  const std::vector<NdArray> args = Evaluate(c.name, kFloat32, x, {}, 1, numeric);
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double input = args[0].Get(static_cast<int64_t>(i)), got = args[2].Get(static_cast<int64_t>(i));
    const double want = static_cast<double>(c.exact(input));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << c.name << "(" << input << ") is " << got;
      continue;
    }
    const float rounded = static_cast<float>(want);
    if (std::isinf(rounded)) {
      EXPECT_EQ(got, rounded) << c.name << "(" << input << ")";
      continue;
    }
    const double unit = std::max(std::ldexp(1.0, std::ilogb(want == 0 ? 1e-300 : want) - 23), 0x1p-149);
    const double error = std::abs(got - want) / unit;
    if (!(error <= worst)) worst = error, at = input;
  }
  EXPECT_LE(worst, allowed) << c.name << " is worst at " << at;
}

TEST_P(Accuracy, Float) { ExpectWithin(GetParam(), NumericLevel::kDefault, GetParam().ulp); }
TEST_P(Accuracy, FloatStrict) { ExpectWithin(GetParam(), NumericLevel::kStrict, GetParam().exact == Rsqrt ? 2 : 1); }

TEST_P(Accuracy, Double) {
  const FunctionCase& c = GetParam();
  const std::vector<double> x = Samples(c, true);
  const std::vector<NdArray> args = Evaluate(c.name, DType::Float(64), x, {}, 1);
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double got = args[2].Get(static_cast<int64_t>(i));
    const long double want = c.exact(x[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << c.name << "(" << x[i] << ") is " << got;
      continue;
    }
    if (std::isinf(static_cast<double>(want))) {
      EXPECT_EQ(got, static_cast<double>(want)) << c.name << "(" << x[i] << ")";
      continue;
    }
    const double error = static_cast<double>(std::abs(got - want) /
                                             std::max<long double>(std::abs(want), std::numeric_limits<double>::min()));
    if (!(error <= worst)) worst = error, at = x[i];
  }
  EXPECT_LE(worst, c.relative) << c.name << " is worst at " << at;
}

TEST_P(Accuracy, SpecialValues) {
  const FunctionCase& c = GetParam();
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const DType type : {kFloat32, DType::Float(64)}) {
    const std::vector<double> x = {0, 1, -1, inf, -inf, nan, 1e30, -1e30};
    const std::vector<NdArray> args = Evaluate(c.name, type, x, {}, 1);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(x[i]) == 1e30 && c.low == -1e4) continue;  // no digits of pi reach so far
      const double got = args[2].Get(static_cast<int64_t>(i));
      const double want = RoundToType(static_cast<double>(c.exact(args[0].Get(static_cast<int64_t>(i)))), type);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << c.name << "(" << x[i] << ") is " << got;
      } else if (std::isinf(want) || want == 0) {
        EXPECT_EQ(got, want) << c.name << "(" << x[i] << ")";
      } else {
        EXPECT_NEAR(got, want, 1e-6 * std::abs(want)) << c.name << "(" << x[i] << ")";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Where the domain of a function ends, where its value becomes infinite in float and in double, denormal numbers, and
// where an expansion changes its form: zeros with their signs.
TEST(InverseAndHyperbolic, EdgesAgreeWithTheLibrary) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> edges = {0,
                                     1,
                                     std::nextafter(1.0, 0.0),
                                     std::nextafter(1.0, 2.0),
                                     std::nextafterf(1, 0),
                                     std::nextafterf(1, 2),
                                     inf,
                                     nan,
                                     0x1p-149,
                                     0x1p-127,
                                     0x1p-126,
                                     0x1p-1074,
                                     0x1p-1022,
                                     0x1p-13,
                                     std::nextafterf(0x1p-13F, 0),
                                     0x1p-27,
                                     0x1p60,
                                     std::nextafterf(0x1p60F, 1e30F),
                                     88.7,
                                     88.73,
                                     89.41598,
                                     89.416,
                                     89.42,
                                     90,
                                     709.7,
                                     709.8,
                                     710.4758,
                                     710.476,
                                     711,
                                     1e3,
                                     std::numeric_limits<float>::max(),
                                     std::numeric_limits<double>::max()};
  std::vector<double> x = edges;
  for (const double edge : edges) x.push_back(-edge);
  for (const char* name : {"asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh"}) {
    for (const DType type : {kFloat32, DType::Float(64)}) {
      const std::vector<NdArray> args = Evaluate(name, type, x, {}, 1);
      for (size_t i = 0; i < x.size(); ++i) {
        const double input = args[0].Get(static_cast<int64_t>(i)), got = args[2].Get(static_cast<int64_t>(i));
        const double want = RoundToType(FindMathFunction(name)->of_one(input), type);
        SCOPED_TRACE(absl::StrCat(name, "(", input, ") of ", ToText(type)));
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << got;
          continue;
        }
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << got;
        if (std::isinf(want) || want == 0) {
          EXPECT_EQ(got, want);
        } else {
          EXPECT_NEAR(got, want, (type == kFloat32 ? 5e-7 : 4e-15) * std::abs(want));
        }
      }
    }
  }
}

// Halves, numbers with no digits behind the point and with all of them, and signs of zeros.
TEST(Rounding, IsExact) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> x = {
      0, 0.5, 1, 1.5, 2.5, 0x1p-149, 0.49999997, 8388607.5, 0x1p23, 0x1p52, 4503599627370495.5, 0x1p60, inf};
  Random random(9);
  for (int i = 0; i < 1000; ++i) x.push_back(std::ldexp(random.Uniform(), static_cast<int>(random.Below(60)) - 3));
  for (size_t i = x.size(); i-- > 0;) x.push_back(-x[i]);
  for (const char* name : kExact) {
    for (const DType type : {kFloat32, DType::Float(64)}) {
      const std::vector<NdArray> args = Evaluate(name, type, x, {}, 1);
      for (size_t i = 0; i < x.size(); ++i) {
        const double input = args[0].Get(static_cast<int64_t>(i)), got = args[2].Get(static_cast<int64_t>(i));
        const double want = FindMathFunction(name)->of_one(input);
        EXPECT_EQ(got, want) << name << "(" << input << ")";
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << name << "(" << input << ")";
      }
    }
  }
}

// All quadrants and magnitudes, the axes and the diagonals, and every pair of special values, zeros with their signs.
TEST(Arctangent, OfTwoAgreesWithTheLibrary) {
  Random random(5);
  std::vector<double> a, b;
  for (int i = 0; i < 20000; ++i) {
    a.push_back(2 * random.Uniform() - 1);
    b.push_back(2 * random.Uniform() - 1);
  }
  for (int i = 0; i < 8000; ++i) {
    const double y = std::ldexp(1 + random.Uniform(), static_cast<int>(random.Below(250)) - 125);
    a.push_back(random.Chance(0.5) ? y : -y);
    const double x = y * std::ldexp(1 + random.Uniform(), static_cast<int>(random.Below(60)) - 30);
    b.push_back(random.Chance(0.5) ? x : -x);
  }
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  const double special[] = {0.0, -0.0, 1, -1, 2.5, -2.5, least, -least, 1e-38, -1e-38, most, -most, inf, -inf, nan};
  for (const double y : special) {
    for (const double x : special) a.push_back(y), b.push_back(x);
  }
  for (const DType type : {kFloat32, DType::Float(64)}) {
    for (const NumericLevel level : {NumericLevel::kDefault, NumericLevel::kStrict}) {
      const std::vector<NdArray> args = Evaluate("atan2", type, a, b, 2, level);
      double worst = 0, worst_y = 0, worst_x = 0;  // in units of the last place
      for (size_t i = 0; i < a.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i);
        const double y = args[0].Get(at), x = args[1].Get(at), got = args[2].Get(at);
        const long double want = atan2l(y, x);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << "atan2(" << y << ", " << x << ") is " << got;
          continue;
        }
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << "atan2(" << y << ", " << x << ") is " << got;
        const int digits = type.bits == 64 ? 52 : 23, lowest = type.bits == 64 ? -1022 : -126;
        const int exponent = want == 0 ? lowest : std::max(std::ilogb(want), lowest);
        const double error = static_cast<double>(std::ldexp(std::abs(got - want), digits - exponent));
        if (!(error <= worst)) worst = error, worst_y = y, worst_x = x;
      }
      EXPECT_LE(worst, type == kFloat32 && level == NumericLevel::kStrict ? 1 : 3)
          << "atan2(" << worst_y << ", " << worst_x << ")";
    }
  }
}

TEST(Power, AgreesWithTheLibrary) {
  Random random(3);
  for (const DType type : {kFloat32, DType::Float(64)}) {
    std::vector<double> a, b;
    for (int i = 0; i < 8000; ++i) {
      a.push_back(std::exp(20 * random.Uniform() - 10));
      b.push_back(8 * random.Uniform() - 4);
    }
    const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
    for (const double x : {0.0, 1.0, -1.0, 2.0, -2.0, -2.5, 0.5, inf, -inf, nan}) {
      for (const double y : {0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.5, -0.5, inf, -inf, nan}) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    const std::vector<NdArray> args = Evaluate("pow", type, a, b, 2);
    for (size_t i = 0; i < a.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const double want = std::pow(args[0].Get(at), args[1].Get(at)), got = args[2].Get(at);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << "pow(" << a[i] << ", " << b[i] << ") is " << got;
      } else if (std::isinf(want)) {
        EXPECT_EQ(std::abs(got), want < 0 ? -want : want) << "pow(" << a[i] << ", " << b[i] << ")";
      } else {
        EXPECT_NEAR(got, want, (type == kFloat32 ? 1.2e-7 : 4e-13) * std::abs(want))
            << "pow(" << a[i] << ", " << b[i] << ")";
      }
    }
  }
}

}  // namespace
}  // namespace hone
