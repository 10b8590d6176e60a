// Wrong variants of right schedules: what a worker does to verify a candidate rejects them, and never a right one.
//
// A variant counts where an exact evaluation (in double, on 8 inputs) differs from the original's; where it reads what
// was never written, with some number there. Variants that leave a buffer's bounds have no value to compare: each is
// wrong, whatever it leaves in the outputs, and counted beside the others. Every variant is compiled, and run and
// judged by the worker's own VerifyCandidate against the oracle of the workload; a compiler that refuses or dies
// rejects it too, as a builder's would.
//   HONE_SEEDS=10000 worker_agent_tests --gtest_filter=Mutants.*
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>

#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/sandbox/layers.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/mutants.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/worker/agent/host_task.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/agent/trials/verify_candidate.h"

namespace hone::testing {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(20);
constexpr int kInputs = 8, kTries = 15;

// ---- What is right ----

std::vector<NdArray> ExactArguments(const PrimFunc& workload, int input) {
  return RandomArguments(workload, 1000 + static_cast<uint64_t>(input),
                         input % 2 == 0 ? InputKind::kInteger : InputKind::kUniform);
}

absl::Status EvaluateExactly(const ScheduledProgram& program, std::vector<NdArray>& args) {
  for (const Prepare& prepare : program.prepares) {
    std::vector<int64_t> shape;
    for (const Expr& extent : prepare.func.params[1].shape()) shape.push_back(*ConstantValue(extent));
    std::vector<NdArray> packing = {args[prepare.param], NdArray(prepare.func.params[1].type(), shape)};
    HONE_RETURN_IF_ERROR(Interpret(prepare.func, packing));
    args[prepare.param] = packing[1];
  }
  return Interpret(program.main, args, {.double_accumulation = true, .max_steps = 50'000'000});
}

bool Differ(const PrimFunc& workload, const std::vector<NdArray>& a, const std::vector<NdArray>& b) {
  for (size_t p = workload.params.size() - workload.num_outputs(); p < workload.params.size(); ++p) {
    for (int64_t i = 0; i < a[p].NumElements(); ++i) {
      const double x = a[p].Get(i), y = b[p].Get(i);
      // Both were rounded to the output's type from sums in double, which a reordering changes by 1e-15 or so.
      const double tolerance = a[p].dtype.bits < 64 && a[p].dtype.is_float() ? 1e-6 : 1e-12;
      if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y))) && !(std::isnan(x) && std::isnan(y)) && x != y) {
        return true;
      }
    }
  }
  return false;
}

// The program with every buffer that it writes full of a number before: what it reads unwritten is that, and shows in
// the outputs or does not.
PrimFunc StartedWith(const PrimFunc& program, int number) {
  const auto fill = [number](const Buffer& buffer) {
    std::vector<Expr> indices;
    std::vector<For> loops;
    for (const Expr& extent : buffer.shape()) {
      For loop;
      loop.var = Var("fill", extent.type());
      loop.min = IntConst(0, extent.type());
      loop.extent = extent;
      indices.push_back(loop.var);
      loops.push_back(loop);
    }
    const DType type = buffer.type();
    const Expr value = type.is_float()  ? FloatConst(number, type)
                       : type.is_bool() ? IntConst(number > 0, type)
                                        : IntConst(type.code == TypeCode::kUInt ? std::abs(number) : number, type);
    Stmt stmt = Stmt::Make(Store{buffer, indices, value, Expr()});
    for (size_t i = loops.size(); i-- > 0;) {
      loops[i].body = stmt;
      stmt = Stmt::Make(loops[i]);
    }
    return stmt;
  };
  PrimFunc filled = program;
  filled.body = RewriteBottomUp(program.body, [&](const Stmt& stmt) -> std::optional<Stmt> {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || realize->block.allocs.empty()) return std::nullopt;
    BlockRealize changed = *realize;
    std::vector<Stmt> stmts;
    for (const Buffer& buffer : realize->block.allocs) stmts.push_back(fill(buffer));
    stmts.push_back(realize->block.body);
    changed.block.body = MakeSeq(std::move(stmts));
    return Stmt::Make(std::move(changed));
  });
  std::vector<Stmt> stmts;
  for (size_t p = program.params.size() - program.num_outputs(); p < program.params.size(); ++p) {
    stmts.push_back(fill(program.params[p]));
  }
  stmts.push_back(filled.body);
  filled.body = MakeSeq(std::move(stmts));
  return filled;
}

