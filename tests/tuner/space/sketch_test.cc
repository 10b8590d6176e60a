// Each rule alone: where it applies, where it does not, and what the programs it leads to look like.
#include "tuner/space/sketches/sketch.h"
#include "compiler/schedule/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/te/te.h"
#include "compiler/text/text.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/tuner/space/extra_workloads.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;

SpaceOptions Options(int threads = 2) { return {*ParseTarget("cpu:x86-64-v4"), threads, NumericLevel::kStrict}; }

PrimFunc Larger(const std::string& name) {
  for (const testing::SmallWorkload& workload : testing::LargerWorkloads()) {
    if (workload.name == name) return workload.func;
  }
  ADD_FAILURE() << "no workload " << name;
  return {};
}

// A workload with the sketch that nothing was decided about.
struct Start {
  explicit Start(const PrimFunc& func, int threads = 2)
      : info(*AnalyzeWorkload(func)),
        fusion(info),
        context{&info, &fusion, Options().target, UsualMachine(Options().target), threads} {
    sketch.blocks.resize(info.blocks.size());
  }
  std::vector<Sketch> Offer(const std::unique_ptr<SketchRule>& rule, const std::string& block) const {
    const int index = info.Find(block);
    EXPECT_GE(index, 0) << block;
    return rule->Offer(context, sketch, index);
  }
  WorkloadInfo info;
  BlockFusion fusion;
  SketchContext context;
  Sketch sketch;
};

std::vector<std::string> NamesOf(const PrimFunc& func, int threads = 2) {
  const auto generators = Generators(func, Options(threads));
  EXPECT_TRUE(generators.ok()) << generators.status();
  std::vector<std::string> names;
  for (const auto& generator : *generators) {
    if (generator->name().starts_with("sketch:")) names.push_back(generator->name());
  }
  return names;
}

constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8), kInt16 = DType::Int(16);

// Two operands that are parts of one tensor stay two: the one whose elements are apart is worth a copy.
TEST(BlockFusion, OperandsOfOneTensorStayApart) {
  const te::Tensor both = te::Placeholder({7, 4, 37}, kFloat32, "qk");
  const te::Tensor keys = topi::StridedSlice(both, {2}, {4}, {1}, {1}, "keys"),
                   queries = topi::StridedSlice(both, {0}, {2}, {1}, {1}, "queries");
  const te::Tensor scores = topi::BatchMatmulInOrder(queries, {1, 0, 2}, keys, {1, 2, 0}, {0, 1, 2});
  const Start start(te::CreatePrimFunc({both}, {scores}, "main"));
  EXPECT_TRUE(start.fusion.IsInlined(start.info.Find("queries")));
  EXPECT_FALSE(start.fusion.IsInlined(start.info.Find("keys")));
}

// An instruction takes operands of the type that they have in memory.
TEST(BlockFusion, ConversionsStayOutsideOfSums) {
  const te::Tensor bytes = te::Placeholder({9, 16}, kUInt8, "a"), b = te::Placeholder({16, 64}, kInt16, "b");
  const te::Tensor wide = topi::Cast(bytes, kInt16, "wide");
  const PrimFunc func = te::CreatePrimFunc({bytes, b}, {topi::Dense(wide, b)}, "main");
  const Start start(func);
  EXPECT_FALSE(start.fusion.IsInlined(start.info.Find("wide")));
  const Trace trace = *DefaultTrace(func, {*ParseTarget("cpu:x86-64-v3"), 2});
  EXPECT_THAT(OriginOf(trace)->generator, HasSubstr("dot2_s16s16_s32(dense)"));
}

// The program of a sketch with the choice that its draft likes best.
PrimFunc BestOf(const PrimFunc& func, const std::string& name, int threads = 2) {
  const auto generators = Generators(func, Options(threads));
  for (const auto& generator : *generators) {
    if (generator->name() != name) continue;
    const absl::StatusOr<Schedule> schedule = generator->Build(*BestByDraft(*generator));
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return schedule->func();
  }
  ADD_FAILURE() << "no sketch " << name;
  return func;
}

