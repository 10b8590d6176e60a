// Data races among the threads and blocks of a launch.
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

struct RaceCase {
  const char* name;
  const char* body;  // under blocks b, threads t, with S in shared memory
  const char* message;
};

std::string ProgramWith(const char* body) {
  return std::string(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.allocate((4,), "float32", scope="shared") as S:
)") + body;
}

class RaceTest : public testing::TestWithParam<RaceCase> {};

TEST_P(RaceTest, IsFoundOrThereIsNone) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(ProgramWith(GetParam().body));
  ASSERT_TRUE(f.ok()) << f.status();
  ASSERT_TRUE(Verify(*f).ok()) << Verify(*f);
  std::vector<NdArray> args = RandomArguments(*f, 1, InputKind::kInteger);
  const absl::Status status = Interpret(*f, args, {.check_uninitialised = false});
  EXPECT_EQ(std::string(status.message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RaceTest,
    testing::Values(
        RaceCase{"None", R"(
                S[t] = A[b * 4 + t]
                T.tvm_storage_sync("shared")
                B[b * 4 + t] = S[3 - t]
)",
                 ""},
        RaceCase{"WriteThenRead", R"(
                S[t] = A[b * 4 + t]
                B[b * 4 + t] = S[3 - t]
)",
                 "interpreting main: data race for S[2]: thread blockIdx.x = 0, threadIdx.x = 1 reads it in `B[b * 4 + "
                 "t] = S[3 - t]`, thread blockIdx.x = 0, threadIdx.x = 2 writes it in `S[t] = A[b * 4 + t]`, and no "
                 "barrier stands between"},
        RaceCase{"ReadThenWriteInTheNextIteration", R"(
                for k in range(2):
                    S[t] = A[b * 4 + t]
                    T.tvm_storage_sync("shared")
                    B[b * 4 + t] = S[3 - t]
)",
                 "interpreting main: data race for S[1]: thread blockIdx.x = 0, threadIdx.x = 1 writes it in `S[t] = "
                 "A[b * 4 + t]`, thread blockIdx.x = 0, threadIdx.x = 2 reads it in `B[b * 4 + t] = S[3 - t]`, and no "
                 "barrier stands between"},
        RaceCase{
            "TwoThreadsWriteOneElement", R"(
                B[b * 4 + t // 2] = A[t]
)",
            "interpreting main: data race for B[0]: thread blockIdx.x = 0, threadIdx.x = 0 writes it in `B[b * 4 + "
            "t // 2] = A[t]`, thread blockIdx.x = 0, threadIdx.x = 1 writes it in `B[b * 4 + t // 2] = A[t]`, and "
            "no barrier stands between"},
        RaceCase{"TwoBlocksWriteOneElementOverABarrier", R"(
                if b == 0:
                    B[t] = A[t]
                T.tvm_storage_sync("shared")
                if b == 1:
                    B[3 - t] = A[t]
)",
                 "interpreting main: data race for B[3]: thread blockIdx.x = 0, threadIdx.x = 3 writes it in `B[t] = "
                 "A[t]`, thread blockIdx.x = 1, threadIdx.x = 0 writes it in `B[3 - t] = A[t]`, and nothing orders "
                 "blocks of one launch"},
        RaceCase{
            "AThirdThreadReads", R"(
                if t < 2:
                    B[t + 4 * b] = S[3]
                if t == 1:
                    S[3] = A[t]
)",
            "interpreting main: data race for S[3]: thread blockIdx.x = 0, threadIdx.x = 0 reads it in `B[t + 4 * b] = "
            "S[3]`, thread blockIdx.x = 0, threadIdx.x = 1 writes it in `S[3] = A[t]`, and no barrier stands between"},
        RaceCase{"AtomicUpdatesDoNotRace", R"(
                T.evaluate(T.atomic_add(B[b], A[t]))
)",
                 ""},
        RaceCase{"AnAtomicUpdateAndARead", R"(
                T.evaluate(T.atomic_add(B[b], A[t]))
                B[4 * b + t] = B[b]
)",
                 "interpreting main: data race for B[0]: thread blockIdx.x = 0, threadIdx.x = 0 writes it in `B[4 * b "
                 "+ t] = B[b]`, thread blockIdx.x = 0, threadIdx.x = 1 reads it in `T.evaluate(T.atomic_add(B[b], "
                 "A[t]))`, and no barrier stands between"},
        RaceCase{"AThreadsOwnRegister", R"(
                with T.allocate((1,), "float32", scope="local") as mine:
                    mine[0] = A[t]
                    B[b * 4 + t] = mine[0]
)",
                 ""}),
    [](const auto& info) { return std::string(info.param.name); });

// The code of a thread of axis y is that of all its threads of axis x, which the loop inside makes.
TEST(RacesTest, ThreadsOfTwoAxes) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for y in T.thread_binding(2, thread="threadIdx.y"):
        with T.allocate((2,), "float32", scope="shared") as S:
            S[y] = A[y]
            for x in T.thread_binding(4, thread="threadIdx.x"):
                B[y * 4 + x] = S[y] + S[(y + x) % 2]
)");
  ASSERT_TRUE(f.ok()) << f.status();
  std::vector<NdArray> args = RandomArguments(*f, 1, InputKind::kInteger);
  EXPECT_EQ(
      Interpret(*f, args, {.check_uninitialised = false}).message(),
      "interpreting main: data race for S[1]: thread threadIdx.y = 1 writes it in `S[y] = A[y]`, thread threadIdx.x "
      "= 1, threadIdx.y = 0 reads it in `B[y * 4 + x] = S[y] + S[(y + x) % 2]`, and no barrier stands between");
}

// A loop over the same axis inside means nothing before lowering has made one of the two.
TEST(RacesTest, AnAxisIsBoundOnce) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(ProgramWith(R"(
                for u in T.thread_binding(4, thread="threadIdx.x"):
                    B[b * 4 + u] = A[u]
)"));
  ASSERT_TRUE(f.ok()) << f.status();
  std::vector<NdArray> args = RandomArguments(*f, 1, InputKind::kInteger);
  EXPECT_EQ(
      Interpret(*f, args).message(),
      "interpreting main: loop u is bound to threadIdx.x inside another loop over threadIdx.x; lowering makes one "
      "of the two");
}

}  // namespace
}  // namespace hone