enum class Truth { kSame, kWrong, kOutside };
Truth Judge(const PrimFunc& workload, const ScheduledProgram& mutant) {
  Truth truth = Truth::kSame;
  for (int input = 0; input < kInputs; ++input) {
    std::vector<NdArray> want = ExactArguments(workload, input), got = want;
    const absl::Status plain = Interpret(workload, want, {.double_accumulation = true});
    HONE_CHECK(plain.ok()) << plain;
    const absl::Status ran = EvaluateExactly(mutant, got);
    if (ran.code() == absl::StatusCode::kFailedPrecondition) {  // it reads what nobody wrote: of use to an output?
      for (const int number : {101, -101}) {
        std::vector<NdArray> filled = ExactArguments(workload, input);
        const absl::Status again = EvaluateExactly({StartedWith(mutant.main, number), mutant.prepares}, filled);
        if (!again.ok()) return Truth::kOutside;
        if (Differ(workload, filled, want)) truth = Truth::kWrong;
      }
      continue;
    }
    if (!ran.ok()) return Truth::kOutside;
    if (Differ(workload, got, want)) truth = Truth::kWrong;
  }
  return truth;
}

// ---- What the worker says ----

// The task of a workload, made once.
const TaskContext& TaskOf(const std::string& name, const PrimFunc& workload) {
  static auto& tasks = *new std::map<std::string, std::unique_ptr<TaskContext>>;
  static auto& builders = *new BuilderPool(1, "", LayersSomeSystemsLack());
  std::unique_ptr<TaskContext>& task = tasks[name];
  if (task == nullptr) {
    absl::StatusOr<std::unique_ptr<TaskContext>> made = HostTask(ToText(workload), builders, kLimit);
    HONE_CHECK(made.ok()) << name << ": " << made.status();
    task = *std::move(made);
  }
  return *task;
}

struct Image {
  std::string image, kernel_set;
};

// In a process of its own, as a builder is: a program that is not right may be one the compiler dies of.
std::optional<Image> Build(const ScheduledProgram& program, int threads) {
  constexpr size_t kRoom = 16 << 20;
  struct Answer {
    size_t image, kernel_set;
    char bytes[kRoom];
  };
  auto* answer = static_cast<Answer*>(
      mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  HONE_CHECK(answer != MAP_FAILED);
  std::fflush(nullptr);
  const pid_t child = fork();
  HONE_CHECK(child >= 0);
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    const absl::StatusOr<CompiledKernel> kernel = CompileKernel(program, HostTarget(), {.threads = threads});
    if (!kernel.ok()) _exit(1);
    const absl::StatusOr<std::string> image = LinkImage({&kernel->object, 1});
    if (!image.ok()) _exit(1);
    const std::string set = Serialize(kernel->set);
    if (image->size() + set.size() > kRoom) _exit(1);
    std::copy(image->begin(), image->end(), answer->bytes);
    std::copy(set.begin(), set.end(), answer->bytes + image->size());
    answer->image = image->size();
    answer->kernel_set = set.size();
    _exit(0);
  }
  int status = 0;
  HONE_CHECK(waitpid(child, &status, 0) == child);
  std::optional<Image> built;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    built = Image{std::string(answer->bytes, answer->image),
                  std::string(answer->bytes + answer->image, answer->kernel_set)};
  }
  munmap(answer, sizeof(Answer));
  return built;
}