// The program of a sketch with one knob set, the others as the draft likes them then.
PrimFunc ProgramWith(const PrimFunc& func, const std::string& name, const std::string& knob, int64_t value) {
  const auto generators = Generators(func, Options());
  for (const auto& generator : *generators) {
    if (generator->name() != name) continue;
    const std::optional<Choice> choice = FitChoice(*generator, {name, {}, {value}, {knob}});
    EXPECT_TRUE(choice.has_value());
    const absl::StatusOr<Schedule> schedule = generator->Build(*choice);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return schedule->func();
  }
  ADD_FAILURE() << "no sketch " << name;
  return func;
}

// The blocks that copy into panels inside the nest.
std::vector<std::string> CopiesIn(const PrimFunc& func) {
  std::vector<std::string> found;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize != nullptr && realize->block.name.ends_with("_pack")) found.push_back(realize->block.name);
    return true;
  });
  return found;
}

int LoopsOfKind(const PrimFunc& func, ForKind kind) {
  int count = 0;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    count += loop != nullptr && loop->kind == kind ? 1 : 0;
    return true;
  });
  return count;
}

TEST(SketchRules, AreAskedInThisOrder) {
  std::vector<std::string> names;
  for (const auto& rule : SketchRules()) names.push_back(rule->name());
  EXPECT_THAT(names, ElementsAre("dot", "pack", "cut", "fuse_consumer", "blocks", "inside", "tile", "forms", "rows",
                                 "pieces", "locate", "own_nest", "parallel"));
}

// ---- Dot

