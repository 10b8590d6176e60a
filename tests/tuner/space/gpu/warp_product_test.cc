// Products by the instructions of warps (warp_product_nest.cc): random schedules of random products at odd sizes
// replay, have no race and compute what the workload does, in the interpreter and on a CUDA device where there is one;
// faults that are planted are found; and the machine code is what it should be.
//   HONE_FIRST_SEED=1000 HONE_SEEDS=5000 tuner_space_gpu_tests --gtest_filter='WarpProducts.RandomSchedulesAreRight'
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/cuda/cubin.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/lower/threads/bank_conflicts.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/gpu/gpu_generators.h"

namespace hone::testing {
namespace {

struct Sizes {
  int64_t batches = 1, m = 1, n = 1, k = 1;
};
struct Types {
  const char *operand, *sum;
};
constexpr Types kTypes[] = {{"float16", "float32"}, {"bfloat16", "float32"}, {"int8", "int32"}};

// What stands around the product.
enum class Around { kNothing, kBias, kMadeOperand };

SmallWorkload Product(const Types& types, const Sizes& sizes, Around around) {
  std::string text = R"(
@T.prim_func
def main(A: T.Buffer((BATCH, M, K), "LEFT"), B: T.Buffer((BATCH, K, N), "TYPE"), D: T.Buffer((N,), "SUM"), C: T.Buffer((BATCH, M, N), "SUM")):
)";
  if (around == Around::kMadeOperand) {
    text += R"(
    L = T.alloc_buffer((BATCH, M, K), "TYPE")
    for b, i, k in T.grid(BATCH, M, K):
        with T.block("L"):
            vb, vi, vk = T.axis.remap("SSS", [b, i, k])
            L[vb, vi, vk] = T.Cast("TYPE", A[vb, vi, vk])
)";
  }
  if (around == Around::kBias) text += "    P = T.alloc_buffer((BATCH, M, N), \"SUM\")\n";
  text += R"(
    for b, i, j, k in T.grid(BATCH, M, N, K):
        with T.block("RESULT"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                RESULT[vb, vi, vj] = T.SUM(0)
            RESULT[vb, vi, vj] = RESULT[vb, vi, vj] + T.Cast("SUM", OPERAND[vb, vi, vk]) * T.Cast("SUM", B[vb, vk, vj])
)";
  if (around == Around::kBias) {
    text += R"(
    for b, i, j in T.grid(BATCH, M, N):
        with T.block("C"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            C[vb, vi, vj] = T.max(P[vb, vi, vj] + D[vj], T.SUM(0))
)";
  }
  const std::string left = around == Around::kMadeOperand ? types.sum : types.operand;
  text = absl::StrReplaceAll(text, {{"LEFT", left},
                                    {"TYPE", types.operand},
                                    {"SUM", types.sum},
                                    {"RESULT", around == Around::kBias ? "P" : "C"},
                                    {"OPERAND", around == Around::kMadeOperand ? "L" : "A"},
                                    {"BATCH", absl::StrCat(sizes.batches)},
                                    {"M", absl::StrCat(sizes.m)},
                                    {"N", absl::StrCat(sizes.n)},
                                    {"K", absl::StrCat(sizes.k)}});
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  HONE_CHECK(func.ok()) << func.status() << text;
  return {"warp_product", *func};
}

