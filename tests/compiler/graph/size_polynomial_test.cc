#include "compiler/graph/plan/size_polynomial.h"

#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/random.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

const std::vector<Ints> kPoints = {{8, 512}, {6, 512}, {4, 512}, {2, 512}, {8, 342},
                                   {8, 172}, {8, 2},   {6, 172}, {4, 342}};
const std::vector<std::string> kNames = {"b", "s"};

std::string Fit(int64_t (*f)(int64_t b, int64_t s)) {
  PolynomialFit fit(kPoints);
  Ints values;
  for (const Ints& point : kPoints) values.push_back(f(point[0], point[1]));
  const std::optional<SizePolynomial> found = fit.Of(values);
  return found.has_value() ? found->Text(kNames) : "none";
}

TEST(SizePolynomial, IsFoundByItsValues) {
  EXPECT_EQ(Fit([](int64_t, int64_t) -> int64_t { return 0; }), "0");
  EXPECT_EQ(Fit([](int64_t, int64_t) -> int64_t { return -7; }), "-7");
  EXPECT_EQ(Fit([](int64_t b, int64_t) { return b; }), "b");
  EXPECT_EQ(Fit([](int64_t, int64_t s) { return 768 * s; }), "s * 768");
  EXPECT_EQ(Fit([](int64_t, int64_t s) { return s - 1; }), "s + -1");
  EXPECT_EQ(Fit([](int64_t b, int64_t s) { return 12 * b * s * s; }), "b * s * s * 12");
  EXPECT_EQ(Fit([](int64_t b, int64_t s) { return b * (s + 3) + 2; }), "b * s + b * 3 + 2");
}

TEST(SizePolynomial, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(Fit([](int64_t, int64_t s) { return s / 2 + s % 3; }), "none");
  EXPECT_EQ(Fit([](int64_t b, int64_t s) { return s > 300 ? b : s; }), "none");
  EXPECT_EQ(Fit([](int64_t b, int64_t) { return b * (b + 1) / 2; }), "none") << "factors are whole";
}

// Whatever is found has the values; and over variables it is the same number.
TEST(SizePolynomial, IsTheSameAsAnExpression) {
  const std::vector<Var> sizes = {Var("b", kInt32, {1, 8}), Var("s", kInt32, {1, 512})};
  Random random(3, 0);
  for (int i = 0; i < 200; ++i) {
    const int64_t factor = static_cast<int64_t>(random.Below(2000)) - 1000;
    const int64_t more = static_cast<int64_t>(random.Below(100));
    const int of = static_cast<int>(random.Below(2));
    PolynomialFit fit(kPoints);
    Ints values;
    for (const Ints& p : kPoints) values.push_back(factor * p[0] * p[1] + more * p[static_cast<size_t>(of)]);
    const std::optional<SizePolynomial> found = fit.Of(values);
    ASSERT_TRUE(found.has_value());
    const Ints at = {3, 77};
    EXPECT_EQ(found->At(at), factor * 3 * 77 + more * at[static_cast<size_t>(of)]);
    EXPECT_EQ(EvaluateSize(found->Over(sizes), {{sizes[0], 3}, {sizes[1], 77}}), found->At(at));
  }
}

}  // namespace
}  // namespace hone