struct DotCase {
  const char* name;
  const char* target;
  DType left, right;
  int64_t n, k;
  const char* intrinsic;  // "": none
  int64_t lanes;
};
class DotRuleTest : public ::testing::TestWithParam<DotCase> {};
TEST_P(DotRuleTest, TakesTheInstructionThatAddsMost) {
  const DotCase& c = GetParam();
  const te::Tensor a = te::Placeholder({9, c.k}, c.left, "a"), b = te::Placeholder({c.k, c.n}, c.right, "b");
  Start start(te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main"));
  start.context.target = *ParseTarget(c.target);
  const std::vector<Sketch> offers = start.Offer(MakeDotRule(), "dense");
  if (*c.intrinsic == '\0') {
    EXPECT_TRUE(offers.empty());
    return;
  }
  ASSERT_EQ(offers.size(), 1u);
  const SketchBlock& block = offers[0].blocks[0];
  ASSERT_TRUE(block.dot.has_value());
  EXPECT_EQ(block.dot->intrinsic->name, c.intrinsic);
  EXPECT_EQ(block.dot->lanes, c.lanes);
  EXPECT_THAT(block.panels, ElementsAre(block.dot_operand));
  EXPECT_EQ(start.info.blocks[0].reads[static_cast<size_t>(block.dot_operand)].buffer.name(), "b");
}
INSTANTIATE_TEST_SUITE_P(
    Cases, DotRuleTest,
    ::testing::Values(
        DotCase{"Vnni", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 16},
        DotCase{"NarrowVectorsWhereTheyDivide", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 40, 16, "dot4_u8s8_s32", 8},
        DotCase{"PairsOfSigned", "cpu:x86-64-v4+avx512vnni", kInt8, kInt8, 64, 16, "dot2_s8s8_s32", 16},
        DotCase{"PairsOnAvx512", "cpu:x86-64-v4", kUInt8, kInt8, 64, 16, "dot2_u8s8_s32", 16},
        DotCase{"PairsOnAvx2", "cpu:x86-64-v3", kUInt8, kInt8, 64, 16, "dot2_u8s8_s32", 8},
        DotCase{"VnniOnAvx2", "cpu:x86-64-v3+avxvnni", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 8},
        DotCase{"RowsThatFillNoTile", "cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8", kUInt8, kInt8, 64, 16,
                "dot4_u8s8_s32", 16},
        DotCase{"Tiles", "cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8", kUInt8, kInt8, 64, 64, "mma4_u8s8_s32", 16},
        DotCase{"Sdot", "cpu:cortex-a76", kInt8, kInt8, 64, 16, "dot4_s8s8_s32", 4},
        DotCase{"SdotOfNeoverseN1", "cpu:neoverse-n1", kInt8, kInt8, 64, 16, "dot4_s8s8_s32", 4},
        DotCase{"NoUsdot", "cpu:cortex-a76", kUInt8, kInt8, 64, 16, "", 0},  // graph/passes/int8_products.cc
        DotCase{"Usdot", "cpu:neoverse-n2", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 4},
        DotCase{"NoInstruction", "cpu:cortex-a72", kInt8, kInt8, 64, 16, "", 0},
        DotCase{"NoWholeGroups", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 64, 15, "", 0},
        DotCase{"NoWholeVectors", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 37, 16, "", 0},
        DotCase{"OtherTypes", "cpu:x86-64-v4+avx512vnni", kFloat32, kFloat32, 64, 16, "", 0}),
    [](const auto& info) { return std::string(info.param.name); });

// No candidate can be faster than the lower bound, which goes by operations in the time of float32's.
TEST(DotRule, FasterProductsAreFewerOperations) {
  const auto least = [](const char* target, DType left = kUInt8) {
    const te::Tensor a = te::Placeholder({64, 256}, left, "a"), b = te::Placeholder({256, 64}, kInt8, "b");
    return *LeastFlop(te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main"), {*ParseTarget(target), 1});
  };
  const double plain = least("cpu:cortex-a72");
  EXPECT_EQ(plain, 2.0 * 64 * 64 * 256);
  EXPECT_EQ(least("cpu:cortex-a76"), plain) << "no instruction for bytes of both signs";
  EXPECT_EQ(least("cpu:cortex-a76", kInt8), plain / 4);
  EXPECT_EQ(least("cpu:x86-64-v4+avx512vnni"), plain / 4);
  EXPECT_EQ(least("cpu:x86-64-v3"), plain / 2) << "pairs; their sums may run beside them";
  EXPECT_LT(least("cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8"), plain / 16);
}

TEST(DotRule, TakesRowsThatBeginAnywhere) {  // pixels of an image that is read as a matrix
  const te::Tensor image = te::Placeholder({3, 5, 16}, kUInt8, "a"), b = te::Placeholder({16, 64}, kInt8, "b");
  const te::Tensor rows = topi::Reshape(image, {15, 16}, "rows");
  const PrimFunc func = te::CreatePrimFunc({image, b}, {topi::Dense(rows, b)}, "main");
  const Trace trace = *DefaultTrace(func, {*ParseTarget("cpu:x86-64-v3"), 2});
  EXPECT_THAT(OriginOf(trace)->generator, HasSubstr("dot2_u8s8_s32(dense)"));
}

TEST(DotRule, TakesInt8WhereMinimalFilteringWouldDo) {  // as graphs have it where there is no usdot
  const te::Tensor x = te::Placeholder({1, 14, 14, 32}, kInt8, "x"), w = te::Placeholder({3, 3, 32, 64}, kInt8, "w");
  const te::Tensor y = topi::Conv(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, -128}, "conv2d");
  const PrimFunc func = te::CreatePrimFunc({x, w}, {y}, "main", {{"constants", std::vector<int64_t>{1}}});
  for (const char* cpu : {"cpu:cortex-a76", "cpu:cortex-a78", "cpu:neoverse-n1"}) {
    EXPECT_THAT(OriginOf(*DefaultTrace(func, {*ParseTarget(cpu), 2}))->generator, HasSubstr("dot4_s8s8_s32(conv2d)"));
  }
}

TEST(DotRule, TakesSmallMatricesOfWholeRows) {
  const auto generator = [](int64_t rows, DType left, DType right) {
    const te::Tensor a = te::Placeholder({rows, 32}, left, "a"), b = te::Placeholder({32, 64}, right, "b");
    const PrimFunc func = te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main");
    return OriginOf(*DefaultTrace(func, {*ParseTarget("cpu:neoverse-n2"), 2}))->generator;
  };
  EXPECT_THAT(generator(12, kUInt8, kInt8), HasSubstr("mma8_u8s8_s32(dense)"));
  EXPECT_THAT(generator(12, kInt8, kInt8), HasSubstr("mma8_s8s8_s32(dense)"));
  EXPECT_THAT(generator(9, kUInt8, kInt8), HasSubstr("dot4_u8s8_s32(dense)"));
}

TEST(DotRule, LeavesTransposedRowsAlone) {  // elements of a group are apart
  const te::Tensor a = te::Placeholder({2, 16, 9}, kUInt8, "a"), b = te::Placeholder({2, 16, 64}, kInt8, "b");
  Start start(te::CreatePrimFunc({a, b}, {topi::BatchMatmul(a, b, true)}, "main"));
  start.context.target = *ParseTarget("cpu:x86-64-v4+avx512vnni");
  EXPECT_TRUE(start.Offer(MakeDotRule(), "batch_matmul").empty());
}

TEST(PackRule, TakesAConstantThatMovesWithTheVectors) {
  const Start start(testing::DenseRelu(8, 64, 16));
  const std::vector<Sketch> offers = start.Offer(MakePackRule(), "C");
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].at(start.info.Find("C")).panels.size(), 1u);
  EXPECT_THAT(offers[0].choices, ElementsAre("pack(C.B)"));
}

