// What the padding of a layout holds: the number a step gives, in every place that is the place of no element.
#include "compiler/schedule/analysis/pad_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "compiler/arith/analyzer.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/pack.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct PadConstantCase {
  const char* name;
  DType type;
  std::variant<int64_t, double> number;
  const char* text;  // of the constant; "": refused
  const char* error;
};
class PadConstants : public ::testing::TestWithParam<PadConstantCase> {};

TEST_P(PadConstants, AreOfTheTypeOrRefused) {
  const PadConstantCase& c = GetParam();
  const absl::StatusOr<Expr> constant = PadConstant(c.number, c.type, "here");
  if (*c.text == '\0') {
    EXPECT_TRUE(Says(constant, c.error));
    return;
  }
  EXPECT_EQ(ToText(Get(constant)), c.text);
  EXPECT_TRUE(constant->type() == c.type);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PadConstants,
    ::testing::Values(
        PadConstantCase{"IntegerAsFloat", kFloat32, int64_t{-3}, "T.float32(-3)", ""},
        PadConstantCase{"Float", kFloat32, 0.5, "T.float32(0.5)", ""},
        PadConstantCase{"Rounded", DType::Float(16), 1.0 / 3, "T.float16(0.33325195)", ""},
        PadConstantCase{"TooLargeForHalf", DType::Float(16), 1e6, "",
                        "here: pad_value is 1e+06, which float16 does not hold"},
        PadConstantCase{"InfinityAsFloat", kFloat32, -kInfinity, "T.float32(\"-inf\")", ""},
        PadConstantCase{"InfinityWhereThereIsNone", DType::Float8E4M3(), kInfinity, "",
                        "here: pad_value is inf, which float8_e4m3fn does not hold"},
        PadConstantCase{"NotANumber", DType::BFloat16(), kNotANumber, "T.bfloat16(\"nan\")", ""},
        PadConstantCase{"LeastInt8", DType::Int(8), int64_t{-128}, "T.int8(-128)", ""},
        PadConstantCase{"BelowInt8", DType::Int(8), int64_t{-129}, "",
                        "here: pad_value is -129, which int8 does not hold"},
        PadConstantCase{"NegativeUInt64", DType::UInt(64), int64_t{-1}, "",
                        "here: pad_value is -1, which uint64 does not hold"},
        PadConstantCase{"FloatAsInteger", kInt32, 2.0, "",
                        "here: pad_value is the floating-point number 2, the buffer's elements are int32"},
        PadConstantCase{"True", kBool, int64_t{1}, "T.bool(True)", ""},
        PadConstantCase{"TwoAsBool", kBool, int64_t{2}, "", "here: pad_value is 2, which bool does not hold"}),
    [](const auto& info) { return info.param.name; });

// An array of another pattern than any value that tests pad with.
NdArray UntouchedArray(const Buffer& buffer) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer.shape()) shape.push_back(*ConstantValue(extent));
  NdArray array(buffer.type(), shape);
  std::fill(array.data.begin(), array.data.end(), '\x55');
  return array;
}

// What the buffer that the block writes holds at the end: the program is run with it as one more output. It must be one
// of the root block's.
NdArray FinalContent(const Schedule& schedule, std::string_view block, uint64_t seed) {
  const Buffer buffer = schedule.index().block(schedule.index().FindBlock(block)).writes[0].buffer;
  PrimFunc seen = schedule.func();
  std::vector<NdArray> arguments = RandomArguments(seen, seed, InputKind::kInteger);
  arguments.push_back(UntouchedArray(buffer));
  seen.attrs["outputs"] = int64_t{seen.num_outputs() + 1};
  seen.params.push_back(buffer);
  BlockRealize root = *seen.body.As<BlockRealize>();
  HONE_CHECK(std::erase(root.block.allocs, buffer) == 1) << buffer.name() << " is no buffer of the root block";
  seen.body = Stmt::Make(std::move(root));
  Do(Interpret(seen, arguments, {.check_uninitialised = false}));
  return arguments.back();
}