// H x W pixels of I channels to O, channels last, with a border of zeros: a product of which the left operand is made
// on the way. Its rows are pixels, its terms taps and channels.
struct ConvolutionSizes {
  int64_t pixels = 1, in = 1, out = 1, kernel = 1, stride = 1;
};
SmallWorkload Convolution(const Types& types, const ConvolutionSizes& sizes) {
  const int64_t border = sizes.kernel / 2, padded = sizes.pixels + 2 * border;
  const int64_t made = (padded - sizes.kernel) / sizes.stride + 1;
  const std::string text = absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((1, H, H, I), "TYPE"), B: T.Buffer((K, K, I, O), "TYPE"), D: T.Buffer((O,), "SUM"), C: T.Buffer((1, OH, OH, O), "SUM")):
    L = T.alloc_buffer((1, PADDED, PADDED, I), "TYPE")
    P = T.alloc_buffer((1, OH, OH, O), "SUM")
    for n, h, w, c in T.grid(1, PADDED, PADDED, I):
        with T.block("L"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            L[vn, vh, vw, vc] = T.if_then_else(BORDER <= vh and vh < BORDER + H and BORDER <= vw and vw < BORDER + H, A[vn, vh - BORDER, vw - BORDER, vc], T.TYPE(0))
    for n, h, w, o, kh, kw, c in T.grid(1, OH, OH, O, K, K, I):
        with T.block("P"):
            vn, vh, vw, vo, vkh, vkw, vc = T.axis.remap("SSSSRRR", [n, h, w, o, kh, kw, c])
            with T.init():
                P[vn, vh, vw, vo] = T.SUM(0)
            P[vn, vh, vw, vo] = P[vn, vh, vw, vo] + T.Cast("SUM", L[vn, vh * STRIDE + vkh, vw * STRIDE + vkw, vc]) * T.Cast("SUM", B[vkh, vkw, vc, vo])
    for n, h, w, o in T.grid(1, OH, OH, O):
        with T.block("C"):
            vn, vh, vw, vo = T.axis.remap("SSSS", [n, h, w, o])
            C[vn, vh, vw, vo] = T.max(P[vn, vh, vw, vo] + D[vo], T.SUM(0))
)",
      {{"TYPE", types.operand},
       {"SUM", types.sum},
       {"PADDED", absl::StrCat(padded)},
       {"BORDER", absl::StrCat(border)},
       {"STRIDE", absl::StrCat(sizes.stride)},
       {"OH", absl::StrCat(made)},
       {"(O,)", absl::StrCat("(", sizes.out, ",)")},
       {", O)", absl::StrCat(", ", sizes.out, ")")},
       {", O, K, K, I)", absl::StrCat(", ", sizes.out, ", ", sizes.kernel, ", ", sizes.kernel, ", ", sizes.in, ")")},
       {"(K, K, I", absl::StrCat("(", sizes.kernel, ", ", sizes.kernel, ", ", sizes.in)},
       {", H, H, I)", absl::StrCat(", ", sizes.pixels, ", ", sizes.pixels, ", ", sizes.in, ")")},
       {", I)", absl::StrCat(", ", sizes.in, ")")},
       {"+ H ", absl::StrCat("+ ", sizes.pixels, " ")},
       {"+ H,", absl::StrCat("+ ", sizes.pixels, ",")}});
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  HONE_CHECK(func.ok()) << func.status() << text;
  return {"warp_convolution", *func};
}

constexpr char kWhole[] = "sketch:warp_product(", kInParts[] = ",warp_product(";

// Of the whole product, or of it in parts of its reduction (split k).
absl::StatusOr<std::unique_ptr<Generator>> GeneratorOf(const PrimFunc& workload, const std::string& target,
                                                       const std::string& rule = kWhole) {
  HONE_ASSIGN_OR_RETURN(auto generators, GpuGenerators(workload, *ParseGpuTarget(target)));
  for (std::unique_ptr<Generator>& generator : generators) {
    if (generator->name().find(rule) != std::string::npos) return std::move(generator);
  }
  return absl::NotFoundError("no generator of products by warps");
}

// The choice's schedule by way of the text of its trace.
absl::StatusOr<PrimFunc> Scheduled(const Generator& generator, const Choice& choice, const PrimFunc& workload) {
  HONE_ASSIGN_OR_RETURN(const Schedule made, BuildCandidate(generator, choice));
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(ToText(made.trace())));
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload));
  return schedule.Program().main;
}

int64_t Between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(high - low + 1)));
}

// A random choice of the generator's.
std::string CheckChoice(const SmallWorkload& workload, const Generator& generator, Random& random, Device* device) {
  const std::optional<Choice> choice = LegalChoice(generator, random);
  if (!choice.has_value()) return "no legal choice";
  const absl::StatusOr<PrimFunc> scheduled = Scheduled(generator, *choice, workload.func);
  if (!scheduled.ok()) return absl::StrCat(scheduled.status().message());
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(*scheduled);
  if (!lowered.ok()) return absl::StrCat(lowered.status().message(), "\n", ToText(*scheduled));
  const Reference reference(workload);
  ScheduledProgram program;
  program.main = *lowered;
  const std::string wrong = reference.CheckInterpreted(program);
  if (!wrong.empty()) return absl::StrCat(wrong, "\n", ToText(*lowered));
  if (device == nullptr) return "";
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = RunOnCuda(*device, *scheduled, got);
  return ran.ok() ? reference.Compare(got) : std::string(ran.message());
}

