// Schedules for GPUs, of operators of every kind at odd sizes: the rule that is meant takes them, and the best by draft
// and random choices of every generator replay, have no race, and compute what the workload does, in the interpreter
// and on an OpenCL device.
#include "tuner/space/gpu/gpu_generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "deploy/runtime/devices/opencl_device.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/deploy/runtime/pocl_cache.h"
#include "tests/thorough.h"
#include "tests/tuner/space/extra_workloads.h"
#include "tests/tuner/space/gpu/memory_bound_workloads.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

using testing::Reference;
using testing::SmallWorkload;

// A product of batches whose results stand beside one another, as an attention's heads do: a loop over batches lies
// between those over rows and columns.
SmallWorkload JoinedHeads() {
  return {"joined_heads", *ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((3, 128, 11), "float32"), B: T.Buffer((11, 3, 64), "float32"), C: T.Buffer((128, 3, 64), "float32")):
    for i, b, j, k in T.grid(128, 3, 64, 11):
        with T.block("C"):
            vi, vb, vj, vk = T.axis.remap("SSSR", [i, b, j, k])
            with T.init():
                C[vi, vb, vj] = T.float32(0)
            C[vi, vb, vj] = C[vi, vb, vj] + A[vb, vi, vk] * B[vk, vb, vj]
)")};
}

std::vector<SmallWorkload> Workloads() {
  std::vector<SmallWorkload> all = testing::SmallWorkloads();
  all.push_back(JoinedHeads());
  for (SmallWorkload& more : testing::LargerWorkloads()) all.push_back(std::move(more));
  return all;
}

// Where candidates of a target are run: the target's device (OpenDevice; OpenCL's by its number in `hone doctor`),
// opened once in a process. Null where there is none.
struct Place {
  const char *name, *target;
  RuntimeResult<std::unique_ptr<Device>> (*open)();
  absl::Status (*run)(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args);
};
const Place kOnOpenCl = {
    "opencl", "opencl:generic",
    [] { return OpenClDevice::Open(static_cast<size_t>(testing::FromEnvironment("HONE_OPENCL_DEVICE", 0))); },
    &testing::RunOnOpenCl};
const Place kOnManyUnits = {"opencl", "opencl:generic,processors=16", kOnOpenCl.open, kOnOpenCl.run};
// Vectors and bytes in flight as on an H100, in blocks that an OpenCL device has.
const Place kOnOpenClAsAnH100 = {
    "opencl",
    "opencl:generic,lanes=32,processors=132,threads=1024,resident_threads=2048,shared=32K,resident_shared=228K,"
    "l2=50M,mhz=1755,bandwidth=3352",
    kOnOpenCl.open, kOnOpenCl.run};
const Place kOnCuda = {"cuda", "cuda:sm_90a", [] { return OpenDevice("cuda:sm_90a"); }, &testing::RunOnCuda};

Device* DeviceAt(const Place& place) {
  static auto* const opened = new std::map<std::string, RuntimeResult<std::unique_ptr<Device>>>;
  auto at = opened->find(place.name);
  if (at == opened->end()) at = opened->emplace(place.name, place.open()).first;
  return at->second.ok() ? (*at->second).get() : nullptr;
}

// At random: of every generator two, or one of each second generator of a workload, since every choice is a kernel to
// compile. Which of them have one is drawn by the workload, so that over all workloads every kind of generator does.
int ChoicesOf(const SmallWorkload& workload, size_t generator) {
  if (Thorough()) return 2;
  return (generator + workload.name.size()) % 2 == 0 ? 1 : 0;
}

void ExpectLaunchesFit(const PrimFunc& scheduled, const GpuTarget& target) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(scheduled);
  ASSERT_TRUE(program.ok()) << program.status();
  for (const Launch& launch : program->launches) {
    EXPECT_LE(launch.block[0] * launch.block[1] * launch.block[2], target.threads) << ToText(*program);
    EXPECT_LE(launch.shared_bytes, target.shared) << ToText(*program);
  }
}