// Calls back with the element and the place of each.
void ForEachPlace(const std::vector<int64_t>& shape, const std::vector<int64_t>& new_shape, const IndexMap& map,
                  const std::function<void(int64_t element, int64_t place)>& visit) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  for (int64_t element = 0; element < elements; ++element) {
    std::vector<Expr> indices(shape.size());
    for (size_t d = shape.size(), rest = static_cast<size_t>(element); d-- > 0; rest /= shape[d])
      indices[d] = IntConst(static_cast<int64_t>(rest) % shape[d]);
    const std::vector<Expr> mapped = map.Map(indices);
    int64_t place = 0;
    for (size_t d = 0; d < mapped.size(); ++d) place = place * new_shape[d] + *ConstantValue(Simplify(mapped[d]));
    visit(element, place);
  }
}

bool SameBytes(const NdArray& a, int64_t i, const NdArray& b, int64_t k) {
  const size_t bytes = static_cast<size_t>(a.dtype.bytes());
  return std::memcmp(a.data.data() + i * bytes, b.data.data() + k * bytes, bytes) == 0;
}

// "" where `laid_out` holds each element of `plain` at its place and the number everywhere else. At least one place
// must be padding.
std::string WrongPlace(const NdArray& plain, const NdArray& laid_out, const IndexMap& map, double number) {
  NdArray pad(plain.dtype, {1});
  pad.Set(0, number);
  std::set<int64_t> taken;
  std::string wrong;
  ForEachPlace(plain.shape, laid_out.shape, map, [&](int64_t element, int64_t place) {
    taken.insert(place);
    if (!SameBytes(plain, element, laid_out, place)) wrong = absl::StrCat("element ", element, " is not at ", place);
  });
  if (static_cast<int64_t>(taken.size()) == laid_out.NumElements()) return "there is no padding";
  for (int64_t place = 0; place < laid_out.NumElements(); ++place) {
    if (!taken.contains(place) && !SameBytes(laid_out, place, pad, 0))
      wrong = absl::StrCat("padding at ", place, " is ", laid_out.Get(place), ", not ", number);
  }
  return wrong;
}

bool HasBlock(const Schedule& schedule, std::string_view name) { return schedule.index().FindBlock(name) >= 0; }

// for i, j: B = A * 2 writes every element once: it goes over the padding too.
TEST(TransformLayoutPads, ByThePlainWriterItself) {
  const PrimFunc workload = TwoElementwise(3, 10);
  for (const char* text : {"lambda i, j: (j // 4, i, j % 4)", "lambda i, j: (i // 2, j, i % 2)",
                           "lambda i, j: (i // 2, j // 8, j % 8 ^ i % 2, i % 2)" /* a swizzle */}) {
    Schedule s(workload);
    const IndexMap map = Get(ParseIndexMap(text));
    Do(TransformLayout(s, Get(GetBlock(s, "B")), 0, BufferKind::kWrite, map, 7));
    EXPECT_FALSE(HasBlock(s, "B_padding"));
    EXPECT_EQ(WrongPlace(FinalContent(Schedule(workload), "B", 1), FinalContent(s, "B", 1), map, 7), "") << text;
    ExpectSound(s, workload);
  }
}

// Iterations of a reduction over the padding would add up what is not there: a block in front fills it.
TEST(TransformLayoutPads, InFrontOfAReduction) {
  const PrimFunc workload = DenseRelu(5, 10, 6);
  Schedule s(workload);
  const IndexMap map = Get(ParseIndexMap("lambda i, j: (j // 4, i // 2, i % 2, j % 4)"));
  Do(TransformLayout(s, Get(GetBlock(s, "D")), 0, BufferKind::kRead, map, -kInfinity));
  EXPECT_TRUE(HasBlock(s, "C_padding"));
  EXPECT_EQ(WrongPlace(FinalContent(Schedule(workload), "C", 1), FinalContent(s, "C", 1), map, -kInfinity), "");
  ExpectSound(s, workload);
}

TEST(TransformLayoutPads, WhereTheWriterIsSplitAndParallel) {
  const PrimFunc workload = TwoElementwise(3, 10);
  Schedule s(workload);
  const BlockRef b = Get(GetBlock(s, "B"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, b));
  Get(Split(s, loops[1], {-1, 4}));
  Do(Parallel(s, loops[0]));
  const IndexMap map = Get(ParseIndexMap("lambda i, j: (j // 4, i, j % 4)"));
  Do(TransformLayout(s, b, 0, BufferKind::kWrite, map, kNotANumber));
  EXPECT_TRUE(HasBlock(s, "B_padding"));
  EXPECT_EQ(WrongPlace(FinalContent(Schedule(workload), "B", 1), FinalContent(s, "B", 1), map, kNotANumber), "");
  ExpectSound(s, workload);
}