std::string CheckSeed(uint64_t seed, Device* device) {
  Random random(seed);
  const auto between = [&](int64_t low, int64_t high) { return Between(random, low, high); };
  const Sizes sizes{between(1, 2), between(4, 70), between(8, 50), between(8, 70)};
  const ConvolutionSizes convolution{between(4, 9), between(1, 20), between(8, 30), 2 * between(0, 1) + 1,
                                     between(1, 2)};
  const Types& types = kTypes[random.Below(3)];
  const uint64_t kind = random.Below(4);
  const SmallWorkload workload = kind == 3 && convolution.in * convolution.kernel >= 8
                                     ? Convolution(types, convolution)
                                     : Product(types, sizes, static_cast<Around>(kind % 3));
  const auto generator = GeneratorOf(workload.func, "cuda:sm_90a");
  if (!generator.ok()) return std::string(generator.status().message());
  return CheckChoice(workload, **generator, random, device);
}

// Few results and a long reduction, in parts of it by warps.
std::string CheckSeedInParts(uint64_t seed, Device* device) {
  Random random(seed);
  const int64_t parts = Between(random, 2, 3);
  const Sizes sizes{Between(random, 1, 2), Between(random, 4, 20), Between(random, 8, 20),
                    parts * 32 * Between(random, 4, 6) + (parts == 3 ? 3 * Between(random, 0, 1) : 0)};
  const SmallWorkload workload = Product(kTypes[random.Below(3)], sizes, static_cast<Around>(random.Below(3)));
  const auto generator = GeneratorOf(workload.func, "cuda:sm_90a,processors=3", kInParts);
  if (!generator.ok()) return std::string(generator.status().message());
  return CheckChoice(workload, **generator, random, device);
}

TEST(WarpProducts, RandomSchedulesAreRight) {
  const auto first = static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0));
  const Campaign campaign =
      RunCampaign(first, FromEnvironment("HONE_SEEDS", 30), [](uint64_t seed) { return CheckSeed(seed, nullptr); });
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
}

TEST(WarpProducts, RandomSchedulesInPartsAreRight) {
  const auto first = static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0));
  const Campaign campaign = RunCampaign(first, FromEnvironment("HONE_SEEDS", 4),
                                        [](uint64_t seed) { return CheckSeedInParts(seed, nullptr); });
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
}

TEST(WarpProducts, RandomSchedulesAreRightOnADevice) {
  const RuntimeResult<std::unique_ptr<Device>> device = OpenDevice("cuda:sm_90a");
  if (!device.ok()) GTEST_SKIP() << "no CUDA device of sm_90: " << device.error().message();
  const auto first = static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0));
  const auto seeds = static_cast<uint64_t>(FromEnvironment("HONE_SEEDS", 30));
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    EXPECT_EQ(CheckSeed(seed, device->get()), "") << seed;
    EXPECT_EQ(CheckSeedInParts(seed, device->get()), "") << seed << " in parts";
  }
}

// The choice with these values of the knobs.
Choice ChoiceOf(const Generator& generator, const std::vector<int64_t>& values) {
  Choice choice;
  for (size_t k = 0; k < values.size(); ++k) {
    const std::vector<int64_t>& candidates = generator.knobs()[k].candidates;
    const auto at = std::ranges::find(candidates, values[k]);
    HONE_CHECK(at != candidates.end()) << generator.knobs()[k].name << " is never " << values[k];
    choice.push_back(static_cast<int>(at - candidates.begin()));
  }
  return choice;
}

