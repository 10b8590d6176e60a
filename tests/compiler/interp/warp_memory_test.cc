// Memory in scope warp: an instance for each warp of a block.
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

// Under block b, threads t along x and w along y.
std::string WarpProgram(int y, int x, const std::string& body) {
  return "@T.prim_func\ndef main(A: T.Buffer((128,), \"float32\"), B: T.Buffer((128,), \"float32\")):\n"
         "    for w in T.thread_binding(" +
         std::to_string(y) + ", thread=\"threadIdx.y\"):\n        for t in T.thread_binding(" + std::to_string(x) +
         ", thread=\"threadIdx.x\"):\n            S = T.allocate((32,), \"float32\", scope=\"warp\")\n" + body;
}

absl::Status RunWarpProgram(const std::string& text, std::vector<NdArray>& args, bool check_uninitialised = true) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  if (!f.ok()) return f.status();
  if (const absl::Status valid = Verify(*f); !valid.ok()) return valid;
  args = RandomArguments(*f, 1, InputKind::kInteger);
  return Interpret(*f, args, {.check_uninitialised = check_uninitialised});
}

TEST(WarpMemory, LanesExchangeValuesAndWarpsDoNot) {
  struct Case {
    int y, x;
    const char* number;  // of the thread in its block
  };
  for (const Case& block : {Case{4, 32, "w * 32 + t"}, Case{1, 128, "t"}, Case{8, 16, "w * 16 + t"}}) {
    const std::string number = block.number;
    std::vector<NdArray> args;
    const absl::Status ran = RunWarpProgram(WarpProgram(block.y, block.x,
                                                        "            S[(" + number + ") % 32] = A[" + number +
                                                            "]\n            T.tvm_storage_sync(\"shared\")\n"
                                                            "            B[" +
                                                            number + "] = S[31 - (" + number + ") % 32]\n"),
                                            args);
    ASSERT_TRUE(ran.ok()) << ran;
    for (int64_t i = 0; i < 128; ++i) EXPECT_EQ(args[1].Get(i), args[0].Get(i / 32 * 32 + 31 - i % 32)) << number;
  }
}

TEST(WarpMemory, IsWrittenByEachWarpForItself) {
  std::vector<NdArray> args;
  const absl::Status ran = RunWarpProgram(WarpProgram(4, 32, R"(            if w == 0:
                S[t] = A[t]
            T.tvm_storage_sync("shared")
            B[w * 32 + t] = S[t]
)"),
                                          args);
  EXPECT_EQ(std::string(ran.message()), "interpreting main: S[1, 0] is read before it is written");
}

TEST(WarpMemory, LanesRaceWithoutABarrier) {
  std::vector<NdArray> args;
  const absl::Status ran = RunWarpProgram(WarpProgram(4, 32, R"(            S[t] = A[w * 32 + t]
            B[w * 32 + t] = S[31 - t]
)"),
                                          args, /*check_uninitialised=*/false);
  EXPECT_EQ(std::string(ran.message()),
            "interpreting main: data race for S[0, 16]: thread threadIdx.x = 15, threadIdx.y = 0 reads it in "
            "`B[w * 32 + t] = S[31 - t]`, thread threadIdx.x = 16, threadIdx.y = 0 writes it in "
            "`S[t] = A[w * 32 + t]`, and no barrier stands between");
}

TEST(WarpMemory, HasAPlaceAmongThreads) {
  const std::string outside = R"(
@T.prim_func
def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for w in T.thread_binding(4, thread="threadIdx.y"):
        S = T.allocate((32,), "float32", scope="warp")
        S[0] = A[w]
        T.tvm_storage_sync("shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[w * 32 + t] = S[0]
)";
  std::vector<NdArray> args;
  EXPECT_EQ(std::string(RunWarpProgram(outside, args).message()),
            "interpreting main: buffer S, in scope warp, is used outside of the loop over threadIdx.x, where nobody is "
            "of one warp alone");
}

}  // namespace
}  // namespace hone