TEST(TransformLayoutPads, NothingWithoutAPadValueOrPadding) {
  const PrimFunc workload = TwoElementwise(3, 10);
  for (const PadValue& pad_value : {PadValue(), PadValue(7)}) {
    Schedule plain(workload), padded(workload);
    const IndexMap map = Get(ParseIndexMap("lambda i, j: (j // 5, i, j % 5)"));  // no padding
    Do(TransformLayout(plain, Get(GetBlock(plain, "B")), 0, BufferKind::kWrite, map));
    Do(TransformLayout(padded, Get(GetBlock(padded, "B")), 0, BufferKind::kWrite, map, pad_value));
    EXPECT_EQ(ToText(plain.func()), ToText(padded.func()));
  }
  Schedule s(workload);
  Do(TransformLayout(s, Get(GetBlock(s, "B")), 0, BufferKind::kWrite,
                     Get(ParseIndexMap("lambda i, j: (j, i // 2, i % 2)"))));
  EXPECT_EQ(s.index().AllBlocks().size(), 2u);
}

// What a filling block writes in shared memory ends with its launch.
TEST(TransformLayoutPads, NotWhereThreadsWouldNotSeeIt) {
  const IndexMap map = Get(ParseIndexMap("lambda i, j: (j // 4, i, j % 4)"));
  for (const bool bound : {false, true}) {
    const PrimFunc workload = TwoElementwise(3, 10);
    Schedule s(workload);
    const BlockRef copy = Get(CacheRead(s, Get(GetBlock(s, "C")), 0, Scope::kShared));
    const std::vector<LoopRef> loops = Get(GetLoops(s, copy));
    Get(Split(s, loops[1], {-1, 5}));
    if (bound) Do(Bind(s, loops[0], "threadIdx.x"));
    const absl::Status status = TransformLayout(s, copy, 0, BufferKind::kWrite, map, 0);
    if (!bound) {
      Do(status);
      ExpectSound(s, workload);
      continue;
    }
    EXPECT_TRUE(Says(status,
                     "transform_layout(B_shared, B_shared): pad_value needs a block that fills the padding, outside of "
                     "loop ax0, which is bound to threadIdx.x, and what lies in scope shared is not seen from there"));
  }
}

// The copy that transform_layout makes of a param.
TEST(TransformLayoutPads, ACopyOfAParam) {
  const PrimFunc workload = DenseRelu(5, 10, 6);
  const IndexMap map = Get(ParseIndexMap("lambda a, b: (b // 4, a, b % 4)"));
  Schedule reads(workload), writes(workload), plain(workload);
  Do(TransformLayout(reads, Get(GetBlock(reads, "C")), 0, BufferKind::kRead, map, 9));
  Get(CacheRead(plain, Get(GetBlock(plain, "C")), 0, Scope::kGlobal));
  EXPECT_EQ(WrongPlace(FinalContent(plain, "A_global", 1), FinalContent(reads, "A_global", 1), map, 9), "");
  ExpectSound(reads, workload);
  Do(TransformLayout(writes, Get(GetBlock(writes, "D")), 0, BufferKind::kWrite, map, 9));
  Get(CacheWrite(plain, Get(GetBlock(plain, "D")), 0, Scope::kGlobal));
  EXPECT_EQ(WrongPlace(FinalContent(plain, "D", 1), FinalContent(writes, "D", 1), map, 9), "");
  ExpectSound(writes, workload);
}