TEST(PackRule, LeavesWhatNoRowsShareAndBlocksWithoutTiles) {
  EXPECT_TRUE(Start(testing::Matmul(1, 64, 16)).Offer(MakePackRule(), "C").empty()) << "B is read once";
  EXPECT_TRUE(Start(testing::TwoElementwise(8, 64)).Offer(MakePackRule(), "B").empty());
}

TEST(PackRule, AsksTheTileWhetherToCopyAVariableOperandThatLiesRight) {
  const PrimFunc func = testing::Matmul(48, 64, 16);
  const Start start(func);
  const std::vector<Sketch> offers = start.Offer(MakePackRule(), "C");
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_THAT(offers[0].at(0).panels, ElementsAre(1)) << "B moves with the vectors";
  EXPECT_TRUE(offers[0].choices.empty()) << "the same sketch: a knob says whether";
  const int64_t none = static_cast<int64_t>(Packing::kNone), block = static_cast<int64_t>(Packing::kBlock);
  EXPECT_THAT(CopiesIn(ProgramWith(func, "sketch:tile(C)", "C.packing1", none)), ElementsAre());
  EXPECT_THAT(CopiesIn(ProgramWith(func, "sketch:tile(C)", "C.packing1", block)), ElementsAre("B_pack"));
}

TEST(PackRule, PacksAVariableOperandThatLiesAcross) {
  const PrimFunc func = Larger("scores");
  const Start start(func);
  const std::vector<Sketch> offers = start.Offer(MakePackRule(), "batch_matmul");
  ASSERT_EQ(offers.size(), 2u) << "packed, and as it is";
  EXPECT_THAT(offers[0].choices, ElementsAre("pack(batch_matmul.k)"));
  EXPECT_TRUE(offers[1].at(start.info.Find("batch_matmul")).panels.empty());
  const int64_t before = static_cast<int64_t>(Packing::kBefore), block = static_cast<int64_t>(Packing::kBlock);
  const std::string name = "sketch:pack(batch_matmul.k),tile(batch_matmul)";
  EXPECT_THAT(CopiesIn(ProgramWith(func, name, "batch_matmul.packing1", before)), ElementsAre());
  EXPECT_THAT(CopiesIn(ProgramWith(func, name, "batch_matmul.packing1", block)), ElementsAre("k_pack"));
}

TEST(CutRule, CutsALongReductionIntoBlocks) {
  const Start start(Larger("long_dense_relu"));
  const std::vector<Sketch> offers = start.Offer(MakeCutRule(), "C");
  ASSERT_EQ(offers.size(), 1u) << "how many blocks, one among them, is a size and not a shape";
  EXPECT_EQ(offers[0].at(0).cut, ReductionCut::kBlocks);
  EXPECT_EQ(start.Offer(MakePackRule(), "D").size(), 0u);
}

TEST(CutRule, RunsVectorsAlongKWhereTheOperandsLieSo) {
  const Start start(Larger("scores"));
  const std::vector<Sketch> offers = start.Offer(MakeCutRule(), "batch_matmul");
  ASSERT_EQ(offers.size(), 1u) << "as it is, an operand would be gathered";
  EXPECT_EQ(offers[0].at(0).cut, ReductionCut::kLanes);
}

TEST(CutRule, LeavesShortReductions) {
  for (const Sketch& offer : Start(testing::DenseRelu(8, 64, 16)).Offer(MakeCutRule(), "C")) {
    EXPECT_EQ(offer.at(0).cut, ReductionCut::kNone);
  }
}

