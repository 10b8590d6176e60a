#include "compiler/arith/iter_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/visit.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/compiler/arith/eval.h"

namespace hone {
namespace {

struct Names {
  Var i{"i"}, j{"j"}, k{"k"}, f{"f"};
  VarRanges loops;
};

// Loops i in [0, 4), j in [0, 32), k in [0, 8) or f in [0, 128): those a case names.
struct Case {
  const char* name;
  const char* loops;
  std::vector<Expr> (*values)(const Names&);
  Expr (*predicate)(const Names&);
  std::vector<int64_t> extents;  // of the values, when it is accepted
  const char* error;             // else what the message says
};

#define VALUES(...)                                       \
  [](const Names& v) -> std::vector<Expr> {               \
    [[maybe_unused]] const auto& [i, j, k, f, loops] = v; \
    return {__VA_ARGS__};                                 \
  }
#define WHERE(e)                                          \
  [](const Names& v) -> Expr {                            \
    [[maybe_unused]] const auto& [i, j, k, f, loops] = v; \
    return e;                                             \
  }

const Case kCases[] = {
    {"Identity", "ij", VALUES(i, j), WHERE(True()), {4, 32}, ""},
    {"Swapped", "ij", VALUES(j, i), WHERE(True()), {32, 4}, ""},
    {"Split", "ij", VALUES(Expr(i) * 32 + j), WHERE(True()), {128}, ""},
    {"SplitTwice", "ijk", VALUES(Expr(i) * 256 + Expr(j) * 8 + k), WHERE(True()), {1024}, ""},
    {"Fused", "f", VALUES(FloorDiv(f, 32), FloorMod(f, 32)), WHERE(True()), {4, 32}, ""},
    {"FusedThreeWays",
     "f",
     VALUES(FloorDiv(f, 32), FloorMod(FloorDiv(f, 8), 4), FloorMod(f, 8)),
     WHERE(True()),
     {4, 4, 8},
     ""},
    {"FusedAndSplit",
     "ijk",
     VALUES(FloorDiv(Expr(j) * 8 + k, 64), FloorMod(Expr(j) * 8 + k, 64) + Expr(i) * 64),
     WHERE(True()),
     {4, 256},
     ""},
    {"Unaligned", "ij", VALUES(FloorDiv(Expr(i) * 33 + j, 3)), WHERE(True()), {}, "evenly"},
    {"UnevenPieces",
     "jk",
     VALUES(FloorDiv(Expr(j) * 8 + k, 3), FloorMod(Expr(j) * 8 + k, 3)),
     WHERE(True()),
     {},
     "evenly"},
    {"UnevenFusion",
     "ik",
     VALUES(FloorDiv(Expr(k) * 4 + i, 16), FloorMod(Expr(k) * 4 + i, 16)),
     WHERE(True()),
     {2, 16},
     ""},
    {"Tail", "ij", VALUES(Expr(i) * 32 + j), WHERE(Expr(i) * 32 + j < 100), {100}, ""},
    {"TailWithOthers", "ijk", VALUES(k, Expr(i) * 32 + j), WHERE(Expr(i) * 32 + j < 100), {8, 100}, ""},
    {"TailInside", "ijk", VALUES(Expr(i) * 250 + Expr(j) * 8 + k), WHERE(Expr(j) * 8 + k < 250), {1000}, ""},
    {"TwoTails",
     "ijk",
     VALUES(Expr(i) * 250 + Expr(j) * 8 + k),
     WHERE(And(Expr(j) * 8 + k < 250, Expr(i) * 250 + Expr(j) * 8 + k < 900)),
     {900},
     ""},
    {"TailOfFused", "f", VALUES(f), WHERE(Expr(f) < 100), {100}, ""},
    {"TailDropsOuter", "ij", VALUES(Expr(i) * 32 + j), WHERE(Expr(i) * 32 + j < 96), {96}, ""},
    {"FusedWithTail",
     "ij",
     VALUES(FloorDiv(Expr(i) * 32 + j, 10), FloorMod(Expr(i) * 32 + j, 10)),
     WHERE(Expr(i) * 32 + j < 100),
     {10, 10},
     ""},
    {"FusedWithTailOfOneLoop", "f", VALUES(FloorDiv(f, 10), FloorMod(f, 10)), WHERE(Expr(f) < 120), {12, 10}, ""},
    {"TailInPieces",
     "ik",
     VALUES(Expr(i) * 4 + FloorDiv(k, 2), FloorMod(k, 2)),
     WHERE(Expr(i) * 4 + FloorDiv(k, 2) < 14),
     {14, 2},
     ""},
    {"Shifted", "ij", VALUES(Expr(i) * 32 + j + 5), WHERE(True()), {128}, ""},
    {"Overlap", "jk", VALUES(Expr(k) * 2 + j), WHERE(True()), {}, "overlap"},
    {"Gaps", "ij", VALUES(Expr(i) * 64 + j), WHERE(True()), {}, "gaps"},
    {"SameLoopTwice", "ij", VALUES(i, i), WHERE(True()), {}, "another binding"},
    {"UnusedLoop", "ij", VALUES(i), WHERE(True()), {}, "no binding uses loop j"},
    {"UnusedPart", "f", VALUES(FloorDiv(f, 32)), WHERE(True()), {}, "only a part of f"},
    {"Product", "ij", VALUES(Expr(i) * j), WHERE(True()), {}, "not affine"},
    {"PredicateElsewhere", "ijk", VALUES(Expr(i) * 32 + j, k), WHERE(Expr(k) * 32 + j < 100), {}, "predicate"},
    {"OtherPredicate", "ij", VALUES(i, j), WHERE(Eq(i, 2)), {}, "not of the form"},
};

class IterMapTable : public testing::TestWithParam<Case> {};
TEST_P(IterMapTable, FindsTheFormOrSaysWhy) {
  Names v;
  for (const char c : std::string(GetParam().loops)) {
    if (c == 'i') v.loops.emplace(v.i, Range{0, 4});
    if (c == 'j') v.loops.emplace(v.j, Range{0, 32});
    if (c == 'k') v.loops.emplace(v.k, Range{0, 8});
    if (c == 'f') v.loops.emplace(v.f, Range{0, 128});
  }
  const absl::StatusOr<IterMap> map = DetectIterMap(GetParam().values(v), v.loops, GetParam().predicate(v));
  if (*GetParam().error != 0) {
    ASSERT_FALSE(map.ok());
    EXPECT_THAT(std::string(map.status().message()), testing::HasSubstr(GetParam().error));
    return;
  }
  ASSERT_TRUE(map.ok()) << map.status();
  std::vector<int64_t> extents;
  for (const IterValue& value : map->values) extents.push_back(ConstantValue(value.extent).value_or(-1));
  EXPECT_EQ(extents, GetParam().extents);
}
INSTANTIATE_TEST_SUITE_P(Cases, IterMapTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Random splits and fusions of loops, as scheduling makes them, are accepted; and whatever is accepted is one to one.
TEST(IterMap, AcceptsWhatScheduleMakesAndNothingElse) {
  int accepted_broken = 0, with_tails = 0, tails_accepted = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    // Iteration variables of known extents; `exprs` says what each is in the loops.
    std::vector<int64_t> domain{static_cast<int64_t>(1 + random.Below(12)), static_cast<int64_t>(1 + random.Below(12))};
    std::vector<Var> loops;
    std::vector<int64_t> extents = domain;
    std::vector<Expr> values;
    std::vector<Expr> predicates;
    for (size_t a = 0; a < domain.size(); ++a) {
      loops.emplace_back("l" + std::to_string(a));
      values.push_back(loops.back());
    }
    const auto substitute = [&](const Var& var, const Expr& by) {
      const auto replace = [&](Expr& e) { e = Substitute(e, var, by); };
      for (Expr& e : values) replace(e);
      for (Expr& e : predicates) replace(e);
    };
    for (int step = 0; step < 4; ++step) {
      if (random.Chance(0.5) || loops.size() < 2) {
        const size_t at = random.Below(loops.size());
        const int64_t factor = 1 + random.Below(5);
        const int64_t outer = (extents[at] + factor - 1) / factor;
        const Var o("o"), in("n");
        substitute(loops[at], Expr(o) * factor + in);
        if (outer * factor != extents[at]) predicates.push_back(Expr(o) * factor + in < extents[at]);
        loops[at] = o;
        loops.insert(loops.begin() + at + 1, in);
        extents.insert(extents.begin() + at + 1, factor);
        extents[at] = outer;
      } else {
        const size_t at = random.Below(loops.size() - 1);
        const Var fused("f");
        substitute(loops[at], FloorDiv(fused, extents[at + 1]));
        substitute(loops[at + 1], FloorMod(fused, extents[at + 1]));
        loops[at] = fused;
        loops.erase(loops.begin() + at + 1);
        extents[at] *= extents[at + 1];
        extents.erase(extents.begin() + at + 1);
      }
    }
    const bool broken = random.Chance(0.3);
    if (broken) values[random.Below(2)] = Expr(loops[0]) * static_cast<int64_t>(1 + random.Below(3));
    VarRanges ranges;
    for (size_t l = 0; l < loops.size(); ++l) ranges.emplace(loops[l], Range{0, extents[l]});
    Expr predicate = True();
    for (const Expr& p : predicates) predicate = And(predicate, p);
    const absl::StatusOr<IterMap> map = DetectIterMap(values, ranges, predicate);
    if (!broken && !predicates.empty()) {
      ++with_tails;
      tails_accepted += map.ok();
    }
    // Whatever was accepted: run all iterations and see.
    if (map.ok()) {
      std::set<std::vector<int64_t>> seen;
      std::vector<int64_t> at(loops.size(), 0);
      int64_t runs = 0;
      for (bool more = true; more;) {
        Values assignment;
        for (size_t l = 0; l < loops.size(); ++l) assignment[loops[l]] = at[l];
        if (Eval(predicate, assignment) != 0) {
          ++runs;
          std::vector<int64_t> instance;
          for (size_t b = 0; b < values.size(); ++b) {
            instance.push_back(Eval(values[b], assignment));
            const IterValue& value = map->values[b];
            ASSERT_GE(instance.back(), 0);
            ASSERT_LT(instance.back(), *ConstantValue(value.extent)) << ToText(values[b]) << " seed " << seed;
          }
          ASSERT_TRUE(seen.insert(instance).second) << "twice: seed " << seed;
        }
        more = false;
        for (size_t l = loops.size(); l-- > 0;) {
          if (++at[l] < extents[l]) {
            more = true;
            break;
          }
          at[l] = 0;
        }
      }
      if (broken) ++accepted_broken;
      if (!broken) { ASSERT_EQ(runs, domain[0] * domain[1]) << seed; }
    }
    if (!broken && predicates.empty()) {
      EXPECT_TRUE(map.ok()) << "seed " << seed << ": " << ToText(values[0]) << ", " << ToText(values[1]) << ": "
                            << map.status();
    }
  }
  EXPECT_LT(accepted_broken, 60);
  EXPECT_GE(tails_accepted, with_tails * 9 / 10);
}

TEST(CheckBindings, ComparesWithTheDomain) {
  const Var i("i"), j("j"), n("n", kInt32, {1, 512}), s("s"), v("v"), w("w");
  Block block{.name = "Y"};
  block.iters = {{v, {0, 100}, IterKind::kSpatial}};
  block.body = MakeSeq({});
  BlockRealize realize{{Expr(i) * 32 + j}, Expr(i) * 32 + j < 100, block};
  Analyzer known;
  const VarRanges loops{{i, {0, 4}}, {j, {0, 32}}};
  EXPECT_TRUE(CheckBindings(realize, loops, known).ok()) << CheckBindings(realize, loops, known);
  realize.predicate = True();
  EXPECT_THAT(std::string(CheckBindings(realize, loops, known).message()), testing::HasSubstr("block Y"));
  realize.block.iters = {{w, {0, n}, IterKind::kSpatial}};
  realize.values = {s};
  EXPECT_TRUE(CheckBindings(realize, {{s, {0, n}}}, known).ok());
  EXPECT_FALSE(CheckBindings(realize, {{s, {0, Expr(n) + 1}}}, known).ok());
}

// Loops over a symbolic size n: splits with a tail, fusions where what is symbolic lies above, and what is refused.
struct SymbolicCase {
  const char* name;
  std::vector<Expr> (*values)(const Var&, const Var&, const Var&);  // of o, v and n
  Range (*outer)(const Var&);
  int64_t inner;
  Expr (*predicate)(const Var&, const Var&, const Var&);
  std::vector<Expr> (*domains)(const Var&);
  const char* error;
};
#define OF(e) [](const Var& o, const Var& v, const Var& n) { return (void)o, (void)v, (void)n, e; }
#define OF_N(...) [](const Var& n) { return (void)n, __VA_ARGS__; }
using Exprs = std::vector<Expr>;
const SymbolicCase kSymbolic[] = {
    {"Plain", OF((Exprs{o, v})), OF_N(Range{0, n}), 16, OF(True()), OF_N(Exprs{n, 16}), ""},
    {"Split", OF(Exprs{Expr(o) * 16 + v}), OF_N(Range{0, FloorDiv(Expr(n) + 15, 16)}), 16, OF(Expr(o) * 16 + v < n),
     OF_N(Exprs{n}), ""},
    {"SplitEvenly", OF(Exprs{Expr(o) * 16 + v}), OF_N(Range{0, n}), 16, OF(True()), OF_N(Exprs{Expr(n) * 16}), ""},
    {"Fused", OF((Exprs{FloorDiv(o, 8), FloorMod(o, 8), v})), OF_N(Range{0, Expr(n) * 8}), 4, OF(True()),
     OF_N(Exprs{n, 8, 4}), ""},
    {"TooFewTiles", OF(Exprs{Expr(o) * 16 + v}), OF_N(Range{0, FloorDiv(n, 16)}), 16, OF(Expr(o) * 16 + v < n),
     OF_N(Exprs{n}), "runs over [0, +n // 16 * 16)"},
    {"NoTail", OF(Exprs{Expr(o) * 16 + v}), OF_N(Range{0, FloorDiv(Expr(n) + 15, 16)}), 16, OF(True()), OF_N(Exprs{n}),
     "runs over"},
    {"SymbolicBelow", OF(Exprs{Expr(v) * 4 + o}), OF_N(Range{0, n}), 16, OF(True()), OF_N(Exprs{Expr(n) * 16}),
     "others lie above it"},
    {"OtherSize", OF((Exprs{o, v})), OF_N(Range{0, n}), 16, OF(True()), OF_N(Exprs{Expr(n) + 1, 16}), "runs over"},
    {"Beneath", OF(Exprs{Expr(o) + Expr(v) * 512}), OF_N(Range{0, n}), 16, OF(True()), OF_N(Exprs{8192}),
     "o takes n values, which is symbolic, and others lie above it"},
    {"Depends", OF((Exprs{o, v})), OF_N(Range{0, n}), 16, OF(Expr(o) + v < n), OF_N(Exprs{n, 16}), "predicate"},
};
TEST(CheckBindings, OfSymbolicLoops) {
  for (const SymbolicCase& c : kSymbolic) {
    const Var o("o"), v("v"), n("n", kInt32, {1, 512});
    Block block{.name = "Y"};
    for (const Expr& extent : c.domains(n))
      block.iters.push_back({Var("i"), Range{IntConst(0), extent}, IterKind::kSpatial});
    block.body = MakeSeq({});
    const BlockRealize realize{c.values(o, v, n), c.predicate(o, v, n), block};
    Analyzer known;
    const absl::Status status = CheckBindings(realize, {{o, c.outer(n)}, {v, {0, IntConst(c.inner)}}}, known);
    if (*c.error == 0) EXPECT_TRUE(status.ok()) << c.name << ": " << status;
    else EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.error)) << c.name;
  }
}

}  // namespace
}  // namespace hone
