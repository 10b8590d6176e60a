// What the tile operations of default schedules become: machine code whose innermost loops keep their sums in
// registers. Code is generated for machines that need not be there.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/compile.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/check.h"
#include "compiler/te/te.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/tuner/space/machine_loops.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

using testing::ConvBiasResidualRelu;
using testing::MachineLoop;
using testing::Matmul;

constexpr const char* kTargets[] = {"haswell", "skylake-avx512", "znver4", "cortex-a76"};

struct Case {
  const char* name;
  PrimFunc workload;
  // Each by target, 0 where that is not there.
  // The most vectors that a turn of an innermost loop stores in the frame, and that it loads from there.
  std::map<std::string, int> spills = {};
  // The most multiplications and additions in it that are instructions of their own.
  std::map<std::string, int> unfused = {};
  // Turns of the loop for one tile, of a tile that is too long to be written out.
  std::map<std::string, int> turns = {};
};

PrimFunc Depthwise(int64_t size, int64_t channels, int64_t stride) {
  const te::Tensor x = te::Placeholder({1, size, size, channels}, kFloat32, "x"),
                   w = te::Placeholder({3, 3, channels}, kFloat32, "w");
  return te::CreatePrimFunc({x, w}, {topi::DepthwiseConv2d(x, w, {{stride, stride}, {}, {1, 1}, {1, 1}})}, "main");
}

PrimFunc Grouped(int64_t size, int64_t channels, int64_t groups) {
  const te::Tensor x = te::Placeholder({1, size, size, channels}, kFloat32, "x"),
                   w = te::Placeholder({3, 3, channels / groups, channels}, kFloat32, "w");
  return te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {{}, {}, {1, 1}, {1, 1}, groups})}, "main");
}

// Where something spills: windows keep pixels that several taps read.
const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>{
      {"Product512", Matmul(512, 512, 512)},
      {"Product49x512x4608", Matmul(49, 512, 4608)},
      {"Product1000x1001x1000", Matmul(1000, 1000, 1001)},
      {"Conv3x3", ConvBiasResidualRelu({56, 56, 64, 64})},
      {"Conv3x3OfFewPixels", ConvBiasResidualRelu({14, 14, 256, 256})},
      {"Conv3x3Strided", ConvBiasResidualRelu({56, 56, 64, 128, 3, 2, 1})},
      {"Conv1x1", ConvBiasResidualRelu({14, 14, 256, 256, 1, 1, 0})},
      {"Stem7x7", ConvBiasResidualRelu({224, 224, 3, 64, 7, 2, 3})},
      {.name = "Depthwise",
       .workload = Depthwise(28, 192, 1),
       .spills = {{"skylake-avx512", 1}, {"znver4", 1}, {"cortex-a76", 17}},
       .unfused = {{"skylake-avx512", 9}, {"znver4", 9}}},  // in the padding, products that two rows share
      {"DepthwiseStrided", Depthwise(56, 96, 2), {{"haswell", 3}, {"znver4", 1}, {"cortex-a76", 1}}},
      {.name = "GroupsOf8", .workload = Grouped(14, 256, 32), .turns = {{"haswell", 9}}},  // one for each tap
      {"GroupsOf32", Grouped(14, 256, 8)},
  };
  return *cases;
}

// Multiply-adds of vectors of the target in a turn of the innermost loop around the tile's operation.
int64_t MultiplyAddsOfTile(const Stmt& body, const Target& target, int64_t unrolled = 1) {
  if (const For* loop = body.As<For>()) {
    const std::optional<int64_t> extent = ConstantValue(loop->extent);
    if (loop->kind == ForKind::kUnrolled) unrolled *= *extent;
    if (loop->kind != ForKind::kUnrolled && extent != 1) unrolled = 1;
  }
  if (const TileOp* op = body.As<TileOp>()) {
    const TileIntrinsic& intrinsic = *FindTileIntrinsic(op->intrinsic);
    if (!intrinsic.adds_once()) return 0;
    const auto width = op->params.find("n");
    const int64_t n =
        width != op->params.end() ? std::get<int64_t>(width->second) : *ConstantValue(TileExtents(intrinsic, *op)[0]);
    const int64_t lanes = target.lanes(op->operands[0].buffer.type().bits);
    return unrolled * ((n + lanes - 1) / lanes);
  }
  int64_t most = 0;
  ForEachChild(
      body, [&](const Stmt& s) { most = std::max(most, MultiplyAddsOfTile(s, target, unrolled)); }, [](const Expr&) {});
  return most;
}

