// The worked program that the language was learned from: a product of 128 x 128 matrices with ReLU, scheduled by split,
// reorder, reverse_compute_at and decompose_reduction. The result is golden, and what it makes possible is measured.
#include <gtest/gtest.h>

#include <chrono>

#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {
namespace {

constexpr char kProgram[] = R"(
@T.prim_func
def mm_relu(A: T.Buffer[(128, 128), "float32"], B: T.Buffer[(128, 128), "float32"], C: T.Buffer[(128, 128), "float32"]) -> None:
    T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
    Y = T.alloc_buffer([128, 128], dtype="float32")
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(Y[vi, vj])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(Y[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

constexpr char kTrace[] = R"(
block_Y = sch.get_block("Y", func_name="mm_relu")
i, j, k = sch.get_loops(block_Y)
j0, j1 = sch.split(j, factors=[None, 4])
sch.reorder(j0, k, j1)
block_C = sch.get_block("C", func_name="mm_relu")
sch.reverse_compute_at(block_C, j0)
sch.decompose_reduction(block_Y, k)
)";

// The order of loops alone gains nothing: a loop is unrolled or vectorised where the schedule says it and not
// elsewhere. What was reordered can be said to be: columns stand side by side, where sums of one element depend on each
// other.
constexpr char kVectorized[] = "sch.vectorize(j1)\n";

// The published text but for the order in which the second block names what it reads.
constexpr char kScheduled[] = R"(
@T.prim_func
def mm_relu(A: T.Buffer[(128, 128), "float32"], B: T.Buffer[(128, 128), "float32"], C: T.Buffer[(128, 128), "float32"]) -> None:
    T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
    Y = T.alloc_buffer([128, 128], dtype="float32")
    for i, j_0 in T.grid(128, 32):
        for j_1_init in T.serial(4):
            with T.block("Y_init"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1_init)
                T.reads()
                T.writes(Y[vi, vj])
                Y[vi, vj] = T.float32(0)
        for k, j_1 in T.grid(128, 4):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1)
                vk = T.axis.reduce(128, k)
                T.reads(A[vi, vk], B[vk, vj], Y[vi, vj])
                T.writes(Y[vi, vj])
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for ax0 in T.serial(4):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + ax0)
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

PrimFunc Parsed(const char* text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  HONE_CHECK(f.ok()) << f.status();
  return *std::move(f);
}

// A kernel that stays loaded, with arguments of its own.
class Loaded {
 public:
  Loaded(const ScheduledProgram& program, const PrimFunc& workload)
      : kernel_(Get(CompileKernel(program, HostTarget(), {.threads = 1}))),
        args_(RandomArguments(workload, 1, InputKind::kUniform)) {
    const std::string bytes = Get(LinkImage({&kernel_.object, 1}));
    RuntimeResult<Image> image = Image::Load(bytes);
    HONE_CHECK(image.ok());
    image_ = std::make_unique<Image>(std::move(*image));
    RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(1);
    HONE_CHECK(pool.ok());
    pool_ = std::move(*pool);
    RuntimeResult<Invocation> invocation = Invocation::Create(*image_, kernel_.set, *pool_);
    HONE_CHECK(invocation.ok());
    invocation_ = std::make_unique<Invocation>(std::move(*invocation));
    std::vector<void*> tensors;
    for (NdArray& arg : args_) tensors.push_back(arg.data.data());
    HONE_CHECK(!invocation_->Prepare(tensors));
    invocation_->Bind(tensors);
  }
  double Seconds() {
    const auto start = std::chrono::steady_clock::now();
    HONE_CHECK(invocation_->Run() == 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const std::vector<NdArray>& args() const { return args_; }

 private:
  CompiledKernel kernel_;
  std::vector<NdArray> args_;
  std::unique_ptr<Image> image_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Invocation> invocation_;
};

TEST(WorkedProgram, IsGolden) {
  const PrimFunc workload = Parsed(kProgram);
  const Schedule schedule = Get(Replay(Get(ParseTrace(kTrace)), workload));
  EXPECT_TRUE(StructuralEqual(schedule.func(), Parsed(kScheduled))) << ToText(schedule.func());
  ExpectReplays(schedule, workload);
}

TEST(WorkedProgram, IsFasterScheduled) {
  const PrimFunc workload = Parsed(kProgram);
  const Schedule schedule = Get(Replay(Get(ParseTrace(std::string(kTrace) + kVectorized)), workload));
  Loaded before({workload, {}}, workload), after(schedule.Program(), workload);
  double plain = 1e9, scheduled = 1e9;
  for (int round = 0; round < 15; ++round) {  // in turn: what slows one down slows the other
    plain = std::min(plain, before.Seconds());
    scheduled = std::min(scheduled, after.Seconds());
  }
  ExpectOutputsNear(workload, after.args(), before.args(), 1e-4);
  RecordProperty("unscheduled_us", static_cast<int>(plain * 1e6));
  RecordProperty("scheduled_us", static_cast<int>(scheduled * 1e6));
  RecordProperty("gain_percent", static_cast<int>(100 * plain / scheduled));
  std::printf("unscheduled %.0f us, scheduled %.0f us, gain %.2f\n", plain * 1e6, scheduled * 1e6, plain / scheduled);
  EXPECT_GT(plain / scheduled, 1.5);  // four lanes; 4.0 on a Zen 3
}

}  // namespace
}  // namespace hone::testing