// A fault in the lowered program: the text that it changes, the time that it occurs, and what it becomes.
struct Fault {
  const char* what;
  const char* from;
  int time;  // from 0
  const char* to;
};
constexpr char kBarrier[] = "T.tvm_storage_sync(\"shared\")";
constexpr Fault kFaults[] = {
    {"no barrier before the copies of the next step", kBarrier, 0, "T.evaluate(0)"},
    {"no barrier after the copies", kBarrier, 1, "T.evaluate(0)"},
    {"no barrier before the results are taken", kBarrier, 2, "T.evaluate(0)"},
    {"rows of the left operand by other lanes", "threadIdx_y * 16 + threadIdx_x % 16, threadIdx_x // 16", 0,
     "threadIdx_y * 16 + threadIdx_x // 2, threadIdx_x // 16"},
    {"terms of the left operand by other lanes", "threadIdx_x // 16 * 8:threadIdx_x // 16 * 8 + 8", 0,
     "threadIdx_x % 2 * 8:threadIdx_x % 2 * 8 + 8"},
    {"terms of the left operand from the middle of a row", "threadIdx_x // 16 * 8:threadIdx_x // 16 * 8 + 8", 0,
     "threadIdx_x // 16 * 4:threadIdx_x // 16 * 4 + 8"},
    {"terms of the left operand for rows", "ldmatrix_x4_f16", 0, "ldmatrix_x4_trans_f16"},
    {"terms of the right operand by other lanes", "B_reindex_pad[threadIdx_x % 16, ax1_2", 0,
     "B_reindex_pad[threadIdx_x // 2, ax1_2"},
    {"terms of the right operand for columns", "ldmatrix_x2_trans_f16", 0, "ldmatrix_x2_f16"},
    {"the right operand of the other instruction", "ax1_2 * 8:ax1_2 * 8 + 8", 0, "(1 - ax1_2) * 8:(1 - ax1_2) * 8 + 8"},
    {"the sums of one instruction for both", "P_reindex_pad_local[0, ax1_2, 0, 0, 0:2, 0:2]", 0,
     "P_reindex_pad_local[0, 0, 0, 0, 0:2, 0:2]"},
    {"rows of the result in other registers", "ax1 * 8 + threadIdx_x // 4", 0, "(1 - ax1) * 8 + threadIdx_x // 4"},
    {"columns of the result in other lanes", "threadIdx_x % 4 * 2 + ax2", 0, "threadIdx_x // 8 * 2 + ax2"},
    {"both warps at the same rows", "threadIdx_y * 16 + ax1", 0, "ax1"},
    {"a sum that is not set to zero", "= T.float32(0)", 0, "= T.float32(1)"},
    {"terms beyond the end", "and ax4_0 * 16 + threadIdx_x % 16 < 40", 0, ""},
    {"a step too few", "for ax4_0 in range(3)", 0, "for ax4_0 in range(2)"},
    {"results beyond the end", " and blockIdx_x % 2 * 16 + threadIdx_x % 16 < 20:", 0, ":"},
};
// Elements of 8 bits, of which columns are loaded one by one.
constexpr Fault kFaultsOfElements[] = {
    {"terms of the right operand in other lanes", "+ threadIdx_x % 4 * 4 + r % 4", 0, "+ threadIdx_x // 8 * 4 + r % 4"},
    {"columns of the right operand in other lanes", "ax1_2 * 8 + threadIdx_x // 4]", 0, "ax1_2 * 8 + threadIdx_x % 8]"},
    {"the right operand of the other instruction", "ax1_2 * 8 + threadIdx_x // 4]", 0,
     "(1 - ax1_2) * 8 + threadIdx_x // 4]"},
};
// Rows of two pieces, which change places every four rows.
constexpr char kTurn[] = "T.bitwise_xor(";
constexpr Fault kFaultsOfSwizzles[] = {
    {"pieces of the left operand written elsewhere", kTurn, 0, "T.bitwise_or("},
    {"pieces of the right operand written elsewhere", kTurn, 1, "T.bitwise_or("},
};
constexpr Fault kFaultsOfStages[] = {
    {"a wait for fewer copies", "T.ptx_wait_group(1)", 0, "T.ptx_wait_group(2)"},
    {"no wait before the last step", "T.ptx_wait_group(0)", 0, "T.ptx_wait_group(1)"},
    {"no barrier after the wait", kBarrier, 0, "T.evaluate(0)"},
    {"no barrier in the last step", kBarrier, 2, "T.evaluate(0)"},
    {"the stage of another step is read", "A_reindex[ax4_0 % 3", 0, "A_reindex[(ax4_0 + 1) % 3"},
    {"the stage that is read is written", "B_reindex[(ax4_0 + 2) % 3", 0, "B_reindex[(ax4_0 + 3) % 3"},
    {"copies that no group holds", "T.ptx_commit_group()", 1, "T.evaluate(0)"},
    {"the terms of another step are copied", "B[0, ax4_0 * 16 +", 0, "B[0, ax4_0 * 8 +"},
    {"stages that share memory", "T.allocate((3, 32, 16)", 0, "T.allocate((2, 32, 16)"},
};

