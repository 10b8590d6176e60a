// Asynchronous copies: when they land, and who touches what they are about to.
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {
namespace {

PrimFunc ProgramWith(const std::string& body) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((3, 4), "float32"), B: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.allocate((3, 4), "float32", scope="shared") as S:
)" + body);
  EXPECT_TRUE(f.ok()) << f.status().ToString();
  if (!f.ok()) return PrimFunc{};
  EXPECT_TRUE(Verify(*f).ok()) << Verify(*f).ToString();
  EXPECT_EQ(ReadBackError(*f), "");
  return *std::move(f);
}

struct CopyCase {
  const char* name;
  const char* body;
  const char* message;
};
class AsyncCopyTest : public testing::TestWithParam<CopyCase> {};

// Whenever the copies land, the verdict is the same.
TEST_P(AsyncCopyTest, IsFoundOrThereIsNone) {
  const PrimFunc f = ProgramWith(GetParam().body);
  for (const Landing landing : {Landing::kEarliest, Landing::kLatest, Landing::kRandom}) {
    std::vector<NdArray> args = RandomArguments(f, 1, InputKind::kInteger);
    const absl::Status status = Interpret(f, args, {.check_uninitialised = false, .landing = landing, .seed = 3});
    const std::string prefix = *GetParam().message == '\0' ? "" : "interpreting main: ";
    EXPECT_EQ(std::string(status.message()), prefix + GetParam().message) << static_cast<int>(landing);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AsyncCopyTest,
    testing::Values(
        CopyCase{"WaitedForAndABarrier", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.tvm_storage_sync("shared")
            B[t] = S[0, 3 - t]
)",
                 ""},
        CopyCase{"TheOlderOfTwoGroups", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.evaluate(T.async_copy(S[1, t], T.if_then_else(t < 2, A[1, t], T.float32(0))))
            T.ptx_commit_group()
            T.ptx_wait_group(1)
            B[t] = S[0, t]
            T.ptx_wait_group(0)
            B[t] = B[t] + S[1, t]
)",
                 ""},
        CopyCase{"ReadBeforeItLanded", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            B[t] = S[0, t]
            T.ptx_wait_group(0)
)",
                 "thread threadIdx.x = 0 reads S[0, 0] in `B[t] = S[0, t]` before the asynchronous copy to it in "
                 "`T.evaluate(T.async_copy(S[0, t], A[0, t]))` by thread threadIdx.x = 0 has landed; that thread has "
                 "to wait for it first"},
        CopyCase{"AnotherThreadReadsBeforeItLanded", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.tvm_storage_sync("shared")
            B[t] = S[0, 3 - t]
            T.ptx_wait_group(0)
)",
                 "thread threadIdx.x = 0 reads S[0, 3] in `B[t] = S[0, 3 - t]` before the asynchronous copy to it in "
                 "`T.evaluate(T.async_copy(S[0, t], A[0, t]))` by thread threadIdx.x = 3 has landed; that thread has "
                 "to wait for it first"},
        CopyCase{"OneGroupTooManyLeft", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.evaluate(T.async_copy(S[1, t], A[1, t]))
            T.ptx_commit_group()
            T.ptx_wait_group(1)
            B[t] = S[1, t]
            T.ptx_wait_group(0)
)",
                 "thread threadIdx.x = 0 reads S[1, 0] in `B[t] = S[1, t]` before the asynchronous copy to it in "
                 "`T.evaluate(T.async_copy(S[1, t], A[1, t]))` by thread threadIdx.x = 0 has landed; that thread has "
                 "to wait for it first"},
        CopyCase{"NeverCommitted", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_wait_group(0)
            B[t] = S[0, t]
)",
                 "thread threadIdx.x = 0 reads S[0, 0] in `B[t] = S[0, t]` before the asynchronous copy to it in "
                 "`T.evaluate(T.async_copy(S[0, t], A[0, t]))` by thread threadIdx.x = 0 has landed; that thread has "
                 "to wait for it first"},
        CopyCase{"NeverWaitedFor", R"(
            B[t] = A[0, t]
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
)",
                 "the asynchronous copy in `T.evaluate(T.async_copy(S[0, t], A[0, t]))` by thread threadIdx.x = 0 has "
                 "not landed when the thread ends: it is never waited for"},
        CopyCase{"TheDestinationIsOverwritten", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            S[0, t] = T.float32(1)
            T.ptx_wait_group(0)
)",
                 "thread threadIdx.x = 0 writes S[0, 0] in `S[0, t] = T.float32(1)` before the asynchronous copy to it "
                 "in `T.evaluate(T.async_copy(S[0, t], A[0, t]))` by thread threadIdx.x = 0 has landed; that thread "
                 "has to wait for it first"},
        CopyCase{"TheSourceIsOverwritten", R"(
            B[t] = A[0, t]
            T.evaluate(T.async_copy(S[0, t], B[t]))
            T.ptx_commit_group()
            B[t] = T.float32(1)
            T.ptx_wait_group(0)
)",
                 "thread threadIdx.x = 0 writes B[0] in `B[t] = T.float32(1)` before the asynchronous copy from it in "
                 "`T.evaluate(T.async_copy(S[0, t], B[t]))` by thread threadIdx.x = 0 has landed; that thread has to "
                 "wait for it first"},
        CopyCase{"NoBarrierBehindTheWait", R"(
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.tvm_storage_sync("shared")
            T.ptx_wait_group(0)
            B[t] = S[0, t // 2]
)",
                 "data race for S[0, 0]: thread threadIdx.x = 0 writes it in `T.evaluate(T.async_copy(S[0, t], A[0, "
                 "t]))`, thread threadIdx.x = 1 reads it in `B[t] = S[0, t // 2]`, and no barrier stands between"},
        CopyCase{"NoBarrierInFrontOfTheCopy", R"(
            S[0, 3 - t] = A[1, t]
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            B[t] = S[0, t]
)",
                 "data race for S[0, 1]: thread threadIdx.x = 1 writes it in `T.evaluate(T.async_copy(S[0, t], A[0, "
                 "t]))`, thread threadIdx.x = 2 writes it in `S[0, 3 - t] = A[1, t]`, and no barrier stands between"}),
    [](const auto& info) { return std::string(info.param.name); });

