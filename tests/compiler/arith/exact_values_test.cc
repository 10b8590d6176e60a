#include "compiler/arith/exact_values.h"

#include <set>

#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/arith/eval.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::optional<ValueSet> Values(const Expr& e, const std::vector<ConstantLoop>& loops,
                               const std::vector<Expr>& conditions = {}, int64_t budget = 1 << 16) {
  return ValuesTaken(e, loops, conditions, budget);
}

TEST(ValueSet, IntervalsThatMeetAreOne) {
  const ValueSet set({{8, 9}, {0, 3}, {4, 5}, {2, 2}});
  EXPECT_THAT(set.intervals(), ElementsAre(Pair(0, 5), Pair(8, 9)));
  EXPECT_TRUE(set.Contains(1, 5));
  EXPECT_FALSE(set.Contains(5, 8));
  EXPECT_THAT(set.Within(4, 8).intervals(), ElementsAre(Pair(4, 5), Pair(8, 8)));
}

TEST(ValueSet, FirstOutsideIsTheLeastThatTheOtherLacks) {
  const ValueSet set({{2, 5}, {8, 9}});
  EXPECT_EQ(set.FirstOutside(ValueSet({{0, 10}})), std::nullopt);
  EXPECT_EQ(set.FirstOutside(ValueSet({{0, 4}, {8, 9}})), 5);
  EXPECT_EQ(set.FirstOutside(ValueSet({{3, 9}})), 2);
  EXPECT_EQ(set.FirstOutside(ValueSet({{2, 5}})), 8);
  EXPECT_EQ(set.FirstOutside(ValueSet()), 2);
}

// Without a condition the number of iterations does not matter, nor does it where the condition is on the sum itself.
TEST(ValuesTaken, OfALongLoopAreFoundAtOnce) {
  const Var o("o"), i("i"), v("v");
  const std::vector<ConstantLoop> loops = {{o, 0, 1 << 20}, {i, 0, 32}, {v, 0, 16}};
  const Expr sum = Expr(o) * 512 + Expr(i) * 16 + v;
  EXPECT_THAT(Values(sum, loops, {}, 100)->intervals(), ElementsAre(Pair(0, (1 << 29) - 1)));
  EXPECT_THAT(Values(sum, loops, {sum < 1000000}, 100)->intervals(), ElementsAre(Pair(0, 999999)));
  EXPECT_THAT(Values(sum + 7, loops, {sum < 1000000, Expr(3) <= sum}, 100)->intervals(),
              ElementsAre(Pair(10, 1000006)));
}

TEST(ValuesTaken, ConditionsOnOtherLoopsDecideWhetherThereAreAny) {
  const Var i("i"), j("j");
  const std::vector<ConstantLoop> loops = {{i, 0, 4}, {j, 2, 3}};
  EXPECT_THAT(Values(i, loops, {Expr(j) < 3})->intervals(), ElementsAre(Pair(0, 3)));
  EXPECT_THAT(Values(i, loops, {Expr(j) < 2})->intervals(), IsEmpty());
  EXPECT_THAT(Values(i, loops, {Expr(i) + j < 4})->intervals(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Values(i, {{i, 0, 4}, {j, 0, 0}})->intervals(), IsEmpty());
}

TEST(ValuesTaken, AreUnknownWhereTheBudgetIsUsedUp) {
  const Var i("i"), j("j");
  const std::vector<ConstantLoop> loops = {{i, 0, 1000}, {j, 0, 1000}};
  EXPECT_EQ(Values(FloorDiv(Expr(i) * 1000 + j, 7), loops, {}, 10000), std::nullopt);
  EXPECT_EQ(Values(FloorDiv(7, i), loops), std::nullopt);
}

TEST(IsOverLoops, LeavesOutMemoryOtherVariablesAndFloats) {
  const Var i("i"), n("n");
  const std::vector<ConstantLoop> loops = {{i, 0, 4}};
  EXPECT_TRUE(IsOverLoops(MakeSelect(Expr(i) < 2, i, FloorMod(i, 3)), loops));
  EXPECT_FALSE(IsOverLoops(Expr(i) + n, loops));
  EXPECT_FALSE(IsOverLoops(MakeLoad(Buffer("A", kInt32, {4}), {i}), loops));
  EXPECT_FALSE(IsOverLoops(MakeCast(kFloat32, i) < FloatConst(2), loops));
}

// Random indices and conditions over four loops, against every iteration.
TEST(ValuesTaken, AreThoseOfAllIterations) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::vector<ConstantLoop> loops;
    for (const char* name : {"i", "j", "k", "l"}) {
      loops.push_back({Var(name), static_cast<int64_t>(random.Below(4)) - 1,
                       random.Chance(0.02) ? 0 : 1 + static_cast<int64_t>(random.Below(6))});
    }
    const auto number = [&](int64_t least, int64_t most) {
      return IntConst(least + static_cast<int64_t>(random.Below(static_cast<uint64_t>(most - least + 1))));
    };
    const auto term = [&]() -> Expr {
      Expr e = loops[random.Below(4)].var;
      if (random.Chance(0.3)) e = e * number(1, 5) + loops[random.Below(4)].var;
      if (random.Chance(0.2)) e = FloorDiv(e, number(1, 4));
      if (random.Chance(0.2)) e = FloorMod(e, number(1, 7));
      if (random.Chance(0.1)) e = Max(e, number(-2, 6));
      return e * number(-4, 8);
    };
    Expr index = number(-3, 3);
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) index = index + term();
    std::vector<Expr> conditions;
    for (uint64_t n = random.Below(3); n > 0; --n) {
      const Expr side = random.Chance(0.3) ? index : term();
      const Expr bound = number(-4, 20);
      conditions.push_back(random.Chance(0.2)   ? Or(side < bound, Eq(term(), 0))
                           : random.Chance(0.5) ? side < bound
                                                : side >= bound);
    }
    std::set<int64_t> expected;
    const auto visit = [&](const auto& self, size_t depth, hone::Values& values) -> void {
      if (depth == loops.size()) {
        for (const Expr& condition : conditions) {
          if (Eval(condition, values) == 0) return;
        }
        expected.insert(Eval(index, values));
        return;
      }
      for (int64_t i = 0; i < loops[depth].extent; ++i) {
        values[loops[depth].var] = loops[depth].min + i;
        self(self, depth + 1, values);
      }
    };
    hone::Values values;
    visit(visit, 0, values);
    const std::optional<ValueSet> taken = Values(index, loops, conditions);
    ASSERT_TRUE(taken.has_value()) << seed;
    std::set<int64_t> found;
    for (const auto& [low, high] : taken->intervals()) {
      for (int64_t value = low; value <= high; ++value) found.insert(value);
    }
    ASSERT_EQ(found, expected) << "seed " << seed << ": " << ToText(index);
  }
}

}  // namespace
}  // namespace hone