void ExpectFound(const SmallWorkload& workload, const std::vector<int64_t>& values, std::span<const Fault> faults,
                 const std::string& target = "cuda:sm_90a", const std::string& rule = kWhole) {
  const auto generator = GeneratorOf(workload.func, target, rule);
  ASSERT_TRUE(generator.ok()) << generator.status();
  const absl::StatusOr<PrimFunc> scheduled = Scheduled(**generator, ChoiceOf(**generator, values), workload.func);
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(*scheduled);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const Reference reference(workload);
  const std::string right = ToText(*lowered);
  ScheduledProgram program;
  program.main = *ParsePrimFunc(right);
  EXPECT_EQ(reference.CheckInterpreted(program), "");
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.what);
    size_t at = right.find(fault.from);
    for (int time = 0; time < fault.time && at != std::string::npos; ++time) at = right.find(fault.from, at + 1);
    ASSERT_NE(at, std::string::npos) << right;
    std::string wrong = right;
    const absl::StatusOr<PrimFunc> planted = ParsePrimFunc(wrong.replace(at, std::string(fault.from).size(), fault.to));
    ASSERT_TRUE(planted.ok()) << planted.status();
    program.main = *planted;
    EXPECT_NE(reference.CheckInterpreted(program), "");
  }
}

TEST(WarpProducts, PlantedFaultsAreFound) {
  ExpectFound(Product(kTypes[0], {1, 40, 20, 40}, Around::kBias), {2, 1, 1, 2, 1, 1, 1, 1}, kFaults);
}
TEST(WarpProducts, PlantedFaultsOfElementsAreFound) {
  ExpectFound(Product(kTypes[2], {1, 40, 20, 40}, Around::kBias), {2, 1, 1, 2, 1, 1, 1, 1}, kFaultsOfElements);
}
TEST(WarpProducts, PlantedFaultsOfSwizzlesAreFound) {
  ExpectFound(Product(kTypes[0], {1, 40, 20, 40}, Around::kBias), {2, 1, 1, 2, 1, 1, 1, 2}, kFaultsOfSwizzles);
}
TEST(WarpProducts, PlantedFaultsOfStagesAreFound) {
  ExpectFound(Product(kTypes[0], {1, 64, 16, 96}, Around::kBias), {2, 1, 1, 1, 1, 2, 3, 2}, kFaultsOfStages);
}

absl::StatusOr<DeviceProgram> ChosenByDraft(const SmallWorkload& workload, const std::string& rule = kWhole) {
  HONE_ASSIGN_OR_RETURN(const auto generator, GeneratorOf(workload.func, "cuda:sm_90a", rule));
  HONE_ASSIGN_OR_RETURN(const Choice choice, BestByDraft(*generator));
  HONE_ASSIGN_OR_RETURN(const PrimFunc scheduled, Scheduled(*generator, choice, workload.func));
  return LowerToDevice(scheduled);
}

// The first kernel multiplies by warps, of operands that are copied asynchronously; none spills.
void ExpectMachineCode(const Nvrtc& nvrtc, const DeviceProgram& program, const Types& types, const char* architecture) {
  SCOPED_TRACE(absl::StrCat(types.operand, " ", architecture));
  const absl::StatusOr<std::string> source = PrintKernels(program, CudaCpp(), CudaFeatures());
  ASSERT_TRUE(source.ok()) << source.status();
  const absl::StatusOr<CudaImage> image = nvrtc.Compile(*source, architecture);
  ASSERT_TRUE(image.ok()) << image.status();
  absl::StatusOr<std::vector<CudaKernel>> kernels = ReadCubin(*image);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), program.launches.size());
  for (const CudaKernel& kernel : *kernels)
    EXPECT_EQ(kernel.spill_stores + kernel.spill_loads + kernel.stack_bytes, 0) << ToJson(kernel);
  const auto first = std::ranges::find(*kernels, program.launches[0].kernel, &CudaKernel::name);
  ASSERT_NE(first, kernels->end());
  for (const char* instruction : {types.operand == std::string("int8") ? "IMMA" : "HMMA", "LDGSTS", "LDSM"})
    EXPECT_GT(first->instructions[instruction], 0) << ToJson(*first);
}

