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
#include "tests/tuner/space/sketch_start.h"
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
using testing::SketchOptions;
using testing::SketchStart;

PrimFunc Larger(const std::string& name) {
  for (const testing::SmallWorkload& workload : testing::LargerWorkloads()) {
    if (workload.name == name) return workload.func;
  }
  ADD_FAILURE() << "no workload " << name;
  return {};
}

std::vector<std::string> NamesOf(const PrimFunc& func, int threads = 2) {
  const auto generators = Generators(func, SketchOptions(threads));
  EXPECT_TRUE(generators.ok()) << generators.status();
  std::vector<std::string> names;
  for (const auto& generator : *generators) {
    if (generator->name().starts_with("sketch:")) names.push_back(generator->name());
  }
  return names;
}

// The program of a sketch with the choice that its draft likes best.
PrimFunc BestOf(const PrimFunc& func, const std::string& name, int threads = 2) {
  const auto generators = Generators(func, SketchOptions(threads));
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
  const auto generators = Generators(func, SketchOptions());
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

TEST(PackRule, TakesAConstantThatMovesWithTheVectors) {
  const SketchStart start(testing::DenseRelu(8, 64, 16));
  const std::vector<Sketch> offers = start.Offer(MakePackRule(), "C");
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].at(start.info.Find("C")).panels.size(), 1u);
  EXPECT_THAT(offers[0].choices, ElementsAre("pack(C.B)"));
}

TEST(PackRule, LeavesWhatNoRowsShareAndBlocksWithoutTiles) {
  EXPECT_TRUE(SketchStart(testing::Matmul(1, 64, 16)).Offer(MakePackRule(), "C").empty()) << "B is read once";
  EXPECT_TRUE(SketchStart(testing::TwoElementwise(8, 64)).Offer(MakePackRule(), "B").empty());
}

TEST(PackRule, AsksTheTileWhetherToCopyAVariableOperandThatLiesRight) {
  const PrimFunc func = testing::Matmul(48, 64, 16);
  const SketchStart start(func);
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
  const SketchStart start(func);
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
  const SketchStart start(Larger("long_dense_relu"));
  const std::vector<Sketch> offers = start.Offer(MakeCutRule(), "C");
  ASSERT_EQ(offers.size(), 1u) << "how many blocks, one among them, is a size and not a shape";
  EXPECT_EQ(offers[0].at(0).cut, ReductionCut::kBlocks);
  EXPECT_EQ(start.Offer(MakePackRule(), "D").size(), 0u);
}

TEST(CutRule, RunsVectorsAlongKWhereTheOperandsLieSo) {
  const SketchStart start(Larger("scores"));
  const std::vector<Sketch> offers = start.Offer(MakeCutRule(), "batch_matmul");
  ASSERT_EQ(offers.size(), 1u) << "as it is, an operand would be gathered";
  EXPECT_EQ(offers[0].at(0).cut, ReductionCut::kLanes);
}

TEST(CutRule, LeavesShortReductions) {
  for (const Sketch& offer : SketchStart(testing::DenseRelu(8, 64, 16)).Offer(MakeCutRule(), "C")) {
    EXPECT_EQ(offer.at(0).cut, ReductionCut::kNone);
  }
}

TEST(FuseConsumerRule, TakesTheOnlyReaderThatReadsInPlace) {
  const SketchStart start(testing::DenseRelu(8, 64, 16));
  const std::vector<Sketch> offers = start.Offer(MakeFuseConsumerRule(), "C");
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].at(start.info.Find("C")).epilogue, start.info.Find("D"));
  EXPECT_EQ(offers[0].at(start.info.Find("D")).fate, SketchBlock::Fate::kTaken);
  EXPECT_TRUE(SketchStart(testing::Matmul(8, 64, 16)).Offer(MakeFuseConsumerRule(), "C").empty()) << "nobody reads it";
  EXPECT_TRUE(SketchStart(testing::Softmax(8, 64)).Offer(MakeFuseConsumerRule(), "sum").empty()) << "it is not tiled";
}

// ---- Inside

