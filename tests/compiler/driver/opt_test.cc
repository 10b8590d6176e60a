// `hone opt` in every form: what it prints, what it writes, and what it says about mistakes.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/npy.h"
#include "compiler/ir/module.h"
#include "compiler/ir/structural.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

const std::string kSeeds = HONE_TEST_DATA "/compiler/text/seeds/";

struct Said {
  absl::Status status;
  std::string out;
  std::string message() const { return std::string(status.message()); }
};

Said Opt(std::vector<std::string> args) {
  CLI::App app;
  Action chosen;
  AddOptCommand(app, &chosen);
  args.insert(args.begin(), "opt");
  std::reverse(args.begin(), args.end());
  app.parse(args);
  testing::internal::CaptureStdout();
  Said said;
  said.status = chosen();
  said.out = testing::internal::GetCapturedStdout();
  return said;
}

class OptTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              absl::StrCat("opt_", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    // A file of the seeds holds its program twice; the first half is as the notes have it.
    for (const char* name :
         {"mm_relu", "mixture", "mm_relu_split", "mm_relu_reordered", "mm_relu_joined", "mm_relu_decomposed"}) {
      const std::string text = *ReadFile(absl::StrCat(kSeeds, name, ".txt"));
      Write(absl::StrCat(name, ".py"), text.substr(0, text.find("\n----\n") + 1));
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  std::filesystem::path folder_;
};

constexpr char kScale[] = R"(@T.prim_func
def scale(A: T.Buffer((40, 8), "float32"), B: T.Buffer((40, 8), "float32")):
    for i, j in T.grid(40, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)";

TEST_F(OptTest, PrintsWhatItReads) {
  const Said said = Opt({Write("scale.py", kScale), "--check"});
  ASSERT_TRUE(said.status.ok()) << said.message();
  EXPECT_EQ(said.out, kScale);
}

TEST_F(OptTest, PrintsAWholeModuleOrOneFunctionOfIt) {
  const Said whole = Opt({Path("mixture.py"), "--check"});
  ASSERT_TRUE(whole.status.ok()) << whole.message();
  EXPECT_TRUE(StructuralEqual(*ParseIrModule(whole.out), *ParseIrModule(*ReadFile(Path("mixture.py")))));
  const Said graph = Opt({Path("mixture.py"), "--func", "main", "--check"});
  ASSERT_TRUE(graph.status.ok()) << graph.message();
  EXPECT_EQ(graph.out.rfind("@R.function\ndef main(", 0), 0u) << graph.out;
  const Said tensor = Opt({Path("mixture.py"), "--func", "linear0"});
  ASSERT_TRUE(tensor.status.ok()) << tensor.message();
  EXPECT_TRUE(ParsePrimFunc(tensor.out).ok());
}

// The lines of the notes, one more each time, give the programs of the notes.
TEST_F(OptTest, TheSeedsTraceGivesTheSeedsPrograms) {
  const std::vector<std::string> lines = absl::StrSplit(*ReadFile(kSeeds + "mm_relu.trace"), '\n');
  const std::pair<size_t, const char*> stages[] = {
      {4, "mm_relu_split"}, {5, "mm_relu_reordered"}, {7, "mm_relu_joined"}, {8, "mm_relu_decomposed"}};
  for (const auto& [count, program] : stages) {
    const std::string trace =
        Write("trace.py", absl::StrJoin(lines.begin(), lines.begin() + static_cast<long>(count), "\n"));
    const Said said = Opt({Path("mm_relu.py"), "--schedule", trace, "--check"});
    ASSERT_TRUE(said.status.ok()) << program << ": " << said.message();
    const absl::StatusOr<PrimFunc> ours = ParsePrimFunc(said.out);
    ASSERT_TRUE(ours.ok()) << ours.status().ToString();
    // TVM renames the block that stays, and puts what a reduction reads of itself first.
    const PrimFunc theirs = *ParsePrimFunc(absl::StrReplaceAll(
        *ReadFile(Path(absl::StrCat(program, ".py"))),
        {{"\"Y_update\"", "\"Y\""}, {"Y[vi, vj], A[vi, vk], B[vk, vj])", "A[vi, vk], B[vk, vj], Y[vi, vj])"}}));
    EXPECT_TRUE(StructuralEqual(*ours, theirs)) << program << "\n" << said.out << "\n" << ToText(theirs);
  }
}

TEST_F(OptTest, PassesRunInTheirOrder) {
  const std::string file = Write("scale.py", kScale);
  const Said lowered = Opt({file, "--pass", "lower"});
  ASSERT_TRUE(lowered.status.ok()) << lowered.message();
  EXPECT_THAT(lowered.out, testing::Not(HasSubstr("T.block")));
  const Said unknown = Opt({file, "--pass", "frobnicate"});
  EXPECT_THAT(unknown.message(), HasSubstr("--pass frobnicate: there are "));
  EXPECT_THAT(unknown.message(), HasSubstr("lower"));
}

TEST_F(OptTest, PassesAreForTheTargetThatIsNamed) {
  const std::string file = Write("copy.py", R"(
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    for i in T.vectorized(1024):
        B[i] = A[i]
)");
  for (const auto& [target, lanes] : {std::pair("cpu:x86-64-v4", "16"), std::pair("cpu:cortex-a76", "4")}) {
    const Said lowered = Opt({file, "--pass", "lower", "--target", target});
    ASSERT_TRUE(lowered.status.ok()) << lowered.message();
    EXPECT_THAT(lowered.out, HasSubstr(absl::StrCat("1, ", lanes, ")"))) << target;
  }
  EXPECT_THAT(Opt({file, "--target", "cpu:x86-64-v4"}).message(), HasSubstr("--target is what passes are for"));
}

TEST_F(OptTest, RunsInterpretedAndCompiledAlike) {
  const std::string file = Path("mm_relu.py");
  for (const char* how : {"interp", "llvm"}) {
    const Said said =
        Opt({file, "--schedule", kSeeds + "mm_relu.trace", "--run", how, "--seed", "3", "--output",
             absl::StrCat("C=", Path(absl::StrCat(how, ".npy"))), "--output", absl::StrCat("A=", Path("a.npy"))});
    ASSERT_TRUE(said.status.ok()) << how << ": " << said.message();
    EXPECT_EQ(said.out, "");
  }
  const NdArray a = *ReadNpy(Path("interp.npy")), b = *ReadNpy(Path("llvm.npy"));
  ASSERT_EQ(a.shape, (std::vector<int64_t>{128, 128}));
  const float* x = reinterpret_cast<const float*>(a.data.data());
  const float* y = reinterpret_cast<const float*>(b.data.data());
  double largest = 0;
  for (int i = 0; i < 128 * 128; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    ASSERT_NEAR(x[i], y[i], 1e-4) << i;
  }
  EXPECT_GT(largest, 1);
}

TEST_F(OptTest, InputsComeFromFilesOrFromTheSeed) {
  const std::string file = Write("scale.py", kScale);
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {
        file, "--run", "interp", "--output", "B=" + Path("b.npy"), "--output", "A=" + Path("a.npy")};
    args.insert(args.end(), more.begin(), more.end());
    const Said said = Opt(args);
    EXPECT_TRUE(said.status.ok()) << said.message();
    return ReadNpy(Path("b.npy"))->data;
  };
  const auto seed1 = run({"--seed", "1"});
  std::filesystem::copy(Path("a.npy"), Path("kept.npy"));
  EXPECT_EQ(seed1, run({"--seed", "1"}));
  EXPECT_NE(seed1, run({"--seed", "2"}));
  EXPECT_EQ(seed1, run({"--seed", "2", "--input", "A=" + Path("kept.npy")}));
}