// "" when the worker takes it, else why it does not.
std::string Rejected(const TaskContext& task, const ScheduledProgram& program, int threads) {
  const std::optional<Image> built = Build(program, threads);
  if (!built.has_value()) return "it cannot be built";
  const VerifyLimits limits = {.threads = threads, .run = kLimit};
  Verified verified = VerifyCandidate(task, built->image, built->kernel_set, NumericLevel::kDefault, limits);
  for (int retry = 0; retry < 3 && verified.kind == v1::OUTCOME_INFRA; ++retry) {
    verified = VerifyCandidate(task, built->image, built->kernel_set, NumericLevel::kDefault, limits);
  }
  HONE_CHECK(verified.kind != v1::OUTCOME_INFRA) << verified.detail;
  if (verified.kind == v1::OUTCOME_UNSPECIFIED) return "";
  return absl::StrCat(v1::OutcomeKind_Name(verified.kind), ": ", verified.detail);
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed, 77);
  const std::vector<SmallWorkload>& table = SmallWorkloads();
  const SmallWorkload& workload = table[random.Below(table.size())];
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  const ScheduledProgram right = player.schedule().Program();
  const TaskContext& task = TaskOf(workload.name, workload.func);
  const int threads = 1 + static_cast<int>(seed % 2);
  const std::string rejected = Rejected(task, right, threads);
  Count("right schedules");
  if (!rejected.empty()) {
    return absl::StrCat(workload.name, ", a right schedule: ", rejected, "\n", ToText(player.schedule().trace()),
                        ToText(right.main));
  }
  for (int i = 0; i < kTries; ++i) {
    const size_t kind = (seed + static_cast<uint64_t>(i)) % kDefectNames.size();
    const std::string name(kDefectNames[kind]);
    const std::optional<PrimFunc> changed = WithDefect(right.main, static_cast<Defect>(kind), random);
    if (!changed.has_value()) continue;
    const ScheduledProgram mutant = {*changed, right.prepares};
    const bool refused = !Verify(mutant.main).ok() || !CheckInitialised(ExpandVectorOps(mutant.main)).ok();
    const Truth truth = refused ? Truth::kWrong : Judge(workload.func, mutant);
    if (truth == Truth::kSame) continue;
    const std::string why = Rejected(task, mutant, threads);
    const std::string beside = truth == Truth::kOutside ? ", outside" : "";
    Count(absl::StrCat(name, beside, ": wrong"));
    if (refused) Count(absl::StrCat(name, ": static verifier"));
    if (why.empty()) {
      Count(absl::StrCat(name, beside, ": accepted"));
      std::fprintf(stderr, "accepted: seed %llu, %s, %s%s\n", static_cast<unsigned long long>(seed),
                   workload.name.c_str(), name.c_str(), beside.c_str());
      if (FromEnvironment("HONE_SHOW", 0) != 0) {
        std::fprintf(stderr, "%s\n%s", ToText(right.main).c_str(), ToText(mutant.main).c_str());
      }
    }
    if (truth == Truth::kWrong) break;
  }
  return "";
}

TEST(Mutants, AreRejectedAndRightSchedulesAreNot) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 25), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  int64_t wrong = 0, accepted = 0, statically = 0, outside = 0, outside_accepted = 0;
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-36s %8lld\n", name.c_str(), static_cast<long long>(count));
    const bool beside = name.find(", outside") != std::string::npos;
    if (name.ends_with(": wrong")) (beside ? outside : wrong) += count;
    if (name.ends_with(": accepted")) (beside ? outside_accepted : accepted) += count;
    if (name.ends_with(": static verifier")) statically += count;
  }
  std::printf(
      "wrong variants %lld, accepted %lld (%.3f %% rejected; the static verifier alone %.3f %%)\n"
      "variants that leave their buffers %lld, accepted %lld\n",
      static_cast<long long>(wrong), static_cast<long long>(accepted),
      100.0 * static_cast<double>(wrong - accepted) / static_cast<double>(std::max<int64_t>(1, wrong)),
      100.0 * static_cast<double>(statically) / static_cast<double>(std::max<int64_t>(1, wrong)),
      static_cast<long long>(outside), static_cast<long long>(outside_accepted));
  EXPECT_GT(wrong, 0);
  EXPECT_GT(outside, 0);
  EXPECT_LE(accepted * 10000, wrong) << "99.99 % are to be rejected";
  EXPECT_LE(outside_accepted * 10000, outside) << "99.99 % of those that leave their buffers too";
}

