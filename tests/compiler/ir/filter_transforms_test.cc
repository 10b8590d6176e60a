// Minimal filtering computes what a filter of three taps computes, by the matrices that it is published with.
#include "compiler/ir/filter_transforms.h"

#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::filtering {
namespace {

using ::testing::ElementsAre;

using Numbers = std::vector<double>;

class FilterTransforms : public ::testing::TestWithParam<int> {};

TEST_P(FilterTransforms, ComputeTheFilter) {
  const int m = GetParam();
  const Numbers g = {3, -5, 7};
  Numbers d;
  for (int i = 0; i < m + 2; ++i) d.push_back(i * i - 4 * i + 1);
  const Numbers u = TransformTaps(m, g);
  Numbers products = TransformInput(m, d);
  ASSERT_EQ(u.size(), products.size());
  for (size_t i = 0; i < u.size(); ++i) products[i] *= u[i];
  const Numbers y = TransformOutput(m, products);
  ASSERT_EQ(y.size(), static_cast<size_t>(m));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], d[i] * g[0] + d[i + 1] * g[1] + d[i + 2] * g[2], 1e-12) << i;
}

INSTANTIATE_TEST_SUITE_P(Tiles, FilterTransforms, ::testing::Values(2, 4));

// Of the unit vectors they give the columns of B^T, G and A^T; here the one in the middle of each.
TEST(FilterMatrices, AreThePublishedMatrices) {
  EXPECT_THAT(TransformInput(2, Numbers{0, 0, 1, 0}), ElementsAre(-1, 1, 1, 0));
  EXPECT_THAT(TransformTaps(2, Numbers{0, 1, 0}), ElementsAre(0, 0.5, -0.5, 0));
  EXPECT_THAT(TransformOutput(2, Numbers{0, 0, 1, 0}), ElementsAre(1, -1));
  EXPECT_THAT(TransformInput(4, Numbers{0, 0, 1, 0, 0, 0}), ElementsAre(-5, -4, -4, -1, -1, 0));
  EXPECT_THAT(TransformTaps(4, Numbers{0, 0, 1}), ElementsAre(0, -1.0 / 6, -1.0 / 6, 1.0 / 6, 1.0 / 6, 1));
  EXPECT_THAT(TransformOutput(4, Numbers{0, 0, 0, 0, 1, 0}), ElementsAre(1, -2, 4, -8));
}

// What rows share is the same expression in each, so that it is computed once.
TEST(FilterMatrices, ShareSums) {
  const std::vector<Expr> g = {Var("a", kFloat32), Var("b", kFloat32), Var("c", kFloat32)};
  const std::vector<Expr> u = TransformTaps(2, g);
  const auto* first = u[1].As<Binary>();
  const auto* second = u[2].As<Binary>();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  const auto* sum = first->b.As<Binary>();
  const auto* difference = second->b.As<Binary>();
  ASSERT_TRUE(sum != nullptr && difference != nullptr);
  EXPECT_TRUE(sum->a.SameAs(difference->a));
}

}  // namespace
}  // namespace hone::filtering
