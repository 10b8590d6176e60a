#include "compiler/arith/analyzer.h"

#include <gtest/gtest.h>

#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/compiler/arith/eval.h"

namespace hone {
namespace {

// Variables every case may use: i in [0, 8), j in [0, 32), k in [0, 4), f in [0, 672), n is a size of at least 1.
struct Names {
  Var i{"i"}, j{"j"}, k{"k"}, f{"f"}, n{"n"};
  VarRanges Ranges() const { return {{i, {0, 8}}, {j, {0, 32}}, {k, {0, 4}}, {f, {0, 672}}, {n, {1, 1000}}}; }
};

struct Case {
  const char* name;
  Expr (*input)(const Names&);
  Expr (*expected)(const Names&);
};

#define E(expression)                                 \
  [](const Names& v) -> Expr {                        \
    [[maybe_unused]] const auto& [i, j, k, f, n] = v; \
    return expression;                                \
  }

const Case kCases[] = {
    {"Order", E(Expr(1) + Expr(j) + Expr(i) * 2), E(Expr(i) * 2 + j + 1)},
    {"Cancel", E(Expr(i) * 3 - Expr(i) * 2 - i), E(0)},
    {"Distribute", E((Expr(i) + 1) * 4 - 4), E(Expr(i) * 4)},
    {"DivOfSplit", E(FloorDiv(Expr(i) * 32 + j, 32)), E(i)},
    {"ModOfSplit", E(FloorMod(Expr(i) * 32 + j, 32)), E(j)},
    {"DivFiner", E(FloorDiv(Expr(i) * 32 + j, 8)), E(Expr(i) * 4 + FloorDiv(j, 8))},
    {"ModCoarser", E(FloorMod(Expr(i) * 32 + j, 64)), E(FloorMod(i, 2) * 32 + j)},
    {"DivCoarser", E(FloorDiv(Expr(i) * 32 + j, 64)), E(FloorDiv(i, 2))},
    {"SplitJoined", E(FloorDiv(f, 8) * 8 + FloorMod(f, 8)), E(f)},
    {"ThreeWayJoined", E(FloorDiv(f, 21) * 21 + FloorMod(FloorDiv(f, 7), 3) * 7 + FloorMod(f, 7)), E(f)},
    {"PartlyJoined", E(FloorMod(FloorDiv(f, 7), 3) * 7 + FloorMod(f, 7)), E(FloorMod(f, 21))},
    {"UpperJoined", E(FloorDiv(f, 21) * 3 + FloorMod(FloorDiv(f, 7), 3)), E(FloorDiv(f, 7))},
    {"ModVanishes", E(FloorMod(FloorDiv(f, 7), 96)), E(FloorDiv(f, 7))},
    {"ModStays", E(FloorMod(FloorDiv(f, 7), 3)), E(FloorMod(FloorDiv(f, 7), 3))},
    {"DivOfDiv", E(FloorDiv(FloorDiv(f, 4), 3)), E(FloorDiv(f, 12))},
    {"ModOfMod", E(FloorMod(FloorMod(f, 12), 4)), E(FloorMod(f, 4))},
    {"DivOfMod", E(FloorDiv(FloorMod(f, 12), 4)), E(FloorMod(FloorDiv(f, 4), 3))},
    {"ModFromDiv", E(Expr(f) - FloorDiv(f, 8) * 8), E(FloorMod(f, 8))},
    {"DivFromMod", E(Expr(f) - FloorMod(f, 8)), E(FloorDiv(f, 8) * 8)},
    {"Refuse", E(FloorDiv(Expr(i) * 128 + Expr(j) * 4 + k, 32)), E(Expr(i) * 4 + FloorDiv(j, 8))},
    {"FuseSplitAcross", E(FloorDiv(Expr(j) * 4 + k, 16) * 16 + FloorMod(Expr(j) * 4 + k, 16)), E(Expr(j) * 4 + k)},
    {"Shifted", E(FloorMod(Expr(i) + 800, 8)), E(i)},
    {"NegativeShift", E(FloorDiv(Expr(i) - 8, 8)), E(-1)},
    {"GcdOfTerms", E(FloorDiv(Expr(f) * 6 + 3, 12)), E(FloorDiv(f, 2))},
    {"TruncatingDiv", E(MakeBinary(BinaryOp::kDiv, Expr(i) * 32 + j, 32)), E(i)},
    {"TruncatingMod", E(MakeBinary(BinaryOp::kMod, Expr(i) * 32 + j, 32)), E(j)},
    {"MinDecided", E(Min(i, 9)), E(i)},
    {"MaxDecided", E(Max(i, Expr(-1) + 0)), E(i)},
    {"MinKept", E(Min(i, 5)), E(Min(i, 5))},
    {"TailExtent", E(Min(Expr(i) * 16 + 16, 100) - Expr(i) * 16), E(Min(100 - Expr(i) * 16, 16))},
    {"MinShared", E(Min(Expr(i) + j, Expr(i) + k)), E(Expr(i) + Min(j, k))},
    {"MinNested", E(Min(Min(Expr(n), 16), Expr(n) + 1)), E(Min(n, 16))},
    {"SymbolicDiv", E(FloorDiv(Expr(j) * n, n)), E(j)},
    {"SymbolicMod", E(FloorMod(Expr(j) * n, n)), E(0)},
    {"ProductOrder", E(Expr(n) * j - Expr(j) * n), E(0)},
    {"LessTrue", E(Expr(i) * 32 + j < 256), E(True())},
    {"LessFalse", E(Expr(i) * 32 + j >= 256), E(IntConst(0, kBool))},
    {"LessKept", E(Expr(i) * 32 + j < 100), E(Expr(i) * 32 + j < 100)},
    {"LessMoved", E(Expr(100) > Expr(j) + Expr(i) * 32), E(Expr(i) * 32 + j < 100)},
    {"LessOuterOnly", E(Expr(i) * 32 + j < 96), E(Expr(i) < 3)},
    {"LessDivided", E(Expr(i) * 16 < 100), E(Expr(i) < 7)},
    {"LessOfDiv", E(FloorDiv(f, 8) < 3), E(Expr(f) < 24)},
    {"GreaterOfDiv", E(FloorDiv(f, 8) >= 3), E(Expr(24) <= Expr(f))},
    {"EqualByResidue", E(Eq(Expr(i) * 2 + 1, Expr(j) * 4)), E(IntConst(0, kBool))},
    {"EqualKept", E(Eq(Expr(3), Expr(i))), E(Eq(i, 3))},
    {"AndImplied", E(And(Expr(j) < 10, Expr(j) < 20)), E(Expr(j) < 10)},
    {"AndImpliedLater", E(And(Expr(j) < 20, Expr(j) < 10)), E(Expr(j) < 10)},
    {"AndContradiction", E(And(Expr(j) < 10, Expr(j) > 20)), E(IntConst(0, kBool))},
    {"OrCovers", E(Or(Expr(j) < 20, Expr(j) >= 10)), E(True())},
    {"NotLess", E(MakeNot(Expr(j) < 10)), E(Expr(10) <= Expr(j))},
    {"SelectKnown", E(MakeSelect(Expr(i) < 8, Expr(j), Expr(k))), E(j)},
    {"SelectInside", E(MakeSelect(Expr(j) < 8, FloorDiv(j, 8), Expr(7))), E(MakeSelect(Expr(j) < 8, 0, 7))},
};

class SimplifyTable : public testing::TestWithParam<Case> {};
TEST_P(SimplifyTable, GivesTheSimpleForm) {
  const Names names;
  const Expr input = GetParam().input(names), expected = GetParam().expected(names);
  Analyzer known(names.Ranges());
  const Expr simple = known.Simplify(input);
  EXPECT_TRUE(StructuralEqual(simple, expected))
      << ToText(input) << "\n gave     " << ToText(simple) << "\n expected " << ToText(expected);
  EXPECT_TRUE(known.Simplify(simple).SameAs(simple)) << "again: " << ToText(known.Simplify(simple));
}
INSTANTIATE_TEST_SUITE_P(Cases, SimplifyTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Analyzer, ConstraintsHoldInTheirScope) {
  const Names v;
  Analyzer known(v.Ranges());
  const Expr fused = Expr(v.i) * 32 + v.j;
  EXPECT_FALSE(known.CanProve(Expr(v.i) < 4));
  {
    const ConstraintScope inside(known, fused < 100);
    EXPECT_TRUE(known.CanProve(Expr(v.i) < 4));
    EXPECT_TRUE(known.CanProve(fused + 5 < 105));
    EXPECT_TRUE(known.CanProve(Expr(v.i) * 64 + Expr(v.j) * 2 < 199));
    EXPECT_EQ(known.ConstBounds(fused), (Bounds{0, 99}));
  }
  EXPECT_FALSE(known.CanProve(Expr(v.i) < 4));
  EXPECT_EQ(known.ConstBounds(fused), (Bounds{0, 255}));
}

TEST(Analyzer, SymbolicRanges) {
  const Var n("n"), i("i"), o("o"), x("x");
  Analyzer known;
  known.Bind(i, Range{0, n});
  EXPECT_TRUE(known.CanProve(Expr(i) < Expr(n)));
  EXPECT_TRUE(known.CanProve(Expr(i) + 1 <= Expr(n)));
  EXPECT_FALSE(known.CanProve(Expr(i) + 1 < Expr(n)));
  known.Bind(o, Range{0, 10});
  known.Bind(x, Range{Expr(o) * 8, 8});
  EXPECT_TRUE(known.CanProve(Expr(x) < Expr(o) * 8 + 8));
  EXPECT_TRUE(known.CanProve(Expr(x) - Expr(o) * 8 >= 0));
  EXPECT_EQ(known.ConstBounds(Expr(x) - Expr(o) * 8), (Bounds{0, 7}));
  EXPECT_TRUE(IsConst(known.Simplify(FloorDiv(Expr(x) - Expr(o) * 8, 8)), 0));
}

TEST(Analyzer, BitsOfBothSides) {
  const Var i("i"), j("j"), any("any");
  Analyzer known;
  known.Bind(i, Range{0, 5});
  known.Bind(j, Range{0, 12});
  for (const BinaryOp op : {BinaryOp::kBitXor, BinaryOp::kBitOr}) {
    EXPECT_EQ(known.ConstBounds(MakeBinary(op, i, j)), (Bounds{0, 15}));
    EXPECT_EQ(known.ConstBounds(MakeBinary(op, i, i)).max, op == BinaryOp::kBitXor ? 0 : 7);
    EXPECT_FALSE(known.CanProve(MakeBinary(op, i, any) >= 0));
  }
}

TEST(Analyzer, EqualBitsCancel) {
  const Var i("i"), j("j");
  Analyzer known;
  const auto exclusive = [](const Expr& a, const Expr& b) { return MakeBinary(BinaryOp::kBitXor, a, b); };
  EXPECT_TRUE(IsConst(known.Simplify(exclusive(i, i)), 0));
  EXPECT_EQ(ToText(known.Simplify(exclusive(exclusive(Expr(i) * 2 + 1, j), j))), ToText(Expr(i) * 2 + 1));
  EXPECT_EQ(ToText(known.Simplify(exclusive(j, exclusive(i, j)))), "i");
  EXPECT_EQ(ToText(known.Simplify(exclusive(i, j))), ToText(exclusive(i, j)));
  EXPECT_EQ(ToText(known.Simplify(exclusive(exclusive(i, i), exclusive(i, i + j)))), ToText(exclusive(i, i + j)));
}

TEST(Analyzer, NumbersThatDifferInNoBitAreEqual) {
  const Var i("i"), j("j");
  Analyzer known;
  known.Bind(i, Range{0, 4});
  known.Bind(j, Range{0, 2});
  EXPECT_FALSE(known.CanProve(Expr(i) < 2));
  const ConstraintScope holds(known, MakeBinary(BinaryOp::kBitXor, i, j) < 1);
  EXPECT_TRUE(known.CanProve(Expr(i) < 2));
}

// Of i and 6 - i the greater is 3 or more, also where it stands deep inside.
TEST(Analyzer, ReflectedIndicesLieAboveTheirMean) {
  const Var i("i"), o("o");
  Analyzer known;
  known.Bind(i, Range{0, 7});
  known.Bind(o, Range{0, 5});
  const Expr inner = Max(6 - Expr(i), i);
  EXPECT_TRUE(known.CanProve(inner >= 3));
  const Expr border = Min(0 - Max(0 - Expr(o), Expr(o) - 2), Max(-2 - Expr(o), Expr(o) - 4));  // -3 and more
  EXPECT_TRUE(known.CanProveLessEqual(Max(border * 4 + 10, 0), border * 4 + Max(14 - Expr(i), Expr(i) + 10)));
}

TEST(Analyzer, TailOfATile) {
  const Var o("o"), x("x"), n("n");
  Analyzer known;
  known.Bind(n, Range{1, 1000});
  known.Bind(o, Range{0, FloorDiv(Expr(n) + 15, 16)});
  known.Bind(x, Range{0, Min(16, Expr(n) - Expr(o) * 16)});
  EXPECT_TRUE(known.CanProve(Expr(x) < 16));
  EXPECT_TRUE(known.CanProve(Expr(o) * 16 + x < Expr(n)));
  EXPECT_FALSE(known.CanProve(Expr(o) * 16 + x + 1 < Expr(n)));
}

// A piece of a tile ends in the tile, both cut off at the edge: where the tile ends has to be decided before where the
// piece does.
TEST(Analyzer, APieceOfATailEndsInIt) {
  const Var o("o"), i("i");
  Analyzer known;
  known.Bind(o, Range{0, 3});
  known.Bind(i, Range{0, 2});
  const Expr tile = Expr(o) * 4, piece = (Expr(o) * 2 + i) * 2;
  const Expr tile_end = tile + Min(9 - tile, 4), piece_end = piece + Min(9 - piece, 2);
  EXPECT_TRUE(known.CanProve(piece_end <= tile_end));
  EXPECT_TRUE(known.CanProve(tile_end >= piece_end));
  EXPECT_TRUE(known.CanProve(Max(piece, 3) >= Max(tile, 3)));
  EXPECT_FALSE(known.CanProve(piece_end < tile_end));
}

// What a window reads from the rest of a tile: each side of the tile's end wants the ends of the piece and of the
// window.
TEST(Analyzer, AWindowOnATailEndsInIt) {
  const Var o("o"), i("i"), k("k"), l("l");
  Analyzer known;
  known.Bind(o, Range{0, 2});
  known.Bind(i, Range{0, 4});
  known.Bind(k, Range{0, 2});
  known.Bind(l, Range{0, 2});
  known.Assume(And(Expr(o) * 4 + i < 6, Expr(k) * 2 + l < 3));
  const Expr tile = Expr(o) * 4, read = tile + i + (Expr(k) * 2 + l);
  EXPECT_TRUE(known.CanProve(read < tile + Min(8 - tile, 6)));
  EXPECT_FALSE(known.CanProve(read < tile + Min(7 - tile, 6)));
}

// Where a row mirrored at the border is read: the distance to the border is not below 0, whichever side it is on.
TEST(Analyzer, ADistanceIsNotBelowZero) {
  const Var o("o"), i("i");
  Analyzer known;
  known.Bind(o, Range{0, 3});
  known.Bind(i, Range{0, 2});
  const Expr at = Expr(o) * 2 + i, read = Max(2 - at, at - 2);
  EXPECT_EQ(known.ConstBounds(read), (Bounds{0, 3}));
  EXPECT_EQ(known.ConstBounds(Min(2 - at, at - 2)), (Bounds{-3, 0}));
  EXPECT_EQ(known.ConstBounds(Max(3 - at, at - 2)), (Bounds{1, 3}));
  EXPECT_TRUE(known.CanProve(read >= 0));
  EXPECT_FALSE(known.CanProve(read > 0));
}

// Quotients by a number and by a multiple of it, as a window with a stride has them over groups of pixels.
TEST(Analyzer, QuotientsByAMultipleAreApartAsTheirSourcesAre) {
  const Var v("v"), k("k");
  Analyzer known;
  known.Bind(v, Range{0, 60});
  known.Bind(k, Range{0, 3});
  const Expr group = FloorDiv(Expr(v) * 2 + k + 3, 4), first = FloorDiv(Expr(v) + 1, 2);
  EXPECT_EQ(known.ConstBounds(group - first), (Bounds{0, 1}));
  EXPECT_EQ(known.ConstBounds(first - group), (Bounds{-1, 0}));
}

// What is added to an even number crosses a multiple of four once less often than what is added to any.
TEST(Analyzer, QuotientsAreApartAsTheRemaindersOfTheirSourcesAllow) {
  const Var v("v"), k("k");
  Analyzer known;
  known.Bind(v, Range{0, 8});
  known.Bind(k, Range{0, 6});
  const Expr first = FloorDiv(Expr(v) * 3, 2);
  EXPECT_EQ(known.ConstBounds(FloorDiv(Expr(v) * 6 + k, 4) - first), (Bounds{0, 1}));
  EXPECT_EQ(known.ConstBounds(FloorDiv(Expr(v) * 6 + k + 1, 4) - first), (Bounds{0, 2}));
  EXPECT_EQ(known.ConstBounds(FloorDiv(Expr(v) * 5 + k, 4) - FloorDiv(Expr(v) * 5, 4)), (Bounds{0, 2}));
}

TEST(Analyzer, SwizzledChoicesHaveTheBoundsOfTheirBits) {
  const Var v("v"), w("w");
  Analyzer known;
  known.Bind(v, Range{0, 5});
  known.Bind(w, Range{0, 3});
  const auto nearest = [](const Expr& at, int64_t size) { return FloorDiv(Min(Max(at, 5), 5 * size), 5) - 1; };
  const Expr row = nearest(Expr(v) * 3 + 4, 4), column = nearest(Expr(w) * 4 + 5, 2);
  EXPECT_EQ(known.ConstBounds(MakeBinary(BinaryOp::kBitXor, row, column)), (Bounds{0, 3}));
  EXPECT_TRUE(MakeBinary(BinaryOp::kBitXor, row, 0).SameAs(row));
}

// A part of a condition says more once the parts behind it are known.
TEST(Analyzer, ALaterPartSimplifiesAnEarlierOne) {
  const Var f("f");
  Analyzer known;
  known.Bind(f, Range{0, 144});
  EXPECT_EQ(ToText(known.Simplify(And(FloorMod(f, 36) < 24, Expr(f) < 36))), "f < 24");
  EXPECT_EQ(ToText(known.Simplify(Or(FloorMod(f, 36) >= 24, Expr(f) >= 36))), "24 <= f");
  known.Assume(And(FloorMod(f, 36) < 24, Expr(f) < 36));
  EXPECT_TRUE(known.CanProve(FloorMod(FloorDiv(f, 6), 6) < 4));
  EXPECT_FALSE(known.CanProve(FloorMod(FloorDiv(f, 6), 6) < 3));
}

TEST(Analyzer, UnequalMovesAnEnd) {
  const Names v;
  Analyzer known(v.Ranges());
  const ConstraintScope inside(known, Ne(v.i, 0));
  EXPECT_EQ(known.ConstBounds(v.i), (Bounds{1, 7}));
  EXPECT_TRUE(known.CanProve(Expr(v.i) >= 1));
}

// Both sides of a Select are evaluated: the guarded index keeps what holds it in range.
TEST(Analyzer, SelectKeepsItsLoadsInRange) {
  const Names v;
  Analyzer known(v.Ranges());
  const Buffer a("A", kInt32, {8});
  const Expr load = MakeLoad(a, {FloorMod(v.j, 8)});
  const Expr select = MakeSelect(Expr(v.j) < 8, load, 0);
  EXPECT_TRUE(known.Simplify(select).SameAs(select));
  const Expr lazy = IfThenElse(Expr(v.j) < 8, load, 0);
  EXPECT_TRUE(StructuralEqual(known.Simplify(lazy), IfThenElse(Expr(v.j) < 8, MakeLoad(a, {v.j}), 0)));
}

// So are all parts of a condition, whatever the others say.
TEST(Analyzer, ConditionsKeepTheirLoadsInRange) {
  const Names v;
  Analyzer known(v.Ranges());
  const Buffer a("A", kInt32, {8});
  const Expr inside = Expr(v.j) < 8, outside = known.Simplify(Expr(v.j) >= 8);
  const Expr load = Expr(MakeLoad(a, {Min(v.j, 7)})) < 3;
  EXPECT_TRUE(StructuralEqual(known.Simplify(And(inside, load)), And(inside, load)));
  EXPECT_TRUE(StructuralEqual(known.Simplify(Or(outside, load)), Or(outside, load)));
}

TEST(Analyzer, ConditionsKeepTheirDivisorsFromZero) {
  const Names v;
  Analyzer known(v.Ranges());
  const Expr some = known.Simplify(Expr(v.j) >= 1);
  const Expr divides = known.Simplify(FloorMod(Expr(v.i), Max(v.j, 1)) < 3);
  EXPECT_TRUE(StructuralEqual(known.Simplify(And(some, divides)), And(some, divides)));
  const Expr quotient = known.Simplify(FloorDiv(Expr(v.i), Max(v.j, 1)));
  const Expr either = MakeSelect(some, quotient, 0);
  EXPECT_TRUE(StructuralEqual(known.Simplify(either), either));
}

TEST(Analyzer, RebindingForgetsAndRestoreRemembers) {
  const Var i("i"), n("n");
  Analyzer known;
  known.Bind(i, Range{0, n});
  const size_t mark = known.Save();
  known.Bind(i, Range{0, 5});
  EXPECT_FALSE(known.CanProve(Expr(i) < Expr(n)));
  EXPECT_TRUE(known.CanProve(Expr(i) < 5));
  known.Restore(mark);
  EXPECT_TRUE(known.CanProve(Expr(i) < Expr(n)));
  EXPECT_FALSE(known.CanProve(Expr(i) < 5));
}

TEST(Analyzer, ResiduesAndMultiples) {
  const Names v;
  Analyzer known(v.Ranges());
  EXPECT_TRUE(known.IsMultipleOf(Expr(v.i) * 16 + Expr(v.j) * 32, 16));
  EXPECT_FALSE(known.IsMultipleOf(Expr(v.i) * 16 + 8, 16));
  const Analyzer::Residue residue = known.ResidueOf(Expr(v.i) * 6 + 3 + Expr(v.j) * 4);
  EXPECT_EQ(residue.modulus, 2);
  EXPECT_EQ(residue.remainder, 1);
}

TEST(Analyzer, WideAndNarrowIntegersMeet) {
  const Var i("i"), big("big", kInt64);
  Analyzer known;
  known.Bind(i, Range{0, 100});
  known.Bind(big, Range{IntConst(0, kInt64), IntConst(int64_t{1} << 40, kInt64)});
  const Expr e = MakeCast(kInt64, Expr(i) * 4 + 2) - MakeCast(kInt64, Expr(i)) * int64_t{4};
  EXPECT_TRUE(IsConst(known.Simplify(e), 2));
  EXPECT_EQ(known.Simplify(e).type(), kInt64);
  EXPECT_EQ(known.Simplify(Expr(big) + i).type(), kInt64);
  EXPECT_TRUE(known.CanProve(Expr(big) < (int64_t{1} << 40)));
  const Expr narrow = MakeCast(kInt32, MakeCast(kInt64, Expr(i) * 3));
  EXPECT_TRUE(StructuralEqual(known.Simplify(narrow), Expr(i) * 3));
}

TEST(SimplifyStmt, KnowsLoopsAndConditions) {
  const Var i("i"), one("one");
  const Buffer a("A", kFloat32, {100});
  const Stmt store = Stmt::Make(Store{a, {FloorMod(Expr(i), 100) + one}, FloatConst(1)});
  const Stmt guarded = Stmt::Make(IfThen{Expr(i) < 200, store, Stmt()});
  const Stmt inner = Stmt::Make(For{.var = one, .min = 0, .extent = 1, .body = guarded});
  const Stmt outer = Stmt::Make(For{.var = i, .min = 0, .extent = 100, .body = inner});
  const Stmt simple = Simplify(outer);
  const Stmt want = Stmt::Make(For{
      .var = i,
      .min = 0,
      .extent = 100,
      .body = Stmt::Make(For{.var = one, .min = 0, .extent = 1, .body = Stmt::Make(Store{a, {i}, FloatConst(1)})})});
  EXPECT_TRUE(StructuralEqual(simple, want)) << ToText(simple);
  EXPECT_TRUE(Simplify(simple).SameAs(simple));
}

// What was read from memory may have been written since; what variables say has not changed.
TEST(SimplifyStmt, AsksMemoryAgain) {
  const Var n("n");
  const Buffer a("A", kInt32, {1});
  const Expr small = And(Expr(n) < 3, MakeLoad(a, {0}) < 5);
  const Stmt store = Stmt::Make(Store{a, {0}, MakeLoad(a, {0}) + 4});
  const Stmt again = MakeSeq({store, Stmt::Make(IfThen{small, store, store})});
  const Stmt simple = Simplify(Stmt::Make(IfThen{small, again, again}));
  const IfThen* outer = simple.As<IfThen>();
  ASSERT_NE(outer, nullptr);
  const IfThen* under = outer->yes.As<Seq>()->stmts[1].As<IfThen>();
  ASSERT_NE(under, nullptr) << ToText(simple);
  EXPECT_TRUE(LoadsFrom(under->condition, a) && !UsesVar(under->condition, n)) << ToText(simple);
  const IfThen* otherwise = outer->no.As<Seq>()->stmts[1].As<IfThen>();
  ASSERT_NE(otherwise, nullptr) << ToText(simple);
  EXPECT_TRUE(LoadsFrom(otherwise->condition, a) && UsesVar(otherwise->condition, n)) << ToText(simple);
}

// ---- Properties

class RandomExprs {
 public:
  explicit RandomExprs(uint64_t seed) : random_(seed) {
    for (int v = 0; v < 4; ++v) {
      const Var var("v" + std::to_string(v));
      const int64_t min = static_cast<int64_t>(random_.Below(7)) - 3;
      const int64_t extent = 1 + static_cast<int64_t>(random_.Below(20));
      vars_.push_back(var);
      ranges_.emplace(var, Range{IntConst(min), IntConst(extent)});
    }
  }
  const VarRanges& ranges() const { return ranges_; }
  Random& random() { return random_; }
  Expr Int(int depth) {
    if (depth == 0 || random_.Chance(0.15)) {
      if (random_.Chance(0.3)) return IntConst(static_cast<int64_t>(random_.Below(41)) - 20);
      return vars_[random_.Below(vars_.size())];
    }
    switch (random_.Below(11)) {
      case 0:
      case 1:
      case 2: return Int(depth - 1) + Int(depth - 1);
      case 3: return Int(depth - 1) - Int(depth - 1);
      case 4: return Int(depth - 1) * Factor();
      case 5:
      case 6: return FloorDiv(Int(depth - 1), Factor());
      case 7: return FloorMod(Int(depth - 1), Factor());
      case 8: return Min(Int(depth - 1), Int(depth - 1));
      case 9: return Max(Int(depth - 1), Int(depth - 1));
      default:
        return random_.Chance(0.5) ? MakeSelect(Bool(depth - 1), Int(depth - 1), Int(depth - 1)) : Int(1) * Int(1);
    }
  }
  Expr Bool(int depth) {
    if (depth > 0 && random_.Chance(0.3)) {
      return random_.Chance(0.5) ? And(Bool(depth - 1), Bool(depth - 1)) : Or(Bool(depth - 1), Bool(depth - 1));
    }
    if (depth > 0 && random_.Chance(0.1)) return MakeNot(Bool(depth - 1));
    const BinaryOp ops[] = {BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe, BinaryOp::kEq, BinaryOp::kNe};
    return MakeBinary(ops[random_.Below(6)], Int(depth), Int(depth > 0 ? depth - 1 : 0));
  }
  // Values within the ranges; the ends more often than not.
  Values Sample() {
    Values values;
    for (const auto& [var, range] : ranges_) {
      const int64_t min = *ConstantValue(range.min), extent = *ConstantValue(range.extent);
      const int64_t at = random_.Chance(0.2)    ? 0
                         : random_.Chance(0.25) ? extent - 1
                                                : static_cast<int64_t>(random_.Below(extent));
      values[var] = min + at;
    }
    return values;
  }