void ExpectGood(const Reference& reference, const SmallWorkload& workload, const Generator& generator,
                const Choice& choice, const GpuTarget& target, const Place& place) {
  SCOPED_TRACE(generator.name() + ", " + ::testing::PrintToString(choice));
  const std::optional<double> us = generator.Draft(choice);
  ASSERT_TRUE(us.has_value());
  EXPECT_TRUE(std::isfinite(*us) && *us > 0) << *us;
  const absl::StatusOr<Schedule> made = BuildCandidate(generator, choice);
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::StatusOr<Trace> trace = ParseTrace(ToText(made->trace()));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(ChoiceWithValues(generator, *OriginOf(*trace)), choice);
  const absl::StatusOr<Schedule> schedule = Replay(*trace, workload.func);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const PrimFunc scheduled = schedule->Program().main;
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(scheduled);
  ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << ToText(scheduled);
  ExpectLaunchesFit(scheduled, target);
  ScheduledProgram program;
  program.main = *lowered;
  EXPECT_EQ(reference.CheckInterpreted(program), "") << ToText(scheduled) << ToText(*lowered);
  if (DeviceAt(place) == nullptr) return;
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = place.run(*DeviceAt(place), scheduled, got);
  ASSERT_TRUE(ran.ok()) << ran << ToText(scheduled);
  EXPECT_EQ(reference.Compare(got), "") << ToText(scheduled);
}

class GpuCandidates : public ::testing::TestWithParam<SmallWorkload> {};

void ExpectAllGood(const SmallWorkload& workload, const Place& place) {
  const GpuTarget target = *ParseGpuTarget(place.target);
  const auto generators = GpuGenerators(workload.func, target);
  ASSERT_TRUE(generators.ok()) << generators.status();
  ASSERT_FALSE(generators->empty());
  const Reference& reference = testing::ReferenceOf(workload);
  std::set<std::string> names;
  for (size_t g = 0; g < generators->size(); ++g) {
    const Generator& generator = *(*generators)[g];
    EXPECT_TRUE(names.insert(generator.name()).second) << generator.name() << " is there twice";
    const absl::StatusOr<Choice> best = BestByDraft(generator);
    ASSERT_TRUE(best.ok()) << generator.name() << ": " << best.status();
    ExpectGood(reference, workload, generator, *best, target, place);
    for (int i = 0; i < ChoicesOf(workload, g); ++i) {
      Random random(29, g * 100 + static_cast<uint64_t>(i));
      if (const std::optional<Choice> choice = testing::LegalChoice(generator, random))
        ExpectGood(reference, workload, generator, *choice, target, place);
    }
  }
}

TEST_P(GpuCandidates, OfAllGeneratorsAreRight) {
  ExpectAllGood(GetParam(), kOnOpenCl);
  if (DeviceAt(kOnOpenCl) == nullptr) GTEST_SKIP() << "no OpenCL device; the interpreter alone has run them";
}