TEST(FuseConsumerRule, TakesTheOnlyReaderThatReadsInPlace) {
  const Start start(testing::DenseRelu(8, 64, 16));
  const std::vector<Sketch> offers = start.Offer(MakeFuseConsumerRule(), "C");
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].at(start.info.Find("C")).epilogue, start.info.Find("D"));
  EXPECT_EQ(offers[0].at(start.info.Find("D")).fate, SketchBlock::Fate::kTaken);
  EXPECT_TRUE(Start(testing::Matmul(8, 64, 16)).Offer(MakeFuseConsumerRule(), "C").empty()) << "nobody reads it";
  EXPECT_TRUE(Start(testing::Softmax(8, 64)).Offer(MakeFuseConsumerRule(), "sum").empty()) << "it is not tiled";
}

// ---- Inside

// The sketch that computes the depthwise convolution in the pieces of the other.
std::unique_ptr<Generator> InsideGenerator(const PrimFunc& func) {
  auto generators = Generators(func, Options());
  EXPECT_TRUE(generators.ok()) << generators.status();
  for (auto& generator : *generators) {
    if (generator->name().starts_with("sketch:") && generator->name().find("inside(") != std::string::npos)
      return std::move(generator);
  }
  return nullptr;
}

TEST(InsideRule, TakesAProductThatAnotherAloneReads) {
  const std::vector<std::string> names = NamesOf(Larger("depthwise_separable"));
  EXPECT_THAT(names, Contains(HasSubstr("inside(depthwise)")));
  EXPECT_THAT(names, Contains(Not(HasSubstr("inside"))));  // as two nests, too
  EXPECT_THAT(NamesOf(Larger("depthwise_separable"), 1), Each(Not(HasSubstr("inside")))) << "one thread has no pieces";
  EXPECT_THAT(NamesOf(Larger("padded_depthwise")), Each(Not(HasSubstr("inside"))));
}

TEST(InsideRule, MakesOneParallelLoopOfTwo) {
  const PrimFunc func = Larger("depthwise_separable");
  const auto inside = InsideGenerator(func);
  ASSERT_NE(inside, nullptr);
  const absl::StatusOr<Choice> best = BestByDraft(*inside);
  ASSERT_TRUE(best.ok()) << best.status();
  const absl::StatusOr<Schedule> schedule = inside->Build(*best);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(LoopsOfKind(schedule->func(), ForKind::kParallel), 1);
}

TEST(InsideRule, TakesPiecesThatAreAllAlike) {
  const PrimFunc func = Larger("depthwise_separable");  // 6 rows
  const auto inside = InsideGenerator(func);
  ASSERT_NE(inside, nullptr);
  std::set<int64_t> rows, columns;
  const std::vector<Knob>& knobs = inside->knobs();
  Random random(7, 0);
  for (int i = 0; i < 50; ++i) {
    const std::optional<Choice> choice = testing::LegalChoice(*inside, random);
    ASSERT_TRUE(choice.has_value());
    for (size_t k = 0; k < knobs.size(); ++k) {
      const int64_t value = knobs[k].candidates[static_cast<size_t>((*choice)[k])];
      if (knobs[k].name == "dense.v_m.pieces") rows.insert(value);
      if (knobs[k].name == "dense.v_n.pieces") columns.insert(value);
    }
  }
  EXPECT_THAT(rows, IsSubsetOf({2, 3, 6, 12, 24, 48})) << "whole rows of 8, or equal parts of one";
  EXPECT_THAT(columns, IsEmpty()) << "it would be computed again for every piece of channels";
}

TEST(TileRule, GoesByTheReadsOfTheBlock) {
  EXPECT_EQ(Start(testing::Matmul(8, 64, 16)).Offer(MakeTileRule(), "C").size(), 1u);
  EXPECT_TRUE(Start(testing::Softmax(8, 64)).Offer(MakeTileRule(), "sum").empty()) << "nothing lies along its results";
  EXPECT_TRUE(Start(testing::TwoElementwise(8, 64)).Offer(MakeTileRule(), "B").empty()) << "it does not reduce";
}

TEST(TileRule, AsksForColdConstantsAPanelAhead) {
  const std::string name = "sketch:pack(C.B),tile(C)";
  PrimFunc func = testing::DenseRelu(64, 256, 64);
  EXPECT_THAT(ToText(ProgramWith(func, name, "C.prefetch", 1)), Not(HasSubstr("T.prefetch"))) << "they are in a cache";
  func.attrs[kColdConstants] = int64_t{1};
  EXPECT_THAT(ToText(ProgramWith(func, name, "C.prefetch", 1)), HasSubstr("T.evaluate(T.prefetch(B["));
  EXPECT_THAT(ToText(ProgramWith(func, name, "C.prefetch", 0)), Not(HasSubstr("T.prefetch")));
}

