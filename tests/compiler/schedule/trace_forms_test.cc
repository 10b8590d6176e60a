// JSON and protobuf forms of traces, versions, and edits of traces: what comes back is the same, over random traces.
#include "compiler/schedule/trace/trace_forms.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/schedule/trace/trace.h"

#include <limits>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/schedule/trace/replay_cache.h"
#include "compiler/schedule/trace/step_call.h"
#include "compiler/schedule/trace/step_compare.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "hone/v1/trace.pb.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

Schedule Played(uint64_t seed, const SmallWorkload& workload) {
  Random random(seed);
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  return player.schedule();
}

void ExpectRoundTrips(const Trace& trace) {
  const Trace text = Get(ParseTrace(ToText(trace)));
  EXPECT_TRUE(text == trace) << ToText(trace);
  const std::string json = ToJson(trace);
  const absl::StatusOr<Trace> from_json = ParseTraceJson(json);
  ASSERT_TRUE(from_json.ok()) << from_json.status() << "\n" << json;
  EXPECT_TRUE(*from_json == trace) << json;
  EXPECT_EQ(ToJson(*from_json), json);
  v1::Trace proto, again;
  ToProto(trace, &proto);
  ASSERT_TRUE(again.ParseFromString(proto.SerializeAsString()));
  const absl::StatusOr<Trace> from_proto = TraceFromProto(again);
  ASSERT_TRUE(from_proto.ok()) << from_proto.status() << "\n" << proto.DebugString();
  EXPECT_TRUE(*from_proto == trace) << proto.DebugString();
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    EXPECT_EQ(HashOf(trace.steps[i]), HashOf(from_json->steps[i])) << ToText(trace.steps[i]);
  }
}

TEST(TraceForms, RandomTracesRoundTrip) {
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const SmallWorkload workload = PickWorkload(random);
    ExpectRoundTrips(Played(seed, workload).trace());
  }
}

TEST(TraceForms, EveryKindOfValueRoundTrips) {
  const PrimFunc workload = Matmul(12, 16, 8);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  constexpr double kInf = std::numeric_limits<double>::infinity();
  int count = 0;
  for (const Attr& value : std::initializer_list<Attr>{
           int64_t{1} << 62, -int64_t{1}, 0.1, 1.0, kInf, -kInf, 1e300, std::string("a \"quoted\"\nline\\"),
           std::string("\xC3\xA4 \xFF\x01"), std::string(), std::vector<int64_t>{}, std::vector<int64_t>{3, -4},
           std::vector<std::string>{"x", "", "y"}}) {
    Do(Annotate(s, count % 2 == 0 ? BlockOrLoop(c) : BlockOrLoop(l[0]), absl::StrCat("key", count), value));
    ++count;
  }
  Get(SampleCategorical(s, {4, 8}, {0.25, 0.75}, 1));
  Do(TransformLayout(s, Get(CacheWrite(s, c, 0, Scope::kThread)), 0, BufferKind::kRead,
                     Get(ParseIndexMap("lambda a, b: (b // 4, a, b % 4)"))));
  Get(Split(s, l[1], {Value(), 4}));
  Do(Reorder(s, {l[2], l[0]}));
  ExpectRoundTrips(s.trace());
}

TEST(TraceForms, PadValuesRoundTripAndAreLeftOutWhereThereAreNone) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const IndexMap panels = Get(ParseIndexMap("lambda a, b: (b // 5, a, b % 5)"));
  const auto transformed = [&](PadValue pad_value) {
    Schedule s(Matmul(12, 16, 8));
    const BlockRef copy = Get(CacheWrite(s, Get(GetBlock(s, "C")), 0, Scope::kThread));
    Do(TransformLayout(s, copy, 0, BufferKind::kRead, panels, pad_value));
    return s.trace();
  };
  std::set<std::string> texts;
  for (const PadValue& pad_value :
       {PadValue(), PadValue(0), PadValue(-7), PadValue(0.0), PadValue(-0.0), PadValue(0.1), PadValue(kInf),
        PadValue(-kInf), PadValue(std::numeric_limits<double>::quiet_NaN())}) {
    const Trace trace = transformed(pad_value);
    ExpectRoundTrips(trace);
    EXPECT_TRUE(texts.insert(ToText(trace)).second) << "twice: " << ToText(trace);
    EXPECT_EQ(trace == transformed({}), !pad_value.has_value());
  }
  const std::string before = ToText(transformed({}));
  EXPECT_EQ(before.find("pad_value"), std::string::npos) << before;
  std::string none = before;
  none.insert(none.rfind(')'), ", pad_value=None");
  EXPECT_TRUE(Get(ParseTrace(none)) == transformed({})) << none;
  EXPECT_EQ(ToText(transformed(0.5)), std::string(before).insert(before.rfind(')'), ", pad_value=0.5"));
  none.replace(none.find("None"), 4, "lambda i: i");
  EXPECT_TRUE(
      Says(ParseTrace(none), "transform_layout, argument pad_value: found a lambda, expected a number or None"));
}

