#include "compiler/arith/interval_set.h"

#include <gtest/gtest.h>

#include "compiler/arith/linear.h"
#include "compiler/ir/structural.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/compiler/arith/eval.h"

namespace hone {
namespace {

#define EXPECT_SAME(actual, expected)                      \
  EXPECT_TRUE(StructuralEqual(actual, Simplify(expected))) \
      << ToText(actual) << " instead of " << ToText(Simplify(expected))

TEST(IntervalSet, ConvolutionHalo) {
  const Var o("o"), oh("oh"), kh("kh");
  Analyzer known;
  known.Bind(o, Range{0, 16});
  const SetMap domains = ToSets({{oh, {o, 7}}, {kh, {0, 3}}});
  const IntervalSet rows = EvalSet(Expr(oh) * 2 + kh, domains, known);
  const Range range = *ToRange(rows, known);
  EXPECT_SAME(range.min, Expr(o) * 2);
  EXPECT_TRUE(IsConst(range.extent, 15)) << ToText(range.extent);
}

TEST(IntervalSet, PiecesOfFusedLoops) {
  const Var o("o"), x("x");
  Analyzer known;
  known.Bind(o, Range{0, 16});
  const SetMap domains = ToSets({{x, {Expr(o) * 64, 64}}});
  const Range quotient = *ToRange(EvalSet(FloorDiv(x, 8), domains, known), known);
  EXPECT_SAME(quotient.min, Expr(o) * 8);
  EXPECT_TRUE(IsConst(quotient.extent, 8));
  const Range remainder = *ToRange(EvalSet(FloorMod(x, 128), domains, known), known);
  EXPECT_SAME(remainder.min, FloorMod(o, 2) * 64);
  EXPECT_TRUE(IsConst(remainder.extent, 64));
}

TEST(IntervalSet, UnalignedQuotientHasAConstantSize) {
  const Var o("o"), x("x");
  Analyzer known;
  known.Bind(o, Range{0, 16});
  const IntervalSet set = EvalSet(FloorDiv(Expr(o) * 7 + x, 8), ToSets({{x, {0, 7}}}), known);
  EXPECT_EQ(MaxExtent(set, known), 2);
}

TEST(IntervalSet, ClippedTailHasAConstantSize) {
  const Var o("o"), x("x");
  Analyzer known;
  known.Bind(o, Range{0, 7});
  const Buffer buffer("A", kFloat32, {100});
  const BufferRegion access{buffer, {Range{Expr(o) * 16 + x, 1}}};
  const std::vector<Range> region = RelaxRegion(access, ToSets({{x, {0, 16}}}), known);
  EXPECT_SAME(region[0].min, Expr(o) * 16);
  EXPECT_TRUE(IsConst(region[0].extent, 16));
  const std::vector<Range> exact = RelaxRegion(access, ToSets({{x, {0, 16}}}), known, false);
  EXPECT_SAME(exact[0].extent, Min(Expr(100) - Expr(o) * 16, 16));
}

TEST(IntervalSet, UnionOfShiftedAccesses) {
  const Var o("o"), x("x");
  Analyzer known;
  known.Bind(o, Range{0, 8});
  const SetMap domains = ToSets({{x, {0, 8}}});
  const IntervalSet left = EvalSet(Expr(o) * 8 + x, domains, known),
                    right = EvalSet(Expr(o) * 8 + x + 2, domains, known);
  const Range both = *ToRange(Union(left, right, known), known);
  EXPECT_SAME(both.min, Expr(o) * 8);
  EXPECT_TRUE(IsConst(both.extent, 10));
}

TEST(IntervalSet, UnknownVariablesLeaveTheWholeDimension) {
  const Var x("x"), n("n");
  Analyzer known;
  const Buffer buffer("A", kInt32, {n});
  const std::vector<Range> region =
      RelaxRegion({buffer, {Range{MakeLoad(buffer, {x}), 1}}}, ToSets({{x, {0, 8}}}), known);
  EXPECT_TRUE(IsConst(region[0].min, 0));
  EXPECT_SAME(region[0].extent, Expr(n));
}

// Every value the expression takes is in the set, for random affine indices with divisions and symbolic starts.
TEST(IntervalSet, ContainsEveryValue) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Var o("o"), x("x"), y("y");
    const int64_t nx = 1 + random.Below(9), ny = 1 + random.Below(9), tile = 1 + random.Below(12);
    Analyzer known;
    known.Bind(o, Range{0, 6});
    const auto number = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random.Below(most - least + 1));
    };
    Expr e = Expr(o) * tile + Expr(x) * number(-3, 5) + Expr(y) * number(-2, 4) + number(-9, 9);
    if (random.Chance(0.6)) e = FloorDiv(e, number(1, 9)) + (random.Chance(0.5) ? Expr(x) : Expr(0));
    if (random.Chance(0.4)) e = FloorMod(e, number(1, 20)) * number(1, 3);
    if (random.Chance(0.3)) e = Min(e, Expr(o) * 3 + 5);
    if (random.Chance(0.3)) e = Max(e, Expr(y) + 1);
    const IntervalSet set = EvalSet(e, ToSets({{x, {Expr(o) * 2, nx}}, {y, {0, ny}}}), known);
    ASSERT_TRUE(set.bounded());
    const std::optional<int64_t> most = MaxExtent(set, known);
    for (int64_t vo = 0; vo < 6; ++vo) {
      const int64_t min = Eval(set.min, {{o, vo}}), max = Eval(set.max, {{o, vo}});
      ASSERT_LE(max - min + 1, most.value_or(max - min + 1)) << ToText(e);
      for (int64_t vx = 0; vx < nx; ++vx) {
        for (int64_t vy = 0; vy < ny; ++vy) {
          const int64_t value = Eval(e, {{o, vo}, {x, vo * 2 + vx}, {y, vy}});
          ASSERT_GE(value, min) << ToText(e) << " seed " << seed;
          ASSERT_LE(value, max) << ToText(e) << " seed " << seed;
        }
      }
    }
  }
}

TEST(Linear, CoefficientsAndStrides) {
  const Var i("i"), j("j"), n("n");
  const Var vars[] = {i, j};
  const std::optional<LinearForm> form = DetectLinear((Expr(i) + 3) * 4 - j + n, vars);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->coefficients, (std::vector<int64_t>{4, -1}));
  EXPECT_SAME(Simplify(form->base), Expr(n) + 12);
  EXPECT_EQ(StrideOf(FloorDiv(Expr(i) * 8, 4), i), 2);
  EXPECT_EQ(StrideOf(FloorDiv(i, 4), i), std::nullopt);
  EXPECT_EQ(StrideOf(Expr(i) * n, i), std::nullopt);
  const Buffer b("B", kFloat32, {8, 16, 32});
  const std::vector<Expr> at{Expr(i), Expr(j) + i, Expr(j) * 2};
  EXPECT_EQ(ElementStride(b, at, i), 16 * 32 + 32);
  EXPECT_EQ(ElementStride(b, at, j), 32 + 2);
  EXPECT_SAME(Simplify(FlatIndex(b, at)), Expr(i) * 544 + Expr(j) * 34);
  const Buffer symbolic("S", kFloat32, {8, n});
  const std::vector<Expr> row{Expr(i), Expr(j)};
  EXPECT_EQ(ElementStride(symbolic, row, j), 1);
  EXPECT_EQ(ElementStride(symbolic, row, i), std::nullopt);
}

}  // namespace
}  // namespace hone