// With nobody to object, a program that does not wait reads what the moment of landing gives it.
TEST(AsyncCopiesTest, LandAtTheMomentThatIsAskedFor) {
  const PrimFunc f = ProgramWith(R"(
            S[0, t] = T.float32(-1)
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            B[t] = S[0, t]
            T.ptx_wait_group(0)
)");
  const auto landed = [&](Landing landing, uint64_t seed) {
    const std::vector<float> input = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    std::vector<NdArray> args = {NdArray::Of<float>(kFloat32, {3, 4}, input), NdArray(kFloat32, {4})};
    const absl::Status status = Interpret(f, args, {.check_races = false, .landing = landing, .seed = seed});
    EXPECT_TRUE(status.ok()) << status;
    return std::vector<float>(args[1].As<float>(), args[1].As<float>() + 4);
  };
  EXPECT_THAT(landed(Landing::kEarliest, 0), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(landed(Landing::kLatest, 0), testing::ElementsAre(-1, -1, -1, -1));
  int some = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> at = landed(Landing::kRandom, seed);
    const auto late = std::count(at.begin(), at.end(), -1.0f);
    some += late > 0 && late < 4;
  }
  EXPECT_GT(some, 0);
}

TEST(AsyncCopiesTest, OutsideOfThreadsThereIsNobodyToMakeThem) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    with T.allocate((4,), "float32", scope="shared") as S:
        T.evaluate(T.async_copy(S[0], A[0]))
)");
  ASSERT_TRUE(f.ok()) << f.status();
  std::vector<NdArray> args = RandomArguments(*f, 1, InputKind::kInteger);
  EXPECT_EQ(Interpret(*f, args).message(),
            "interpreting main: an asynchronous copy stands outside of the threads of a launch, which are what makes "
            "it");
}

TEST(AsyncCopiesTest, GoFromGlobalToSharedMemory) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.evaluate(T.async_copy(B[0], A[0]))
)");
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_EQ(Verify(*f).message(),
            "async-copy: function main: from A in scope global to B in scope global; an asynchronous copy takes one "
            "element from global to shared memory");
}

}  // namespace
}  // namespace hone