 private:
  Expr Factor() {
    const int64_t factors[] = {1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16, 32, -1, -2, -4, -3};
    return IntConst(factors[random_.Below(16)]);
  }
  Random random_;
  std::vector<Var> vars_;
  VarRanges ranges_;
};

class SimplifyProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(SimplifyProperty, KeepsTheValueAndItsBounds) {
  for (int round = 0; round < 40; ++round) {
    RandomExprs make(GetParam() * 1000 + round);
    const Expr e = make.random().Chance(0.6) ? make.Int(4) : make.Bool(3);
    Analyzer known(make.ranges());
    const Expr simple = known.Simplify(e);
    ASSERT_EQ(simple.type(), e.type());
    const Bounds bounds = known.ConstBounds(e);
    const Analyzer::Residue residue = e.type() == kInt32 ? known.ResidueOf(e) : Analyzer::Residue{};
    for (int sample = 0; sample < 30; ++sample) {
      const Values values = make.Sample();
      const int64_t want = Eval(e, values);
      ASSERT_EQ(Eval(simple, values), want) << ToText(e) << "\n -> " << ToText(simple);
      ASSERT_LE(bounds.min, want) << ToText(e);
      ASSERT_GE(bounds.max, want) << ToText(e);
      if (residue.modulus == 0) ASSERT_EQ(want, residue.remainder) << ToText(e);
      else ASSERT_EQ(FloorModulo(want - residue.remainder, residue.modulus), 0) << ToText(e);
    }
  }
}

TEST_P(SimplifyProperty, RespectsAssumptions) {
  for (int round = 0; round < 30; ++round) {
    RandomExprs make(GetParam() * 1000 + round + 500);
    const Expr condition = make.Bool(2);
    const Expr e = make.random().Chance(0.5) ? make.Int(3) : make.Bool(2);
    Analyzer known(make.ranges());
    const Expr before = known.Simplify(e);
    Expr simple;
    Bounds bounds;
    {
      const ConstraintScope inside(known, condition);
      simple = known.Simplify(e);
      bounds = known.ConstBounds(e);
    }
    for (int sample = 0; sample < 40; ++sample) {
      const Values values = make.Sample();
      if (Eval(condition, values) == 0) continue;
      const int64_t want = Eval(e, values);
      ASSERT_EQ(Eval(simple, values), want)
          << ToText(e) << "\n -> " << ToText(simple) << "\n where " << ToText(condition);
      ASSERT_LE(bounds.min, want) << ToText(e) << " where " << ToText(condition);
      ASSERT_GE(bounds.max, want) << ToText(e) << " where " << ToText(condition);
    }
    ASSERT_TRUE(StructuralEqual(known.Simplify(e), before)) << "the scope left something behind: " << ToText(e);
  }
}

// Sums of the same terms in another order, and under other parentheses, come out structurally equal.
TEST_P(SimplifyProperty, EqualAffineExpressionsLookEqual) {
  RandomExprs make(GetParam() + 77);
  std::vector<std::pair<Expr, int64_t>> terms;
  for (const auto& [var, range] : make.ranges())
    terms.emplace_back(var, static_cast<int64_t>(make.random().Below(9)) - 4);
  terms.emplace_back(FloorDiv(terms[0].first, 3), 2);
  terms.emplace_back(FloorMod(terms[1].first + terms[2].first, 5), 7);
  terms.emplace_back(IntConst(13), 1);
  const auto sum = [&] {
    Expr total = 0;
    for (size_t left = terms.size(); left > 0; --left) {
      std::swap(terms[left - 1], terms[make.random().Below(left)]);
      const auto& [term, scale] = terms[left - 1];
      total = make.random().Chance(0.5) ? total + term * scale : term * scale + total;
    }
    return total;
  };
  Analyzer known(make.ranges());
  const Expr first = known.Simplify(sum());
  for (int again = 0; again < 5; ++again) {
    const Expr other = known.Simplify(sum());
    EXPECT_TRUE(StructuralEqual(first, other)) << ToText(first) << " and " << ToText(other);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimplifyProperty, testing::Range<uint64_t>(0, 60));

}  // namespace
}  // namespace hone