TEST(TraceForms, JsonIsWhatTheHeaderShows) {
  Schedule s(Matmul(12, 16, 8));
  const std::vector<LoopRef> l = Get(GetLoops(s, Get(GetBlock(s, "C"))));
  Get(Split(s, l[2], {Value(), 4}));
  EXPECT_EQ(ToJson(s.trace()),
            R"({"hone_trace":1,"steps":[{"step":"get_block","args":{"name":"C","func_name":"main"},"outputs":1},)"
            R"({"step":"get_loops","args":{"block":{"ref":[0,0]}},"outputs":3},)"
            R"({"step":"split","args":{"loop":{"ref":[1,2]},"factors":[null,4]},"outputs":2}]})");
}

struct BadJson {
  const char* name;
  const char* text;
  const char* says;
};
class BadJsonTraces : public ::testing::TestWithParam<BadJson> {};
TEST_P(BadJsonTraces, SayWhatAndWhere) { EXPECT_TRUE(Says(ParseTraceJson(GetParam().text), GetParam().says)); }
INSTANTIATE_TEST_SUITE_P(
    Texts, BadJsonTraces,
    ::testing::Values(
        BadJson{"NotJson", "{", "the trace is not JSON"},
        BadJson{"NotATrace", "[1, 2]", "the JSON is not a trace: expected {\"hone_trace\": 1"},
        BadJson{"NewerFormat", R"({"hone_trace": 2, "steps": []})", "the trace has format 2, this release reads 1"},
        BadJson{"NoName", R"({"hone_trace": 1, "steps": [{"args": {}}]})", "step 0: expected {\"step\": NAME"},
        BadJson{"UnknownStep", R"({"hone_trace": 1, "steps": [{"step": "fly"}]})", "step 0: there is no primitive fly"},
        BadJson{"NewerStep", R"({"hone_trace": 1, "steps": [{"step": "get_block", "version": 9}]})",
                "step 0: get_block: the step has version 9, this release knows up to 1"},
        BadJson{"NoSuchRef",
                R"({"hone_trace": 1, "steps": [{"step": "get_loops", "args": {"block": {"ref": [0, 0]}}}]})",
                "step 0: get_loops, argument block: there is no output 0 of step 0 above"},
        BadJson{"WrongKind",
                R"({"hone_trace": 1, "steps": [{"step": "get_block", "args": {"name": "C"}, "outputs": 1},)"
                R"({"step": "parallel", "args": {"loop": {"ref": [0, 0]}}}]})",
                "step 1: parallel, argument loop: an output is a block, expected a loop"},
        BadJson{"WrongType", R"({"hone_trace": 1, "steps": [{"step": "get_block", "args": {"name": 3}}]})",
                "step 0: get_block, argument name: found an integer, expected a string"},
        BadJson{"StrangeObject", R"({"hone_trace": 1, "steps": [{"step": "get_block", "args": {"name": {"a": 1}}}]})",
                "argument name: found {\"a\":1}, expected a number, a string"},
        BadJson{"UnknownArgument", R"({"hone_trace": 1, "steps": [{"step": "get_block", "args": {"colour": 3}}]})",
                "step 0: get_block: there is no argument colour"},
        BadJson{"TwoOutputs",
                R"({"hone_trace": 1, "steps": [{"step": "get_block", "args": {"name": "C"}, "outputs": 2}]})",
                "step 0: get_block gives one thing, not 2"}),
    [](const ::testing::TestParamInfo<BadJson>& info) { return info.param.name; });