TEST_F(OptTest, TimesLikeAWorker) {
  const std::string file = Write("scale.py", kScale);
  const Said text = Opt({file, "--run", "llvm", "--time"});
  ASSERT_TRUE(text.status.ok()) << text.message();
  EXPECT_THAT(text.out, testing::ContainsRegex("[0-9.]+ us .[0-9.]+ to [0-9.]+; [0-9]+ samples of [0-9]+ calls"));
  const Said json = Opt({file, "--run", "interp", "--time", "--json"});
  ASSERT_TRUE(json.status.ok()) << json.message();
  const nlohmann::json read = nlohmann::json::parse(json.out);
  EXPECT_EQ(read["run"], "interp");
  EXPECT_GT(read["us"], 0);
  EXPECT_LE(read["low_us"], read["us"]);
  EXPECT_GE(read["high_us"], read["us"]);
  EXPECT_GE(read["calls_per_sample"], 1);
}

TEST_F(OptTest, MistakesAreNamed) {
  const std::string file = Write("scale.py", kScale);
  EXPECT_THAT(Opt({Path("none.py")}).message(), HasSubstr(Path("none.py")));
  EXPECT_THAT(
      Opt({Write("bad.py", "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = B[0]\n")}).message(),
      HasSubstr("bad.py: line 3, column 12: `B` is not defined here"));
  EXPECT_THAT(Opt({Write("empty.py", "import tvm\n")}).message(), HasSubstr("no function; a program begins with"));
  EXPECT_EQ(Opt({file, "--func", "none"}).message(), absl::StrCat(file, ": no function none; there are: scale"));
  EXPECT_THAT(Opt({Path("mixture.py"), "--func", "main", "--run", "interp"}).message(),
              HasSubstr("only a tensor function can be scheduled or run"));
  EXPECT_EQ(Opt({file, "--time"}).message(),
            "--input, --output, --time and --json belong to a run; add --run interp or --run llvm");
  EXPECT_EQ(Opt({file, "--run", "interp", "--input", "A"}).message(), "--input A: expected NAME=FILE.npy");
  EXPECT_EQ(Opt({file, "--run", "interp", "--output", "D=d.npy"}).message(),
            "--output D=d.npy: scale has no such parameter; there are A, B");
  EXPECT_THAT(Opt({file, "--schedule", Write("t.py", "b = sch.get_block(\"nope\")\n")}).message(), HasSubstr("t.py: "));
  EXPECT_THAT(Opt({file, "--schedule", Write("t.py", "b = sch.get_blok(\"B\")\n")}).message(), HasSubstr("line 1"));
  EXPECT_THAT(
      Opt({Write(
               "sym.py",
               "@T.prim_func\ndef f(n: T.int32, A: T.Buffer((n,), \"float32\")):\n    for i in range(n):\n"
               "        with T.block(\"A\"):\n            v = T.axis.spatial(n, i)\n            A[v] = T.float32(0)\n"),
           "--run", "interp"})
          .message(),
      HasSubstr("has the symbolic size n; write a number in its place"));
}