int Of(const std::string& target, const std::map<std::string, int>& values) {
  const auto found = values.find(target);
  return found == values.end() ? 0 : found->second;
}

class HotLoops : public ::testing::TestWithParam<std::tuple<size_t, const char*>> {
 protected:
  const Case& row() const { return Cases()[std::get<0>(GetParam())]; }
  std::string cpu() const { return std::get<1>(GetParam()); }

  void SetUp() override {
    const absl::StatusOr<Target> target = ParseTarget(absl::StrCat("cpu:", cpu()));
    ASSERT_TRUE(target.ok()) << target.status();
    target_ = *target;
    const PrimFunc& workload = row().workload;
    const absl::StatusOr<Trace> trace =
        DefaultTrace(workload, {.target = target_, .threads = 2, .numeric = NumericLevel::kStrict});
    ASSERT_TRUE(trace.ok()) << trace.status();
    const absl::StatusOr<Schedule> schedule = Replay(*trace, workload);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    program_ = schedule->Program();
  }
  std::vector<MachineLoop> Loops(bool fuse = true) const {
    const CompileOptions options{.numeric = NumericLevel::kStrict, .fuse = fuse, .threads = 2};
    const absl::StatusOr<std::string> assembly = CompileToAssembly(program_, target_, options);
    HONE_CHECK(assembly.ok()) << assembly.status();
    return testing::LoopsOfMultiplyAdds(*assembly);
  }

  Target target_;
  ScheduledProgram program_;
};

TEST_P(HotLoops, KeepTheirSumsInRegisters) {
  const int spills = Of(cpu(), row().spills), unfused = Of(cpu(), row().unfused);
  const int64_t of_tile = MultiplyAddsOfTile(program_.main.body, target_) / std::max(1, Of(cpu(), row().turns));
  bool whole_tile = false;
  for (const MachineLoop& loop : Loops()) {
    EXPECT_LE(std::max(loop.to_stack, loop.from_stack), spills) << loop.text;
    EXPECT_LE(loop.unfused, unfused) << loop.text;
    // Tiles at borders are written beside the others where nothing but the tile is in the loop, under conditions.
    const bool has_conditions = loop.branches > 1;
    if (!has_conditions) { EXPECT_LE(loop.multiply_adds, of_tile) << loop.text; }
    whole_tile |= has_conditions ? loop.multiply_adds >= of_tile : loop.multiply_adds == of_tile;
  }
  EXPECT_TRUE(whole_tile) << "no loop has the " << of_tile << " multiply-adds of a tile";
}

struct Code {
  std::string program;  // as text
  std::vector<MachineLoop> loops;
};
// Of a workload that has no record.
Code DefaultCode(const PrimFunc& workload, const Target& target, int threads) {
  const absl::StatusOr<Trace> trace = DefaultTrace(workload, {.target = target, .threads = threads});
  HONE_CHECK(trace.ok()) << trace.status();
  const absl::StatusOr<Schedule> schedule = Replay(*trace, workload);
  HONE_CHECK(schedule.ok()) << schedule.status();
  const absl::StatusOr<std::string> assembly = CompileToAssembly(schedule->Program(), target, {.threads = threads});
  HONE_CHECK(assembly.ok()) << assembly.status();
  return {ToText(schedule->func()), testing::LoopsOfMultiplyAdds(*assembly)};
}