TEST(TraceForms, BytesThatAreNoProtoTraceAreRefused) {
  v1::Trace proto;
  proto.add_steps()->set_name("get_loops");
  v1::TraceArgument* argument = proto.mutable_steps(0)->add_arguments();
  argument->set_name("block");
  EXPECT_TRUE(
      Says(TraceFromProto(proto), "step 0: get_loops, argument block: a value of a kind this release does not"));
  argument->mutable_value()->mutable_ref()->set_step(-5);
  EXPECT_TRUE(Says(TraceFromProto(proto), "there is no output 0 of step -5 above"));
  v1::TraceValue* value = argument->mutable_value();
  for (int depth = 0; depth < 40; ++depth) value = value->mutable_list()->add_items();
  EXPECT_TRUE(Says(TraceFromProto(proto), "lists at most 8 deep"));
}

TEST(TraceForms, MoreStepsThanAreReplayedAreReadFromNone) {
  std::string text, json;
  v1::Trace proto;
  for (int i = 0; i < kMostTraceSteps; ++i) {
    text += "sch.get_block(\"C\")\n";
    json += R"({"step": "get_block", "args": {"name": "C"}}, )";
    proto.add_steps()->set_name("get_block");
    v1::TraceArgument* name = proto.mutable_steps(i)->add_arguments();
    name->set_name("name");
    name->mutable_value()->set_text("C");
  }
  const auto as_json = [&] {
    return R"({"hone_trace": 1, "steps": [)" + json + R"({"step": "get_block", "args": {"name": "C"}}]})";
  };
  EXPECT_EQ(Get(ParseTrace(text)).steps.size(), static_cast<size_t>(kMostTraceSteps));
  EXPECT_EQ(Get(TraceFromProto(proto)).steps.size(), static_cast<size_t>(kMostTraceSteps));
  constexpr char kTooMany[] = "the trace has 10001 steps, and at most 10000 are replayed";
  EXPECT_TRUE(Says(ParseTrace(text + "sch.get_block(\"C\")"), kTooMany));
  EXPECT_TRUE(Says(ParseTraceJson(as_json()), kTooMany));
  *proto.add_steps() = proto.steps(0);
  EXPECT_TRUE(Says(TraceFromProto(proto), kTooMany));
}

TEST(TraceVersions, OldAndNewOnesAreToldApart) {
  constexpr StepInfo kInfo{.name = "pack", .version = 4, .oldest = 3};
  EXPECT_TRUE(CheckVersion(kInfo, 3, "line 2").ok());
  EXPECT_TRUE(CheckVersion(kInfo, 4, "line 2").ok());
  EXPECT_TRUE(Says(CheckVersion(kInfo, 5, "line 2"),
                   "line 2: pack: the step has version 5, this release knows up to 4; use a newer release"));
  EXPECT_TRUE(Says(CheckVersion(kInfo, 1, "line 2"),
                   "line 2: pack: the step has version 1, this release replays 3 and later: what it does has changed "
                   "since; schedule or tune the workload again"));
}

TEST(TraceEdits, SimplifiedTracesGiveTheSameProgram) {
  size_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const SmallWorkload workload = PickWorkload(random);
    const Schedule s = Played(seed, workload);
    const Trace simple = Simplified(s.trace());
    const absl::StatusOr<Schedule> again = Replay(simple, workload.func);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << ToText(s.trace()) << "\nsimplified:\n" << ToText(simple);
    EXPECT_TRUE(StructuralEqual(again->func(), s.func())) << ToText(s.trace()) << "\nsimplified:\n" << ToText(simple);
    EXPECT_TRUE(Simplified(simple) == simple) << ToText(simple);
    before += s.trace().steps.size();
    after += simple.steps.size();
  }
  EXPECT_LT(after, before * 3 / 4);  // random players look everything up again and again
}