// Those for an H100, where there is one.
using CudaCandidates = GpuCandidates;
TEST_P(CudaCandidates, OfAllGeneratorsAreRight) {
  if (DeviceAt(kOnCuda) == nullptr) GTEST_SKIP() << "no CUDA device of sm_90";
  ExpectAllGood(GetParam(), kOnCuda);
}
INSTANTIATE_TEST_SUITE_P(Workloads, CudaCandidates, ::testing::ValuesIn(Workloads()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Workloads, GpuCandidates, ::testing::ValuesIn(Workloads()),
                         [](const auto& info) { return info.param.name; });

// Kernels that memory bounds, as they are drafted for an H100 and at random: in the interpreter, and on the device that
// is there.
class MemoryBoundCandidates : public ::testing::TestWithParam<SmallWorkload> {};
TEST_P(MemoryBoundCandidates, OfAllGeneratorsAreRight) {
  ExpectAllGood(GetParam(), DeviceAt(kOnCuda) == nullptr ? kOnOpenClAsAnH100 : kOnCuda);
}
INSTANTIATE_TEST_SUITE_P(Workloads, MemoryBoundCandidates, ::testing::ValuesIn(testing::MemoryBoundWorkloads()),
                         [](const auto& info) { return info.param.name; });

// Products whose operands are fetched up to three steps ahead, among them one whose operand is made on the way
// (padding).
TEST(GpuGenerators, ProductsAreRightWithEveryNumberOfStages) {
  const GpuTarget target = *ParseGpuTarget(kOnOpenCl.target);
  std::set<int64_t> tried;
  for (const SmallWorkload& workload : Workloads()) {
    if (workload.name != "matmul_prime" && workload.name != "long_dense_relu" && workload.name != "wide_conv_block")
      continue;
    SCOPED_TRACE(workload.name);
    const auto generators = GpuGenerators(workload.func, target);
    ASSERT_TRUE(generators.ok()) << generators.status();
    for (const auto& generator : *generators) {
      const auto knob = std::ranges::find_if(
          generator->knobs(), [](const Knob& k) { return k.name.ends_with("stages") && k.candidates.size() > 1; });
      if (knob == generator->knobs().end()) continue;
      absl::StatusOr<Choice> choice = BestByDraft(*generator);
      ASSERT_TRUE(choice.ok()) << choice.status();
      for (size_t s = 1; s < knob->candidates.size(); ++s) {
        (*choice)[static_cast<size_t>(knob - generator->knobs().begin())] = static_cast<int>(s);
        if (!generator->Draft(*choice).has_value()) continue;  // there are fewer steps
        tried.insert(knob->candidates[s]);
        ExpectGood(testing::ReferenceOf(workload), workload, *generator, *choice, target, kOnOpenCl);
      }
    }
  }
  EXPECT_EQ(tried, (std::set<int64_t>{2, 3, 4}));
}

// Products with few results and a long reduction, of which parts are computed side by side and added up: as they are,
// with an epilogue, of operands that are made on the way, and where no part is a whole number of steps.
TEST(GpuGenerators, ProductsInPartsOfTheirReductionAreRight) {
  for (const SmallWorkload& workload : {SmallWorkload{"matmul", testing::Matmul(9, 20, 3 * 131)},
                                        SmallWorkload{"dense", testing::DenseRelu(12, 19, 320)},
                                        SmallWorkload{"convolution", testing::ConvBiasResidualRelu({5, 5, 64, 10})}}) {
    SCOPED_TRACE(workload.name);
    for (const Place* place : {&kOnManyUnits, &kOnCuda}) {
      const GpuTarget target = *ParseGpuTarget(place->target);
      const auto generators = GpuGenerators(workload.func, target);
      ASSERT_TRUE(generators.ok()) << generators.status();
      size_t in_parts = 0;
      for (size_t g = 0; g < generators->size(); ++g) {
        const Generator& generator = *(*generators)[g];
        if (generator.name().find("split_k_") == std::string::npos) continue;
        ++in_parts;
        ExpectGood(testing::ReferenceOf(workload), workload, generator, *BestByDraft(generator), target, *place);
        Random random(31, g);
        if (const std::optional<Choice> choice = testing::LegalChoice(generator, random))
          ExpectGood(testing::ReferenceOf(workload), workload, generator, *choice, target, *place);
      }
      EXPECT_GE(in_parts, 2u) << place->target << ": of operands in shared memory, and not";
    }
  }
}

absl::StatusOr<Schedule> Default(const PrimFunc& workload, const char* target, std::string* generator) {
  HONE_ASSIGN_OR_RETURN(const auto generators, GpuGenerators(workload, *ParseGpuTarget(target)));
  HONE_ASSIGN_OR_RETURN(const Trace trace, DefaultTrace(generators));
  *generator = OriginOf(trace)->generator;
  return Replay(trace, workload);
}

struct Family {
  const char* name;
  PrimFunc workload;
  const char* rule;
};

// At sizes that networks have, each family is drafted by the rule that is meant for it.
TEST(GpuGenerators, DraftTheRuleOfTheFamily) {
  const Family families[] = {{"product", testing::Matmul(512, 384, 640), "product("},
                             {"dense", testing::DenseRelu(128, 1000, 512), "product("},
                             {"convolution", testing::ConvBiasResidualRelu({28, 28, 64, 128}), "product("},
                             {"one row", testing::Matmul(1, 256, 8192), "reduction("},
                             {"rows", testing::Softmax(384, 1000), "rows("},
                             {"map", testing::TwoElementwise(512, 1000), "map("},
                             {"transpose", testing::Transposed({2048, 1024}, {1, 0}), "transpose("},
                             {"transposed batches", testing::Transposed({8, 330, 700}, {0, 2, 1}), "transpose("},
                             {"columns", testing::Matmul(1, 4096, 1024), "reduction("},
                             {"few columns", testing::Matmul(1, 8, 1 << 20), "split_k_"}};
  for (const Family& family : families) {
    SCOPED_TRACE(family.name);
    std::string generator;
    const absl::StatusOr<Schedule> schedule = Default(family.workload, "cuda:sm_90a", &generator);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_NE(generator.find(family.rule), std::string::npos) << generator;
  }
}

// Loads and stores of 16 bytes where rows allow, no barrier but the one between a tile's two sides, and those of sums.
TEST(GpuGenerators, DraftVectorsAndFewBarriersOfKernelsThatMemoryBounds) {
  struct Kernel {
    const char* name;
    PrimFunc workload;
    bool vectors;
    size_t barriers;
  };
  const Kernel kernels[] = {{"softmax", testing::Softmax(8192, 1024), true, 4},
                            {"elementwise", testing::TwoElementwise(16384, 1024), true, 0},
                            {"transpose", testing::Transposed({2048, 1024}, {1, 0}), false, 1}};
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    std::string generator;
    const absl::StatusOr<Schedule> schedule = Default(kernel.workload, "cuda:sm_90a", &generator);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(schedule->Program().main);
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::StatusOr<std::string> source = PrintKernels(*program, CudaCpp(), testing::CudaFeatures());
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(source->find("float4") != std::string::npos, kernel.vectors) << *source;
    size_t barriers = 0;
    for (size_t at = 0; (at = source->find("__syncthreads", at)) != std::string::npos; ++at) ++barriers;
    EXPECT_LE(barriers, kernel.barriers) << *source;
  }
}