// For a network's sizes, on every architecture that NVRTC takes.
TEST(WarpProducts, MachineCodeMultipliesByWarpsAndDoesNotSpill) {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const Types& types : kTypes) {
    const SmallWorkload workload = Product(types, {1, 512, 512, 512}, Around::kBias);
    const absl::StatusOr<DeviceProgram> program = ChosenByDraft(workload);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->launches.size(), 1u);
    for (const char* architecture : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
      if (types.operand == std::string("int8") && architecture != std::string("sm_90a")) continue;
      ExpectMachineCode(**nvrtc, *program, types, architecture);
    }
  }
}

TEST(WarpProducts, MachineCodeOfPartsIsAProductAndASum) {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const SmallWorkload workload = Product(kTypes[1], {1, 64, 64, 8192}, Around::kBias);
  const absl::StatusOr<DeviceProgram> program = ChosenByDraft(workload, kInParts);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->launches.size(), 2u) << ToText(*program);
  for (const char* architecture : {"sm_80", "sm_90a"}) ExpectMachineCode(**nvrtc, *program, kTypes[1], architecture);
}

// Of the draft's choice for a large product: what asks for banks of shared memory, and how often in vain.
TEST(WarpProducts, FragmentsAreLoadedWithoutBankConflicts) {
  const SmallWorkload workload = Product(kTypes[1], {1, 1024, 1024, 1024}, Around::kNothing);
  const absl::StatusOr<DeviceProgram> program = ChosenByDraft(workload);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto counts = CountBankConflicts(program->launches[0], program->kernels[0]);
  ASSERT_TRUE(counts.ok()) << counts.status();
  int64_t loads = 0;
  for (const BankCount& count : *counts) {
    SCOPED_TRACE(count.statement);
    const bool of_results = count.statement.find("local") != std::string::npos;
    std::printf("%6lld requests, %6lld turns, %6lld at least: %.100s\n", static_cast<long long>(count.requests),
                static_cast<long long>(count.turns), static_cast<long long>(count.least), count.statement.c_str());
    if (!of_results) { EXPECT_EQ(count.conflicts(), 0); }
    loads += count.statement.find("ldmatrix") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(loads, 0);
}

// What the draft chooses for sizes of networks is the instruction of the types, where there is one.
TEST(WarpProducts, AreWhatTheDraftChooses) {
  for (const Types& types : kTypes) {
    const SmallWorkload workload = Product(types, {1, 128, 768, 768}, Around::kBias);
    const auto generators = GpuGenerators(workload.func, *ParseGpuTarget("cuda:sm_80"));
    ASSERT_TRUE(generators.ok()) << generators.status();
    const absl::StatusOr<Trace> trace = DefaultTrace(*generators);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_NE(OriginOf(*trace)->generator.find("warp_product("), std::string::npos) << OriginOf(*trace)->generator;
  }
  for (const Sizes& sizes : {Sizes{1, 64, 64, 8192}, Sizes{1, 1024, 1024, 1024}}) {
    const auto generators =
        GpuGenerators(Product(kTypes[1], sizes, Around::kBias).func, *ParseGpuTarget("cuda:sm_90a"));
    ASSERT_TRUE(generators.ok()) << generators.status();
    const absl::StatusOr<Trace> trace = DefaultTrace(*generators);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const std::string generator = OriginOf(*trace)->generator;
    EXPECT_NE(generator.find(sizes.k > 1024 ? kInParts : kWhole), std::string::npos) << generator;
  }
  EXPECT_FALSE(GeneratorOf(Product(kTypes[0], {1, 128, 768, 768}, Around::kBias).func, "opencl:generic").ok());
  EXPECT_FALSE(GeneratorOf(Product({"float32", "float32"}, {1, 128, 768, 768}, Around::kBias).func, "cuda:sm_80").ok());
}

}  // namespace
}  // namespace hone::testing