TEST(TraceEdits, SimplifyDropsWhatNobodyReads) {
  const Trace trace = Get(ParseTrace(R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
v4 = sch.sample_categorical([4, 8], decision=1)
b5 = sch.get_block("C")
l6, l7, l8 = sch.get_loops(b5)
v9, v10 = sch.sample_perfect_tile(l6, n=2, max_innermost_factor=0, decision=[3, 4])
sch.split(l6, factors=[v9, v10])
l11, l12, l13, l14 = sch.get_loops(b0)
sch.parallel(l11)
sch.get_consumers(b5)
)"));
  EXPECT_EQ(ToText(Simplified(trace)), R"(b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=0, decision=[3, 4])
sch.split(l1, factors=[v4, v5])
l6, l7, l8, l9 = sch.get_loops(b0)
sch.parallel(l6)
)");
}

TEST(TraceEdits, MutationChangesOneDecision) {
  const PrimFunc workload = Matmul(12, 16, 8);
  Schedule s(workload);
  const std::vector<LoopRef> l = Get(GetLoops(s, Get(GetBlock(s, "C"))));
  const std::vector<ValueRef> tile = Get(SamplePerfectTile(s, l[0], 2, 4, {3, 4}));
  Get(Split(s, l[0], {tile[0], tile[1]}));
  const ValueRef lanes = Get(SampleCategorical(s, {4, 8, 16}, {}, 0));
  Get(Split(s, l[1], {Value(), lanes}));
  Random random(3);
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const Trace other = MutateDecision(s.trace(), workload, random).value();
    int differ = 0;
    for (size_t k = 0; k < other.steps.size(); ++k) differ += !SameStep(other.steps[k], s.trace().steps[k]);
    EXPECT_EQ(differ, 1);
    EXPECT_TRUE(Replay(other, workload).ok()) << ToText(other);
    seen.insert(ToText(other));
  }
  EXPECT_EQ(seen.size(), 1u + 2u);  // [6, 2] (the 3 of [1, 12] would pass 4); two other candidates
  EXPECT_FALSE(MutateDecision(Trace(), workload, random).has_value());
}

// Under the vectorized loop no block may move.
TEST(TraceEdits, MutationMovesABlockToLegalPlacesAlone) {
  const PrimFunc workload = TwoElementwise(3, 8);
  Schedule s(workload);
  const std::vector<LoopRef> loops = Get(GetLoops(s, Get(GetBlock(s, "C"))));
  const std::vector<LoopRef> tiles = Get(Split(s, loops[1], {2, 4}));
  Do(Vectorize(s, tiles[1]));
  const BlockRef b = Get(GetBlock(s, "B"));
  Do(ComputeAt(s, b, Get(SampleComputeLocation(s, b, -1))));
  Random random(3);
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const Trace other = MutateDecision(s.trace(), workload, random).value();
    EXPECT_TRUE(Replay(other, workload).ok()) << ToText(other);
    seen.insert(ToText(other));
  }
  EXPECT_EQ(seen.size(), 2u);  // i and the outer part of j
}

// What the cache gives is what Replay gives: the trace, the program, the refusal.
TEST(ReplayCache, AgreesWithReplay) {
  int64_t refused = 0, mutants = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const SmallWorkload workload = PickWorkload(random);
    Trace trace = Played(seed, workload).trace();
    ReplayCache cache(workload.func, 1 + random.Below(40));
    for (int i = 0; i < 12; ++i) {
      const absl::StatusOr<Schedule> plain = Replay(trace, workload.func), cached = cache.Replay(trace);
      ASSERT_EQ(plain.status(), cached.status()) << ToText(trace);
      if (plain.ok()) {
        EXPECT_TRUE(plain->trace() == cached->trace()) << ToText(trace);
        EXPECT_TRUE(StructuralEqual(plain->func(), cached->func())) << ToText(trace);
      }
      refused += !plain.ok();
      std::optional<Trace> other =
          MutateDecision(plain.ok() ? trace : Played(seed, workload).trace(), workload.func, random);
      if (!other.has_value()) break;
      ++mutants;
      trace = *std::move(other);
    }
  }
  EXPECT_GT(mutants, 200);
  EXPECT_GT(refused, 10);
}

TEST(ReplayCache, RedoesOnlyWhatFollowsTheChange) {
  const PrimFunc workload = Matmul(12, 16, 8);
  Schedule s(workload);
  const ValueRef lanes = Get(SampleCategorical(s, {4, 8, 16}, {}, 0));  // made first, read last
  const BlockRef c = Get(GetBlock(s, "C"));
  for (int i = 0; i < 20; ++i) Do(Annotate(s, c, "round", int64_t{i}));
  Get(Split(s, Get(GetLoops(s, c))[1], {Value(), lanes}));
  ReplayCache cache(workload);
  Get(cache.Replay(s.trace()));
  const int64_t whole = cache.figures().steps_done;
  EXPECT_EQ(whole, static_cast<int64_t>(s.trace().steps.size()));
  const Schedule other = Get(cache.Replay(WithDecision(s.trace(), 0, {2})));
  EXPECT_EQ(cache.figures().steps_done - whole, 1);  // the split alone
  EXPECT_EQ(Get(other.Evaluate(lanes)), 16);
  EXPECT_TRUE(Says(cache.Replay(WithDecision(s.trace(), 0, {3})), "sample_categorical: decision 3 of 3 candidates"));
}

}  // namespace
}  // namespace hone::testing
