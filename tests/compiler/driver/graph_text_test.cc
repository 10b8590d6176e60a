// Graphs as text on the command line: `hone inspect --text` and `hone opt --pass` of passes over graphs, constants as
// files, and what is said about mistakes.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/driver/npy.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// x + [0, 1, ..., 19], by a detour: two transposes that cancel.
constexpr char kDetour[] = R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((20, 3), dtype="float32")) -> R.Tensor((20, 3), dtype="float32"):
        with R.dataflow():
            t: R.Tensor((3, 20), dtype="float32") = R.hone.transpose(x, perm=[1, 0])
            sum: R.Tensor((3, 20), dtype="float32") = R.hone.add(t, metadata["relax.expr.Constant"][0])
            y: R.Tensor((20, 3), dtype="float32") = R.hone.transpose(sum, perm=[1, 0])
            R.output(y)
        return y
)";

// Such a network whose constants are in the text, so that the file says all.
constexpr char kSmallDetour[] = R"(@R.function
def main(x: R.Tensor((2, 3), dtype="float32")):
    with R.dataflow():
        t = R.hone.transpose(x, perm=[1, 0])
        big = R.hone.expand(R.const([7], "float32"), shape=[3, 20])
        y = R.hone.transpose(R.hone.add(t, R.const([1, 2], "float32")), perm=[1, 0])
        R.output(y, big)
    return y, big
)";

