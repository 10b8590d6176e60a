// The text of traces: printing, reading, what is refused, texts of earlier releases.
#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/transform_layout.h"

#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

TEST(TraceText, PrintsThePythonDialect) {
  const PrimFunc workload = Matmul(12, 16, 8);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const ValueRef lanes = Get(SampleCategorical(s, {4, 8}, {0.25, 0.75}, 1));
  const std::vector<ValueRef> tile = Get(SamplePerfectTile(s, l[0], 2, 8, {3, 4}));
  const std::vector<LoopRef> i = Get(Split(s, l[0], {tile[0], tile[1]}));
  const std::vector<LoopRef> j = Get(Split(s, l[1], {Value(), lanes}));
  Do(Reorder(s, {i[0], j[0], l[2], i[1], j[1]}));
  Do(Parallel(s, Get(Fuse(s, {i[0], j[0]}))));
  Do(Annotate(s, c, "note", std::vector<int64_t>{1, 2}));
  Do(TransformLayout(s, Get(CacheWrite(s, c, 0, Scope::kThread)), 0, BufferKind::kRead,
                     Get(ParseIndexMap("lambda a, b: (b // 4, a, b % 4)"))));
  EXPECT_EQ(ToText(s.trace()), R"(b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
v4 = sch.sample_categorical([4, 8], probs=[0.25, 0.75], decision=1)
v5, v6 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=8, decision=[3, 4])
l7, l8 = sch.split(l1, factors=[v5, v6])
l9, l10 = sch.split(l2, factors=[None, v4])
sch.reorder(l7, l9, l3, l8, l10)
l11 = sch.fuse(l7, l9)
sch.parallel(l11)
sch.annotate(b0, ann_key="note", ann_val=[1, 2])
b12 = sch.cache_write(b0, write_buffer_index=0, storage_scope="local.thread")
sch.transform_layout(b12, buffer=("read", 0), index_map=lambda a, b: (b // 4, a, b % 4))
)");
  ExpectSound(s, workload);
}

// Traces as others write them, and as earlier releases did: these texts stay.
constexpr std::string_view kFixtures[] = {
    R"(
# A comment, keywords everywhere, a frame around it.
def apply_trace(sch: tir.Schedule) -> None:
    b0 = sch.get_block(name="C", func_name="main")
    i, j, k = sch.get_loops(block=b0)
    v1, v2 = sch.sample_perfect_tile(loop=i, n=2, max_innermost_factor=64, decision=[3, 4])
    i0, i1 = sch.split(loop=i, factors=[v1, v2], preserve_unit_iters=True)
    sch.reorder(
        i0, j,   # across lines
        k, i1)
    sch.vectorize(loop=i1)
    sch.annotate(block_or_loop=b0, ann_key='k', ann_val="text \"quoted\"")
    return
)",
    R"(b = sch.get_block("C")
ls = sch.get_loops(b)
)",
    R"(block = s.get_block("C"); (i, j, k) = s.get_loops(block)
o, v = s.split(j, [None, 4]); s.unroll(v)
)",
};

TEST(TraceText, ReadsWhatOthersWrite) {
  for (const std::string_view text : {kFixtures[0], kFixtures[2]}) {
    const PrimFunc workload = Matmul(12, 16, 8);
    const Schedule s = Get(Replay(Get(ParseTrace(text)), workload));
    ExpectSound(s, workload);
  }
  // One name for a list of three is one output too few.
  EXPECT_TRUE(Says(Replay(Get(ParseTrace(kFixtures[1])), Matmul(12, 16, 8)), "it gave 3 outputs, the trace names 1"));
}