TEST_F(OptTest, AProgramThatBreaksARuleIsNotRun) {
  const std::string file = Write("input.py", R"(@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            A[v] = T.float32(1)
)");
  for (const char* how : {"interp", "llvm"}) {
    EXPECT_THAT(Opt({file, "--run", how}).message(), HasSubstr("input.py: input-written: ")) << how;
  }
  EXPECT_FALSE(Opt({file, "--check"}).status.ok());
  EXPECT_TRUE(Opt({file}).status.ok());
}

TEST_F(OptTest, CheckProvesThatAccessesStayInBounds) {
  const Said before = Opt({Write("past.py", absl::StrReplaceAll(kScale, {{"A[vi, vj]", "A[vi, vj + 1]"}})), "--check"});
  EXPECT_EQ(ExitCodeOf(before.status), 7);
  EXPECT_EQ(before.message(),
            absl::StrCat(Path("past.py"), ": scale: block B: A[vi, vj + 1]: index 1, `vj + 1`, is not ",
                         "proven to stay below 8: it lies in [1, 8]"));
  EXPECT_EQ(before.out, "");
  // What a trace makes is proven as well, and so is what packs constants.
  EXPECT_TRUE(Opt({Path("mm_relu.py"), "--schedule", kSeeds + "mm_relu.trace", "--check"}).status.ok());
  // An index that comes from an input needs a domain.
  const std::string gather = R"(@T.prim_func
def gather(A: T.Buffer((9, 4), "float32"), K: T.Buffer((5,), "int64"), B: T.Buffer((5, 4), "float32")):
    T.func_attr({"domains": ["", "DOMAIN", ""]})
    for i, j in T.grid(5, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[K[vi], vj]
)";
  const auto check = [&](const char* domain) {
    return Opt({Write("gather.py", absl::StrReplaceAll(gather, {{"DOMAIN", domain}})), "--check"});
  };
  EXPECT_TRUE(check("int[0,9)").status.ok()) << check("int[0,9)").message();
  EXPECT_THAT(check("int[0,10)").message(), HasSubstr("is not proven to stay below 9: it lies in [0, 9]"));
  EXPECT_THAT(check("").message(), HasSubstr("A[K[vi], vj]: index 0, `K[vi]`, is not proven to stay at or above 0"));
}