// Parts of a reduction where tiles are fewer than processors, as long as a part is worth a second launch.
TEST(GpuGenerators, DraftPartsOfLongReductionsOfFewTiles) {
  struct Sizes {
    int64_t m, n, k;
    bool in_parts;
  };
  for (const Sizes& sizes : {Sizes{64, 64, 16384, true}, Sizes{16, 1024, 8192, true}, Sizes{256, 256, 16384, true},
                             Sizes{64, 64, 512, false}, Sizes{256, 256, 256, false}, Sizes{2048, 2048, 8192, false}}) {
    SCOPED_TRACE(absl::StrCat(sizes.m, " x ", sizes.n, " x ", sizes.k));
    std::string generator;
    const absl::StatusOr<Schedule> schedule =
        Default(testing::Matmul(sizes.m, sizes.n, sizes.k), "cuda:sm_90a", &generator);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(generator.find("split_k_") != std::string::npos, sizes.in_parts) << generator;
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(schedule->Program().main);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->launches.size(), sizes.in_parts ? 2u : 1u) << ToText(*program);
  }
}

// All blocks of a function are in one launch where a rule takes them together.
TEST(GpuGenerators, TakeAllBlocksIntoOneLaunch) {
  const std::set<std::string> together = {"matmul_prime",     "long_dense_relu", "wide_conv_block", "scores",
                                          "joined_heads",     "softmax_rows",    "rows_softmax",    "layer_norm",
                                          "group_norm",       "rows_layer_norm", "sum_last",        "argmax",
                                          "padded_depthwise", "two_elementwise"};
  size_t seen = 0;
  for (const SmallWorkload& workload : Workloads()) {
    if (!together.contains(workload.name)) continue;
    ++seen;
    for (const char* target : {"opencl:generic", "cuda:sm_90a"}) {
      SCOPED_TRACE(workload.name + ", " + target);
      std::string generator;
      const absl::StatusOr<Schedule> schedule = Default(workload.func, target, &generator);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const absl::StatusOr<DeviceProgram> program = LowerToDevice(schedule->Program().main);
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_EQ(program->launches.size(), 1u) << generator << "\n" << ToText(*program);
    }
  }
  EXPECT_EQ(seen, together.size());
}

// What has more threads or shared memory than the target has is not drafted, whatever the knobs say.
TEST(GpuGenerators, DraftNothingThatDoesNotFit) {
  const GpuTarget small = *ParseGpuTarget("opencl:generic,threads=64,shared=2K");
  size_t refused = 0;
  for (const SmallWorkload& workload : Workloads()) {
    if (workload.name != "long_dense_relu" && workload.name != "softmax_rows") continue;
    const auto generators = GpuGenerators(workload.func, small);
    ASSERT_TRUE(generators.ok()) << generators.status();
    for (const auto& generator : *generators) {
      Random random(7, 0);
      for (int i = 0; i < 40; ++i) {
        const Choice choice = RandomChoice(*generator, random);
        if (!generator->Draft(choice).has_value()) {
          ++refused;
          continue;
        }
        const absl::StatusOr<Schedule> schedule = generator->Build(choice);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        ExpectLaunchesFit(schedule->Program().main, small);
      }
    }
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace hone