struct Bad {
  const char* name;
  const char* text;
  const char* says;
};
class BadTraces : public ::testing::TestWithParam<Bad> {};
TEST_P(BadTraces, SayWhatAndWhere) { EXPECT_TRUE(Says(ParseTrace(GetParam().text), GetParam().says)); }
INSTANTIATE_TEST_SUITE_P(
    Texts, BadTraces,
    ::testing::Values(
        Bad{"UnknownName", "sch.parallel(l1)", "line 1: parallel, argument loop: the name l1 is not defined above"},
        Bad{"UnknownPrimitive", "\nsch.frobnicate(l1)", "line 2: there is no primitive frobnicate"},
        Bad{"WrongKind", "b = sch.get_block(\"C\")\nsch.parallel(b)",
            "line 2: parallel, argument loop: b is a block, expected a loop"},
        Bad{"Missing", "sch.get_loops()", "line 1: get_loops: the argument block is missing"},
        Bad{"MissingMap", "b0 = sch.get_block(\"C\")\nsch.transform_layout(b0, buffer=(\"read\", 0))",
            "line 2: transform_layout: the argument index_map is missing"},
        Bad{"TooMany", "b = sch.get_block(\"C\", \"main\", 3)", "there is no argument number 3"},
        Bad{"DialectKeyword",
            "b = sch.get_block(\"C\")\nl, = sch.get_loops(b)\nsch.split(l, [2, 2], disable_predication=True)",
            "line 3: split: the argument disable_predication is supported with its default alone"},
        Bad{"UnknownKeyword", "b = sch.get_block(\"C\", colour=1)", "there is no argument colour"},
        Bad{"NoBracket", "b = sch.get_block \"C\"", "line 1: found \"\"\", expected \"(\""},
        Bad{"OpenBracket", "b = sch.get_block(\"C\"", "line 1: found the end of the text, expected \",\" or \")\""},
        Bad{"OpenString", "b = sch.get_block(\"C", "expected the string's end"},
        Bad{"GivesNothing", "b = sch.get_block(\"C\")\nl, = sch.get_loops(b)\nx = sch.parallel(l)",
            "line 3: parallel gives nothing to name x"},
        Bad{"GivesOne", "a, b = sch.get_block(\"C\")", "gives one thing, not 2"},
        Bad{"NotANumber", "b = sch.get_block(\"C\")\nl, = sch.get_loops(b)\na, c = sch.split(l, [1x, 2])",
            "expected a number"},
        Bad{"NewerVersion", "b = sch.get_block(\"C\", version=7)",
            "the step has version 7, this release knows up to 1"},
        Bad{"BadMap", "b = sch.get_block(\"C\")\nsch.transform_layout(b, (\"write\", 0), lambda i: (i // 0,))",
            "the divisor 0 is not a number above 0"},
        Bad{"DeepLists", "sch.split([[[[[[[[[[1]]]]]]]]]])", "lists at most 8 deep"}),
    [](const ::testing::TestParamInfo<Bad>& info) { return info.param.name; });

TEST(TraceText, SurvivesEveryPrefixAndEveryByte) {
  const std::string text =
      "b0 = sch.get_block(\"C\", func_name='main')\nl1, l2 = sch.split(l0, factors=[None, 4.5e3])\n"
      "sch.transform_layout(b0, (\"write\", 0), lambda i, j: (i // 4, j % (2 + 3)))\n";
  for (size_t n = 0; n <= text.size(); ++n) (void)ParseTrace(text.substr(0, n));
  for (size_t n = 0; n < text.size(); ++n) {
    for (const char c : {'(', ')', '"', ',', '\n', '\0', '=', '-', '%', 'x', '9'}) {
      std::string changed = text;
      changed[n] = c;
      (void)ParseTrace(changed);
    }
  }
}

TEST(TraceReplay, NamesTheStepThatIsRefused) {
  const absl::StatusOr<Trace> trace =
      ParseTrace("b = sch.get_block(\"C\")\ni, j, k = sch.get_loops(b)\nsch.parallel(k)\n");
  EXPECT_TRUE(Says(Replay(Get(trace), Matmul(4, 4, 4)),
                   "step 2 `sch.parallel(s1.2)`: parallel(k): the loop runs over v_k of block C, a reduction"));
  EXPECT_TRUE(Says(Replay(Get(ParseTrace("b = sch.get_block(\"Q\")")), Matmul(4, 4, 4)),
                   "get_block(Q): there is no such block; there are C"));
}