// Far beyond the end: only the file of the input, which lies in no memory, says where.
constexpr char kWild[] = R"(@T.prim_func
def wild(K: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[STORE] = T.float32(1)
)";

TEST_F(OptTest, ACrashIsTheProgramsFault) {
  const std::string index = Path("i.npy");
  NdArray values(kInt32, {4});
  for (int i = 0; i < 4; ++i) values.Set(i, 1 << 28);
  ASSERT_TRUE(WriteNpy(index, values).ok());
  const std::string file = Write("wild.py", absl::StrReplaceAll(kWild, {{"STORE", "v + K[v]"}}));
  const Said compiled = Opt({file, "--run", "llvm", "--input", "K=" + index, "--output", "B=" + Path("b.npy")});
  EXPECT_EQ(ExitCodeOf(compiled.status), 7);
  EXPECT_THAT(compiled.message(), HasSubstr(absl::StrCat(file, ": the program crashed: ")));
  EXPECT_THAT(compiled.message(), HasSubstr("signal 11"));
  EXPECT_FALSE(std::filesystem::exists(Path("b.npy")));
  const Said interpreted = Opt({file, "--run", "interp", "--input", "K=" + index});
  EXPECT_EQ(ExitCodeOf(interpreted.status), 7);
  EXPECT_THAT(interpreted.message(), HasSubstr(absl::StrCat(file, ": ")));
  EXPECT_THAT(interpreted.message(), HasSubstr("index 0 of B is 268435456, outside of [0, 4)"));
  // One element beyond the end is seen as well: a page that cannot be touched lies there.
  for (int i = 0; i < 4; ++i) values.Set(i, 16);
  ASSERT_TRUE(WriteNpy(index, values).ok());
  const Said beside = Opt({file, "--run", "llvm", "--input", "K=" + index});
  EXPECT_EQ(ExitCodeOf(beside.status), 7);
  EXPECT_THAT(beside.message(), HasSubstr("past the end of output 0 (`B`)"));
}

TEST_F(OptTest, WhatNobodyWroteIsTheProgramsFault) {
  const std::string file = Write("half.py", R"(@T.prim_func
def half(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(2):
        with T.block("B"):
            v = T.axis.spatial(2, i)
            B[v] = A[v]
)");
  EXPECT_EQ(ExitCodeOf(Opt({file, "--run", "interp"}).status), 7);
}

}  // namespace
}  // namespace hone