// One row of results reads each panel once: what it asks for is further on in the same panel.
TEST(TileRule, AsksForColdConstantsAheadInAStream) {
  PrimFunc func = testing::DenseRelu(1, 64, 512);
  func.attrs[kColdConstants] = int64_t{1};
  EXPECT_THAT(ToText(ProgramWith(func, "sketch:pack(C.B),tile(C)", "C.prefetch", 1)),
              AllOf(HasSubstr("T.evaluate(T.prefetch(B["), HasSubstr("k_0 * ")));
}

// A variable with one iteration in the tile has no loop there that k could be taken for.
TEST(TileRule, UnrollsTheReductionOfLowTiles) {
  const PrimFunc func = testing::DenseRelu(8, 64, 48);
  const auto generators = Generators(func, Options());
  for (const auto& generator : *generators) {
    if (generator->name() != "sketch:pack(C.B),tile(C)") continue;
    const std::optional<Choice> choice =
        FitChoice(*generator, {generator->name(), {}, {1, 8}, {"C.v_i.inner", "C.unroll"}});
    ASSERT_TRUE(choice.has_value());
    const absl::StatusOr<Schedule> schedule = generator->Build(*choice);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_THAT(ToText(schedule->func()), HasSubstr("T.axis.reduce(48, k_0 * 8 + k_1)"));
  }
}

TEST(RowsRule, JoinsReductionsOfARowWithTheirReader) {
  const Start start(testing::Softmax(8, 64));
  const std::vector<Sketch> offers = start.Offer(MakeRowsRule(), "softmax");
  ASSERT_EQ(offers.size(), 2u);
  for (const SketchBlock& block : offers[0].blocks) EXPECT_EQ(block.fate, SketchBlock::Fate::kTaken);
  EXPECT_TRUE(start.Offer(MakeRowsRule(), "max").empty()) << "a reduction leads no rows";
  EXPECT_TRUE(Start(testing::ThreeStages(8, 8)).Offer(MakeRowsRule(), "out").empty()) << "nothing reduces";
  EXPECT_TRUE(Start(testing::Softmax(1, 64)).Offer(MakeRowsRule(), "softmax").empty()) << "one row is no loop";
}

TEST(RowsRule, LeavesOneParallelLoop) {
  const PrimFunc rows = BestOf(testing::Softmax(512, 256), "sketch:rows(softmax)");
  EXPECT_EQ(LoopsOfKind(rows, ForKind::kParallel), 1) << ToText(rows);
  EXPECT_GE(LoopsOfKind(rows, ForKind::kVectorized), 4) << ToText(rows);
  EXPECT_EQ(LoopsOfKind(BestOf(testing::Softmax(512, 256), "sketch:rows(softmax)", 1), ForKind::kParallel), 0);
}

// The sum takes the exponentials in the loop that makes them.
TEST(RowsRule, ComputesElementsWhereAReductionTakesThem) {
  const PrimFunc rows = BestOf(testing::Softmax(512, 1024), "sketch:rows(softmax)");
  const ProgramIndex index(rows.body);
  const int made = index.FindBlock("exp"), taken = index.FindBlock("sum_rf");
  ASSERT_GE(made, 0) << ToText(rows);
  ASSERT_GE(taken, 0) << ToText(rows);
  const std::vector<int> around = index.LoopsAbove(taken);
  EXPECT_EQ(std::ranges::count_if(around, [&](int loop) { return index.Contains(loop, made); }), 2)
      << "that over rows, and that over the steps of one:\n"
      << ToText(rows);
}

TEST(PiecesRule, CutsALongReductionToFewValues) {
  EXPECT_EQ(Start(Larger("long_sum")).Offer(MakePiecesRule(), "sum").size(), 2u);
  EXPECT_TRUE(Start(Larger("long_sum"), 1).Offer(MakePiecesRule(), "sum").empty()) << "one thread";
  EXPECT_TRUE(Start(testing::Softmax(8, 64)).Offer(MakePiecesRule(), "sum").empty()) << "short, and rows enough";
  const PrimFunc pieces = BestOf(Larger("long_sum"), "sketch:pieces(sum)");
  EXPECT_EQ(LoopsOfKind(pieces, ForKind::kParallel), 1);
}