// Those that were accepted once: two whose vectorised loops read what other iterations write, where vectors happened to
// be right, a maximum over part of a window, three that read elements which no store writes, from memory that held the
// right numbers, and one that runs an iteration too many, which wrote the right number to its neighbour's place.
TEST(Mutants, ThatWereAcceptedOnceAreRejected) {
  for (const uint64_t seed : {3940, 11787, 15344, 15391, 16594, 20298, 47376}) {
    for (int time = 0; time < 4; ++time) {
      const Campaign campaign = RunCampaign(seed, 1, CheckSeed);
      EXPECT_THAT(campaign.reports, ::testing::IsEmpty());
      int64_t wrong = 0;
      for (const auto& [name, count] : campaign.counts) {
        if (name.ends_with(": wrong")) wrong += count;
        if (name.ends_with(": accepted")) { EXPECT_EQ(count, 0) << "seed " << seed << ", " << name; }
      }
      EXPECT_GE(wrong, 1) << seed;
    }
  }
}

// "" when the candidate is right on every set of its task, of which VerifyCandidate tries two where they are large.
std::string RejectedOnAnySet(const TaskContext& task, const ScheduledProgram& program, NumericLevel level) {
  const std::optional<Image> built = Build(program, 1);
  if (!built.has_value()) return "it cannot be built";
  Verified started = StartCandidate(task, built->image, built->kernel_set, {.run = kLimit});
  if (!started.runner.has_value()) return started.detail;
  std::vector<int> sets(static_cast<size_t>(task.num_sets()));
  std::iota(sets.begin(), sets.end(), 0);
  return VerifyOn(task, *started.runner, sets, level, kLimit).detail;
}

ScheduledProgram ByAlgorithm(const PrimFunc& workload, const std::string& algorithm) {
  Schedule schedule(workload);
  const absl::StatusOr<BlockRef> block = GetBlock(schedule, "conv");
  HONE_CHECK(block.ok()) << block.status();
  const absl::Status chosen = ChooseAlgorithm(schedule, *block, algorithm).status();
  HONE_CHECK(chosen.ok()) << chosen;
  return schedule.Program();
}

// Minimal filtering rounds other numbers than the sum it stands for: on every kind of inputs that a task has, small or
// large, it must be right.
TEST(RightSchedules, ByAnotherAlgorithmAreNotRejected) {
  for (const ConvShape& shape : {ConvShape{13, 9, 8, 5}, ConvShape{14, 14, 4, 4}, ConvShape{9, 17, 24, 8},
                                 ConvShape{28, 28, 32, 16}, ConvShape{56, 56, 16, 8}}) {
    SCOPED_TRACE(absl::StrCat(shape.height, "x", shape.width, "x", shape.in));
    const PrimFunc workload = ConvBiasResidualRelu(shape);
    const TaskContext& task = TaskOf(absl::StrCat("conv 3x3 ", shape.height, " ", shape.in), workload);
    for (const std::string& algorithm : AlgorithmNames()) {
      EXPECT_EQ(RejectedOnAnySet(task, ByAlgorithm(workload, algorithm), NumericLevel::kDefault), "") << algorithm;
    }
  }
}

// Nor is the workload as it stands at strict, where inputs of any kind tell the other algorithms from it.
TEST(RightSchedules, ByAnotherAlgorithmAreNotStrict) {
  const PrimFunc workload = ConvBiasResidualRelu({14, 14, 4, 4});
  const TaskContext& task = TaskOf("conv 3x3 14 4", workload);
  EXPECT_EQ(RejectedOnAnySet(task, {workload, {}}, NumericLevel::kStrict), "");
  EXPECT_NE(RejectedOnAnySet(task, ByAlgorithm(workload, "winograd_4x4_3x3"), NumericLevel::kStrict), "");
}

}  // namespace
}  // namespace hone::testing