// The sketch that computes the depthwise convolution in the pieces of the other.
std::unique_ptr<Generator> InsideGenerator(const PrimFunc& func) {
  auto generators = Generators(func, SketchOptions());
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

Var OutermostLoop(Schedule& schedule, const std::string& name) {
  const absl::StatusOr<BlockRef> block = GetBlock(schedule, name);
  EXPECT_TRUE(block.ok()) << block.status();
  return (*schedule.FindLoop(GetLoops(schedule, *block)->front()))->var;
}

TEST(InsideRule, TakesTheRowsBetweenTwoProducts) {
  for (const std::string name : {"masked_attention", "attention_of_odd_rows", "attention_of_joined_heads"}) {
    const auto inside = InsideGenerator(Larger(name));
    ASSERT_NE(inside, nullptr) << name;
    const absl::StatusOr<Choice> best = BestByDraft(*inside);
    ASSERT_TRUE(best.ok()) << name << ": " << best.status();
    absl::StatusOr<Schedule> schedule = inside->Build(*best);
    ASSERT_TRUE(schedule.ok()) << name << ": " << schedule.status();
    const bool joined = name == "attention_of_joined_heads";
    const Var pieces = OutermostLoop(*schedule, joined ? "mix" : "attention");
    for (const std::string block : {"max", "exp", "sum"}) {
      const std::string row = absl::StrCat(joined ? "weights_" : "attention_softmax_", block);
      EXPECT_EQ(OutermostLoop(*schedule, row), pieces) << name << ": " << row;
    }
    EXPECT_EQ(OutermostLoop(*schedule, joined ? "scores" : "attention_scores"), pieces) << name;
  }
  EXPECT_THAT(NamesOf(Larger("masked_attention")), Contains(Not(HasSubstr("inside"))));  // as three nests, too
}

TEST(TileRule, GoesByTheReadsOfTheBlock) {
  EXPECT_EQ(SketchStart(testing::Matmul(8, 64, 16)).Offer(MakeTileRule(), "C").size(), 1u);
  EXPECT_TRUE(SketchStart(testing::Softmax(8, 64)).Offer(MakeTileRule(), "sum").empty())
      << "nothing lies along its results";
  EXPECT_TRUE(SketchStart(testing::TwoElementwise(8, 64)).Offer(MakeTileRule(), "B").empty()) << "it does not reduce";
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

// Two panels half as wide as the tile, for few rows of cold constants alone.
TEST(TileRule, ReadsPanelsSideBySideForFewRows) {
  const std::string name = "sketch:pack(C.B),tile(C)";
  const auto layout_of = [&](int64_t rows, bool cold, int64_t streams) {
    PrimFunc func = testing::DenseRelu(rows, 64, 512);
    if (cold) func.attrs[kColdConstants] = int64_t{1};
    const auto generators = Generators(func, SketchOptions());
    for (const auto& generator : *generators) {
      if (generator->name() != name) continue;
      const auto choice = FitChoice(*generator, {name, {}, {32, streams}, {"C.v_n.inner", "C.streams"}});
      return choice.has_value() ? generator->ConstantLayout(*choice) : "none fits";
    }
    return std::string("no sketch");
  };
  EXPECT_THAT(layout_of(2, true, 1), HasSubstr("B/32"));
  EXPECT_THAT(layout_of(2, true, 2), HasSubstr("B/16"));
  EXPECT_THAT(layout_of(2, false, 2), HasSubstr("B/32")) << "they are in a cache";
  EXPECT_THAT(layout_of(64, true, 2), HasSubstr("B/32")) << "the products take longer than the panels";
}

// A variable with one iteration in the tile has no loop there that k could be taken for.
TEST(TileRule, UnrollsTheReductionOfLowTiles) {
  const PrimFunc func = testing::DenseRelu(8, 64, 48);
  const auto generators = Generators(func, SketchOptions());
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
  const SketchStart start(testing::Softmax(8, 64));
  const std::vector<Sketch> offers = start.Offer(MakeRowsRule(), "softmax");
  ASSERT_EQ(offers.size(), 2u);
  for (const SketchBlock& block : offers[0].blocks) EXPECT_EQ(block.fate, SketchBlock::Fate::kTaken);
  EXPECT_TRUE(start.Offer(MakeRowsRule(), "max").empty()) << "a reduction leads no rows";
  EXPECT_TRUE(SketchStart(testing::ThreeStages(8, 8)).Offer(MakeRowsRule(), "out").empty()) << "nothing reduces";
  EXPECT_TRUE(SketchStart(testing::Softmax(1, 64)).Offer(MakeRowsRule(), "softmax").empty()) << "one row is no loop";
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
  EXPECT_EQ(SketchStart(Larger("long_sum")).Offer(MakePiecesRule(), "sum").size(), 2u);
  EXPECT_TRUE(SketchStart(Larger("long_sum"), 1).Offer(MakePiecesRule(), "sum").empty()) << "one thread";
  EXPECT_TRUE(SketchStart(testing::Softmax(8, 64)).Offer(MakePiecesRule(), "sum").empty()) << "short, and rows enough";
  const PrimFunc pieces = BestOf(Larger("long_sum"), "sketch:pieces(sum)");
  EXPECT_EQ(LoopsOfKind(pieces, ForKind::kParallel), 1);
}

TEST(LocateRule, IsForWhatATileAloneReads) {
  const SketchStart start(testing::ConvBiasResidualRelu({9, 9, 4, 32}));
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
  const auto generators = Generators(Larger("padded_depthwise"), SketchOptions());
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
  const SketchStart start(testing::Softmax(8, 64));
  for (const char* block : {"max", "sum", "softmax"})
    EXPECT_EQ(start.Offer(MakeOwnNestRule(), block).size(), 1u) << block;
}

TEST(OwnNestRule, UsesUpLinesThatLieAcrossTheVector) {
  const auto across = [](const PrimFunc& func) {
    const auto generators = Generators(func, SketchOptions());
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
  const absl::StatusOr<Trace> trace = DefaultTrace(large, SketchOptions());
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(ToText(*trace), HasSubstr("reorder"));
}

TEST(ParallelRule, IsForTilesAndThreads) {
  const SketchStart two(testing::Matmul(8, 64, 16)), one(testing::Matmul(8, 64, 16), 1);
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
  const auto generators = Generators(testing::ConvBiasResidualRelu({9, 9, 4, 32}), SketchOptions());
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
  const auto generators = Generators(testing::Matmul(64, 256, 64), SketchOptions());
  ASSERT_TRUE(generators.ok());
  const Generator& generator = *(*generators)[0];
  Choice most;
  for (const Knob& knob : generator.knobs()) most.push_back(static_cast<int>(knob.candidates.size()) - 1);
  EXPECT_FALSE(generator.Draft(most).has_value()) << "no machine has so many registers";
}

}  // namespace
}  // namespace hone