// A random schedule, then a padded layout of any buffer that a block of it writes.
std::string CheckRandomPadding(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random, Machine::kCpu);
  player.PlayChanges(static_cast<int>(random.Below(8)));
  Schedule s = player.schedule();
  const std::vector<int> blocks = s.index().AllBlocks();
  const Block& block = s.index().block(blocks[random.Below(blocks.size())]);
  if (block.writes.empty()) return "";
  const Buffer buffer = block.writes[0].buffer;
  if (AllocatingBlock(s.index(), buffer) != 0 || buffer.rank() == 0) return "";
  std::string inputs, outputs, tail;
  for (int d = 0; d < buffer.rank(); ++d) {
    const std::string i = absl::StrCat("i", d), factor = std::to_string(2 + random.Below(4));
    inputs += (d == 0 ? "" : ", ") + i;
    outputs += i + " // " + factor + ", ";
    tail += i + " % " + factor + ", ";
  }
  const IndexMap map = Get(ParseIndexMap("lambda " + inputs + ": (" + outputs + tail + ")"));
  if (IsConst(Get(InvertLayout(map, buffer.shape())).inside, 1)) return "";
  const int64_t number = buffer.type().is_bool() ? 1 : 77;
  const Schedule before = s;
  const std::string name = block.name;
  if (!TransformLayout(s, Get(GetBlock(s, name)), 0, BufferKind::kWrite, map, number).ok()) return "";
  Count(s.index().AllBlocks().size() > blocks.size() ? "by a block in front" : "by the writer", 1);
  const std::string wrong =
      WrongPlace(FinalContent(before, name, seed), FinalContent(s, name, seed), map, static_cast<double>(number));
  return wrong.empty() ? "" : absl::StrCat(wrong, "\n", ToText(before.func()), ToText(s.func()));
}

TEST(TransformLayoutPads, WhateverWasDoneBefore) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 1000) / 2, CheckRandomPadding);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  EXPECT_EQ(campaign.counts.size(), 2u) << "both ways";
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
    EXPECT_GT(count, FromEnvironment("HONE_SEEDS", 1000) / 50) << name;
  }
}

// Zero where the step gives no number.
TEST(LayoutConstantPads, ThePackedConstant) {
  const PrimFunc workload = DenseRelu(3, 10, 4);
  const IndexMap map = Get(ParseIndexMap("lambda k, n: (n // 8, k, n % 8)"));
  for (const auto& [pad_value, number] : {std::pair<PadValue, double>{std::nullopt, 0}, {5, 5}, {0.25, 0.25}}) {
    Schedule s(workload);
    Do(LayoutConstant(s, Get(GetBlock(s, "C")), 1, map, pad_value));
    const NdArray plain = RandomArguments(workload, 1, InputKind::kInteger)[1];
    std::vector<NdArray> arguments = {plain, UntouchedArray(s.prepares()[0].func.params[1])};
    Do(Interpret(s.prepares()[0].func, arguments));
    EXPECT_EQ(WrongPlace(plain, arguments[1], map, number), "");
    ExpectSound(s, workload);
  }
  // The padding of a layout are elements of the next.
  Schedule s(workload);
  Do(LayoutConstant(s, Get(GetBlock(s, "C")), 1, map, 5));
  std::vector<NdArray> first = {RandomArguments(workload, 1, InputKind::kInteger)[1],
                                UntouchedArray(s.prepares()[0].func.params[1])};
  Do(Interpret(s.prepares()[0].func, first));
  const IndexMap next = Get(ParseIndexMap("lambda a, b, c: (a, b // 3, c, b % 3)"));
  Do(LayoutConstant(s, Get(GetBlock(s, "C")), 1, next, 6));
  std::vector<NdArray> second = {first[0], UntouchedArray(s.prepares()[0].func.params[1])};
  Do(Interpret(s.prepares()[0].func, second));
  EXPECT_EQ(WrongPlace(first[1], second[1], next, 6), "");
  ExpectSound(s, workload);
}

TEST(PackPads, ThePanels) {
  const PrimFunc workload = DenseRelu(5, 10, 6);
  const IndexMap map = Get(ParseIndexMap("lambda k, n: (n // 4, k, n % 4)"));
  for (const auto& [pad_value, number] :
       {std::pair<PadValue, double>{std::nullopt, 0}, {5, 5}, {kInfinity, kInfinity}}) {
    Schedule s(workload);
    const BlockRef c = Get(GetBlock(s, "C"));
    Get(Pack(s, c, 1, Get(GetLoops(s, c))[0], map, PanelTails::kZero, Scope::kThread, pad_value));
    const NdArray plain = RandomArguments(workload, 1, InputKind::kInteger)[1];
    EXPECT_EQ(WrongPlace(plain, FinalContent(s, "B_pack", 1), map, number), "");
    ExpectSound(s, workload);
  }
}

}  // namespace
}  // namespace hone::testing