TEST(LocateRule, IsForWhatATileAloneReads) {
  const Start start(testing::ConvBiasResidualRelu({9, 9, 4, 32}));
  EXPECT_TRUE(start.Offer(MakeLocateRule(), "pad").empty()) << "its reader is not tiled yet";
  const std::vector<Sketch> tiled = start.Offer(MakeTileRule(), "conv");
  ASSERT_EQ(tiled.size(), 1u);
  const std::vector<Sketch> located = MakeLocateRule()->Offer(start.context, tiled[0], start.info.Find("pad"));
  ASSERT_EQ(located.size(), 1u);
  EXPECT_EQ(located[0].at(start.info.Find("pad")).fate, SketchBlock::Fate::kTaken);
  ASSERT_FALSE(located[0].steps.back()->knobs().empty());
  EXPECT_EQ(located[0].steps.back()->knobs()[0].name, "pad.inside");
  EXPECT_THAT(located[0].steps.back()->knobs()[0].candidates, ElementsAre(0, 1, 2));
}

// A depthwise convolution reads vectors of its input: they are masked at the edges, and no padded copy is made.
TEST(LocateRule, PadsVectorsInTheTile) {
  const PrimFunc func = Larger("padded_depthwise");
  const auto blocks = [&](int64_t place) {
    std::vector<std::string> names;
    const PrimFunc program = ProgramWith(func, "sketch:tile(depthwise_conv2d)", "pad.inside", place);
    ForEachStmt(program.body, [&](const Stmt& stmt) {
      if (const BlockRealize* realize = stmt.As<BlockRealize>()) names.push_back(realize->block.name);
      return true;
    });
    return names;
  };
  EXPECT_THAT(blocks(0), Contains("pad"));
  EXPECT_THAT(blocks(1), Contains("pad"));
  EXPECT_THAT(blocks(2), Not(Contains("pad")));
}

// So does one of planes by every second element: two loads and a shuffle.
TEST(LocateRule, PadsVectorsOfEverySecondElementInTheTile) {
  const PrimFunc program =
      ProgramWith(Larger("padded_depthwise_of_planes"), "sketch:tile(depthwise_conv2d)", "pad.inside", 2);
  bool pads = false;
  ForEachStmt(program.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    pads = pads || (realize != nullptr && realize->block.name == "pad");
    return true;
  });
  EXPECT_FALSE(pads);
}

// Four rows of seven pixels with all taps in straight code: 28 results, and most of 54 vectors are read again.
TEST(LocateRule, MasksNoMoreVectorsThanRegistersHold) {
  const auto generators = Generators(Larger("padded_depthwise"), Options());
  ASSERT_TRUE(generators.ok());
  const auto is_it = [](const auto& generator) { return generator->name() == "sketch:tile(depthwise_conv2d)"; };
  const auto sketch = std::find_if(generators->begin(), generators->end(), is_it);
  ASSERT_NE(sketch, generators->end());
  const auto legal = [&](int64_t rows, int64_t pixels, int64_t place) {
    const std::map<std::string, int64_t> wanted = {{"depthwise_conv2d.v_oh.inner", rows},
                                                   {"depthwise_conv2d.v_ow.inner", pixels},
                                                   {"depthwise_conv2d.unroll", 3},
                                                   {"depthwise_conv2d.window", 1},
                                                   {"pad.inside", place}};
    std::vector<int64_t> values;
    for (const Knob& knob : (*sketch)->knobs()) {
      const auto found = wanted.find(knob.name);
      values.push_back(found == wanted.end() ? knob.candidates[0] : found->second);
    }
    return (*sketch)->Draft(ChoiceOf((*sketch)->knobs(), values)).has_value();
  };
  EXPECT_TRUE(legal(4, 7, 1));
  EXPECT_FALSE(legal(4, 7, 2));
  EXPECT_TRUE(legal(1, 7, 2));
}

TEST(OwnNestRule, TakesWhatIsLeft) {
  const Start start(testing::Softmax(8, 64));
  for (const char* block : {"max", "sum", "softmax"})
    EXPECT_EQ(start.Offer(MakeOwnNestRule(), block).size(), 1u) << block;
}