// Products of small matrices: nothing in the loop but them and the loads of their factors, two for a pair of rows.
TEST(HotLoopsOfMatrices, KeepTheirSumsInRegisters) {
  const te::Tensor a = te::Placeholder({64, 256}, DType::UInt(8), "a"),
                   b = te::Placeholder({256, 128}, DType::Int(8), "b");
  const PrimFunc workload = te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main");
  const Target target = *ParseTarget("cpu:neoverse-n2");
  const auto [program, loops] = DefaultCode(workload, target, /*threads=*/1);
  ASSERT_FALSE(loops.empty()) << program;
  for (const MachineLoop& loop : loops) {
    EXPECT_GE(loop.multiply_adds, 12) << loop.text;
    EXPECT_EQ(loop.to_stack + loop.from_stack, 0) << loop.text;
    EXPECT_EQ(loop.text.find("zip"), std::string::npos) << loop.text;
  }
}

// Products of pairs of integers, which are added by an instruction of their own and are in a register until then: as
// quantised models have them where no instruction multiplies bytes.
struct Pairs {
  const char *name, *target;
};
class HotLoopsOfPairs : public ::testing::TestWithParam<Pairs> {};

TEST_P(HotLoopsOfPairs, KeepTheirSumsInRegisters) {
  const te::Tensor a = te::Placeholder({256, 256}, DType::UInt(8), "a"),
                   b = te::Placeholder({256, 256}, DType::Int(16), "b");
  const te::Tensor c = topi::Dense(topi::Cast(a, DType::Int(16)), b);
  const PrimFunc workload = te::CreatePrimFunc({a, b}, {c}, "main", {{"constants", std::vector<int64_t>{1}}});
  const Target target = *ParseTarget(GetParam().target);
  const auto [program, loops] = DefaultCode(workload, target, /*threads=*/2);
  ASSERT_FALSE(loops.empty()) << program;
  for (const MachineLoop& loop : loops) {
    EXPECT_GE(loop.multiply_adds, 10) << loop.text;
    EXPECT_EQ(loop.to_stack + loop.from_stack, 0) << loop.text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HotLoopsOfPairs,
                         ::testing::Values(Pairs{"haswell", "cpu:haswell,cores=2"},
                                           Pairs{"znver3", "cpu:znver3,cores=2"},
                                           Pairs{"skylake", "cpu:skylake-avx512,cores=2"}),
                         [](const auto& info) { return info.param.name; });

// Sums of float16 that a program asks for, where the target multiplies it: whole vectors, nothing widened.
TEST(HotLoopsOfFloat16, MultiplyAndAddWholeVectors) {
  const DType half = DType::Float(16);
  const te::Tensor a = te::Placeholder({64, 256}, half, "a"), b = te::Placeholder({256, 128}, half, "b");
  const te::ReduceAxis k(256, "k");
  const te::Tensor c = te::Compute(
      {64, 128}, [&](const te::Indices& i) { return te::Sum(a(i[0], k) * b(k, i[1]), {k}); }, "c");
  const PrimFunc workload = te::CreatePrimFunc({a, b}, {c}, "main");
  const Target target = *ParseTarget("cpu:sapphirerapids");
  const auto [program, loops] = DefaultCode(workload, target, /*threads=*/1);
  EXPECT_NE(program.find("axpy_f16"), std::string::npos);
  ASSERT_FALSE(loops.empty()) << program;
  for (const MachineLoop& loop : loops) {
    EXPECT_GE(loop.multiply_adds, 8) << loop.text;
    EXPECT_EQ(loop.unfused + loop.to_stack + loop.from_stack, 0) << loop.text;
    EXPECT_NE(loop.text.find("ph "), std::string::npos) << loop.text;
    EXPECT_NE(loop.text.find("zmm"), std::string::npos) << loop.text;
    EXPECT_EQ(loop.text.find("cvt"), std::string::npos) << loop.text;
  }
}

TEST_P(HotLoops, RoundTwiceWhereThatIsAsked) { EXPECT_TRUE(Loops(/*fuse=*/false).empty()); }

INSTANTIATE_TEST_SUITE_P(All, HotLoops,
                         ::testing::Combine(::testing::Range(size_t{0}, Cases().size()), ::testing::ValuesIn(kTargets)),
                         [](const auto& info) {
                           return absl::StrReplaceAll(
                               absl::StrCat(Cases()[std::get<0>(info.param)].name, "_", std::get<1>(info.param)),
                               {{"-", "_"}});
                         });

}  // namespace
}  // namespace hone