class GraphTextTest : public ::testing::Test {
 protected:
  struct Said {
    absl::Status status;
    std::string out;
    std::string message() const { return std::string(status.message()); }
  };

  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              absl::StrCat("graph_text_", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    NdArray counted(kFloat32, {20});
    for (int i = 0; i < 20; ++i) counted.Set(i, i);
    constants_ = {std::make_shared<const NdArray>(counted)};
    ASSERT_TRUE(WriteConstants(Path("constants"), constants_).ok());
    std::ofstream(Path("detour.py")) << kDetour;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  static Said Run(void (*add)(CLI::App&, Action*), std::vector<std::string> args) {
    CLI::App app;
    Action chosen;
    add(app, &chosen);
    std::reverse(args.begin(), args.end());
    app.parse(args);
    ::testing::internal::CaptureStdout();
    Said said;
    said.status = chosen();
    said.out = ::testing::internal::GetCapturedStdout();
    return said;
  }
  static Said Inspect(std::vector<std::string> args) {
    args.insert(args.begin(), "inspect");
    return Run(AddInspectCommand, std::move(args));
  }
  static Said Opt(std::vector<std::string> args) {
    args.insert(args.begin(), "opt");
    return Run(AddOptCommand, std::move(args));
  }

  std::filesystem::path folder_;
  std::vector<std::shared_ptr<const NdArray>> constants_;
};

TEST_F(GraphTextTest, InspectPrintsTheModelAsItIsOrOptimised) {
  std::ofstream(Path("small.py")) << kSmallDetour;
  const Said plain = Inspect({Path("small.py"), "--text"});
  ASSERT_TRUE(plain.status.ok()) << plain.message();
  EXPECT_THAT(plain.out, HasSubstr("t: R.Tensor((3, 2), dtype=\"float32\") = R.hone.transpose(x, perm=[1, 0])\n"));
  EXPECT_THAT(plain.out, HasSubstr("R.const([1.0, 2.0], \"float32\")"));
  const Said optimised = Inspect({Path("small.py"), "--text", "--optimized", "--write-constants", Path("new/folder")});
  ASSERT_TRUE(optimised.status.ok()) << optimised.message();
  EXPECT_THAT(optimised.out, Not(HasSubstr("transpose")));
  EXPECT_THAT(optimised.out, HasSubstr("return (y, metadata[\"relax.expr.Constant\"][0])\n"));
  const absl::StatusOr<NdArray> big = ReadNpy(Path("new/folder/0.npy"));
  ASSERT_TRUE(big.ok()) << big.status();
  EXPECT_EQ(big->shape, (std::vector<int64_t>{3, 20}));
  EXPECT_EQ(big->Get(59), 7);
}

TEST_F(GraphTextTest, InspectNamesMistakes) {
  const std::string model = Path("detour.py");
  EXPECT_EQ(Inspect({"a.hone", "--text"}).message(), "--text is for one model; a bundle (.hone) has no graph any more");
  EXPECT_EQ(Inspect({model, "--text", "--json"}).message(),
            "--text prints the whole model as a module; leave out --json and --task");
  EXPECT_EQ(Inspect({model, "--optimized"}).message(),
            "--optimized and --write-constants belong to the text of a model; add --text");
  const Said missing = Inspect({Path("none.onnx"), "--text"});
  EXPECT_EQ(ExitCodeOf(missing.status), 3);
  EXPECT_THAT(missing.message(), HasSubstr(Path("none.onnx")));
  std::ofstream(Path("small.py")) << kSmallDetour;
  const Said blocked = Inspect({Path("small.py"), "--text", "--write-constants", Path("small.py")});
  EXPECT_EQ(ExitCodeOf(blocked.status), 2);
  EXPECT_THAT(blocked.message(), HasSubstr(absl::StrCat("--write-constants: ", Path("small.py"))));
}

TEST_F(GraphTextTest, OptRunsPassesOverGraphs) {
  const std::string model = Path("detour.py"), constants = Path("constants");
  const Said one = Opt({model, "--constants", constants, "--check", "--pass", "remove_no_ops"});
  ASSERT_TRUE(one.status.ok()) << one.message();
  EXPECT_EQ(one.out, kDetour);
  const Said all = Opt({model, "--constants", constants, "--write-constants", Path("made"), "--pass", "optimize"});
  ASSERT_TRUE(all.status.ok()) << all.message();
  EXPECT_THAT(all.out, Not(HasSubstr("transpose")));
  std::ofstream(Path("made.py")) << all.out;
  const Said again = Opt({Path("made.py"), "--constants", Path("made"), "--pass", "sink_layout", "--pass", "optimize"});
  ASSERT_TRUE(again.status.ok()) << again.message();
  EXPECT_EQ(again.out, all.out);
  EXPECT_EQ(ReadNpy(Path("made/0.npy"))->data, constants_[0]->data);
}

TEST_F(GraphTextTest, AConstantOfSeveralUsesIsOneArray) {
  constexpr char kTwice[] = R"(@R.function
def main(x: R.Tensor((20,), dtype="float32")):
    y = R.hone.add(x, metadata["relax.expr.Constant"][0])
    return R.hone.multiply(y, metadata["relax.expr.Constant"][0])
)";
  const absl::StatusOr<Graph> graph = GraphFromModule(*ParseIrModule(kTwice), Path("constants"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ModuleOf(*graph).constants.size(), 1u);
}

TEST_F(GraphTextTest, OptTellsPassesOfGraphsAndOfTensorFunctionsApart) {
  const std::string model = Path("detour.py");
  EXPECT_THAT(Opt({model, "--pass", "frobnicate"}).message(),
              ::testing::MatchesRegex("--pass frobnicate: there are [^;]*lower for tensor functions and "
                                      "quantised_products, [^;]*int16_products for graph functions"));
  EXPECT_THAT(Opt({model, "--pass", "lower"}).message(),
              HasSubstr("detour.py: --pass lower is for tensor functions; for graph functions there are quantised_p"));
  EXPECT_THAT(Opt({model, "--pass", "optimize"}).message(), HasSubstr("detour.py: "));
  EXPECT_THAT(Opt({model, "--func", "main", "--pass", "optimize"}).message(), HasSubstr("leave --func out"));
  EXPECT_THAT(Opt({model, "--constants", "c"}).message(), HasSubstr("--constants and --write-constants belong to"));
  std::ofstream(Path("tensor.py")) << "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.float32(0)\n";
  for (const std::vector<std::string>& how : {std::vector<std::string>(), {"--run", "interp"}}) {
    std::vector<std::string> args{Path("tensor.py"), "--pass", "optimize"};
    args.insert(args.end(), how.begin(), how.end());
    EXPECT_THAT(Opt(args).message(), HasSubstr("--pass optimize is for graph functions; for tensor functions there"));
  }
}

}  // namespace
}  // namespace hone