TEST(OwnNestRule, UsesUpLinesThatLieAcrossTheVector) {
  const auto across = [](const PrimFunc& func) {
    const auto generators = Generators(func, Options());
    for (const auto& generator : *generators) {
      for (const Knob& knob : generator->knobs()) {
        if (knob.name.ends_with(".across")) return knob.candidates;
      }
    }
    return std::vector<int64_t>();
  };
  EXPECT_THAT(across(Larger("wide_transpose")), ElementsAre(1, 16, 32));
  EXPECT_THAT(across(testing::TwoElementwise(70, 70)), ElementsAre()) << "nothing lies across";
  const te::Tensor x = te::Placeholder(te::Shape({3136, 256}), kFloat32, "x");
  const PrimFunc large = te::CreatePrimFunc({x}, {topi::Transpose(x, {1, 0})}, "main");
  const absl::StatusOr<Trace> trace = DefaultTrace(large, Options());
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(ToText(*trace), HasSubstr("reorder"));
}

TEST(ParallelRule, IsForTilesAndThreads) {
  const Start two(testing::Matmul(8, 64, 16)), one(testing::Matmul(8, 64, 16), 1);
  const std::vector<Sketch> tiled = two.Offer(MakeTileRule(), "C");
  EXPECT_EQ(MakeParallelRule()->Offer(two.context, tiled[0], 0).size(), 1u);
  EXPECT_TRUE(MakeParallelRule()->Offer(one.context, tiled[0], 0).empty());
  EXPECT_TRUE(two.Offer(MakeParallelRule(), "C").empty()) << "not tiled";
}

TEST(Sketches, OfAProduct) {
  EXPECT_THAT(NamesOf(testing::DenseRelu(8, 64, 16)), ElementsAre("sketch:pack(C.B),tile(C)"));
  EXPECT_THAT(NamesOf(Larger("long_dense_relu")), ElementsAre("sketch:pack(C.B),tile(C)"));
  EXPECT_THAT(NamesOf(Larger("scores")), Contains("sketch:k_lanes(batch_matmul),tile(batch_matmul)"));
}

TEST(Sketches, OfRowsAndElements) {
  EXPECT_THAT(NamesOf(testing::Softmax(7, 45)),
              ElementsAre("sketch:rows(softmax)", "sketch:rows(exp)", "sketch:nests"));
  EXPECT_THAT(NamesOf(testing::TwoElementwise(7, 13)), ElementsAre("sketch:nests")) << "B is inlined";
}

// The names are of blocks, never of operators: the same blocks under other names give the same sketches.
TEST(Sketches, GoByTheBlocksAlone) {
  std::string text = ToText(testing::ConvBiasResidualRelu({9, 9, 4, 32}));
  const auto rename = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  rename("conv", "mystery");
  const absl::StatusOr<PrimFunc> renamed = ParsePrimFunc(text);
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  const std::vector<std::string> before = NamesOf(testing::ConvBiasResidualRelu({9, 9, 4, 32})),
                                 after = NamesOf(*renamed);
  ASSERT_EQ(before.size(), after.size());
  for (const std::string& name : after) EXPECT_THAT(name, Not(HasSubstr("conv")));
}

TEST(Sketches, KnobsHaveNamesOfTheirOwnAndCandidates) {
  const auto generators = Generators(testing::ConvBiasResidualRelu({9, 9, 4, 32}), Options());
  ASSERT_TRUE(generators.ok());
  for (const auto& generator : *generators) {
    std::vector<std::string> names;
    for (const Knob& knob : generator->knobs()) {
      EXPECT_FALSE(knob.candidates.empty());
      EXPECT_THAT(names, Not(Contains(knob.name)));
      names.push_back(knob.name);
    }
    EXPECT_GE(names.size(), 5u);
  }
}

TEST(Sketches, RefuseAChoiceThatTheDraftRefuses) {
  const auto generators = Generators(testing::Matmul(64, 256, 64), Options());
  ASSERT_TRUE(generators.ok());
  const Generator& generator = *(*generators)[0];
  Choice most;
  for (const Knob& knob : generator.knobs()) most.push_back(static_cast<int>(knob.candidates.size()) - 1);
  EXPECT_FALSE(generator.Draft(most).has_value()) << "no machine has so many registers";
}

}  // namespace
}  // namespace hone