TEST(Decisions, CanBeListedAndChanged) {
  const PrimFunc workload = Matmul(12, 16, 8);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const std::vector<ValueRef> tile = Get(SamplePerfectTile(s, l[0], 2, 4, {3, 4}));
  Get(Split(s, l[0], {tile[0], tile[1]}));
  const ValueRef lanes = Get(SampleCategorical(s, {4, 8}, {}, 0));
  Get(Split(s, l[1], {Value(), lanes}));
  const std::vector<Decision> decisions = Decisions(s.trace());
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].kind, Decision::Kind::kPerfectTile);
  EXPECT_EQ(decisions[0].values, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(decisions[0].max_innermost_factor, 4);
  EXPECT_EQ(decisions[1].candidates, (std::vector<int64_t>{4, 8}));

  const Trace other = WithDecision(WithDecision(s.trace(), decisions[0].step, {6, 2}), decisions[1].step, {1});
  const Schedule again = Get(Replay(other, workload));
  const std::vector<Decision> changed = Decisions(again.trace());
  EXPECT_EQ(changed[0].values, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(changed[1].values, (std::vector<int64_t>{1}));
  ExpectSound(again, workload);
  EXPECT_TRUE(
      Says(Replay(WithDecision(s.trace(), decisions[0].step, {5, 2}), workload), "does not multiply to the extent 12"));
  EXPECT_TRUE(Says(Replay(WithDecision(s.trace(), decisions[0].step, {2, 6}), workload),
                   "the last factor is 6, above max_innermost_factor 4"));
  EXPECT_TRUE(Says(Replay(WithDecision(s.trace(), decisions[1].step, {2}), workload), "decision 2 of 2 candidates"));
}

TEST(Decisions, RandomTilesMultiplyToTheExtent) {
  const PrimFunc workload = Matmul(60, 7, 1);
  Random random(5);
  for (int i = 0; i < 50; ++i) {
    Schedule s(workload);
    const std::vector<LoopRef> l = Get(GetLoops(s, Get(GetBlock(s, "C"))));
    for (const LoopRef loop : l) {
      const std::vector<ValueRef> tile = Get(SamplePerfectTile(s, loop, 3, 4, random));
      Get(Split(s, loop, {tile[0], tile[1], tile[2]}));
      EXPECT_LE(Get(s.Evaluate(tile[2])), 4);
    }
    ExpectReplays(s, workload);
  }
}

TEST(ScheduleCopies, GoTheirOwnWays) {
  Schedule s(TwoElementwise(8, 8));
  const BlockRef b = Get(GetBlock(s, "B"));
  Schedule copy = s;
  const std::vector<LoopRef> l = Get(GetLoops(copy, b));
  Do(Parallel(copy, l[0]));
  EXPECT_EQ(s.trace().steps.size(), 1u);
  EXPECT_EQ(copy.trace().steps.size(), 3u);
  EXPECT_FALSE(s.func().body.SameAs(copy.func().body));
  EXPECT_TRUE(Says(s.FindLoop(l[0]), "output 0 of step 1 does not exist: the trace has 1 steps"));
}

TEST(ScheduleRefs, SayWhatBecameOfThem) {
  Schedule s(TwoElementwise(8, 8));
  const BlockRef b = Get(GetBlock(s, "B"));
  const std::vector<LoopRef> l = Get(GetLoops(s, b));
  Get(Split(s, l[0], {-1, 4}));
  EXPECT_TRUE(Says(Parallel(s, l[0]), "parallel: loop i is gone"));
  Do(ComputeInline(s, b));
  EXPECT_TRUE(Says(GetLoops(s, b), "get_loops: block B is gone"));
  EXPECT_TRUE(Says(Parallel(s, LoopRef{0, 0}), "is a block, a loop is needed"));
  EXPECT_TRUE(Says(Parallel(s, LoopRef{-3, 0}), "does not exist"));
}

}  // namespace
}  // namespace hone::testing
