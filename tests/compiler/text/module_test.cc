// Modules as text: the seeds, graph functions, and what the reader says about mistakes in them.
#include "compiler/ir/module.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/ir/structural.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::HasSubstr;

IrModule ParseOk(const std::string& text) {
  absl::StatusOr<IrModule> module = ParseIrModule(text);
  EXPECT_TRUE(module.ok()) << module.status().ToString() << "\n" << text;
  return module.ok() ? *std::move(module) : IrModule{};
}

void ExpectPrintsAndReadsBack(const IrModule& module) {
  const std::string printed = ToText(module);
  const IrModule back = ParseOk(printed);
  EXPECT_TRUE(StructuralEqual(module, back)) << printed;
  EXPECT_EQ(ToText(back), printed);
  EXPECT_EQ(back.name, module.name);
}

std::vector<std::string> SeedFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_TEST_DATA "/compiler/text/seeds")) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Of programs whose tensor functions the notes leave out.
std::string ExpectedOfVerifier(const std::string& seed) {
  if (seed == "two_dataflow_blocks") return "function main, value lv0: R.call_tir of `linear0`; the module has no";
  return "";
}

class SeedGolden : public testing::TestWithParam<std::string> {};

TEST_P(SeedGolden, ReadsAndPrints) {
  const std::string path = absl::StrCat(HONE_TEST_DATA "/compiler/text/seeds/", GetParam(), ".txt");
  const absl::StatusOr<std::string> file = ReadFile(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const size_t line = file->find("\n----\n");
  ASSERT_NE(line, std::string::npos) << path;
  const std::string input = file->substr(0, line + 1);
  const IrModule module = ParseOk(input);
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << input << "----\n" << ToText(module);
    return;
  }
  EXPECT_EQ(ToText(module), file->substr(line + 6));
  ExpectPrintsAndReadsBack(module);
  const absl::Status verified = Verify(module);
  const std::string expected = ExpectedOfVerifier(GetParam());
  if (expected.empty()) {
    EXPECT_TRUE(verified.ok()) << verified.ToString();
  } else {
    EXPECT_THAT(std::string(verified.message()), HasSubstr(expected));
  }
}
INSTANTIATE_TEST_SUITE_P(Files, SeedGolden, testing::ValuesIn(SeedFiles()),
                         [](const auto& info) { return info.param; });

constexpr char kGraph[] = R"(
@I.ir_module
class Module:
    I.module_attrs({"version": 3})
    @T.prim_func
    def double(A: T.Buffer((T.int64(4),), "float32"), B: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(4), i)
                B[vi] = A[vi] * T.float32(2)

    @R.function(private=True, pure=False)
    def helper(x: R.Tensor((4,), dtype="float32"), s: R.Shape(ndim=2), t: R.Tuple(R.Tensor(ndim=2), R.Object)) -> R.Object:
        return x

    @R.function
    def main(x: R.Tensor(("n", 4, "n * 2"), dtype="float32"), y: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Prim("int64")):
        R.func_attr({"num_input": 1})
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((4,), dtype="float32"))
            lv1: R.Tensor((4,), dtype="float32") = R.add(lv, R.const(0.5, "float32"))
            lv2 = R.call_dps_packed("env.split", (lv1,), out_sinfo=[R.Tensor((n, 4), "float32"), R.Tensor((n + 1,), "int64")])
            lv3 = lv2[0]
            lv4 = R.nn.conv2d(lv3, metadata["relax.expr.Constant"][2], strides=[1, 1], layout="NCHW", eps=1e-05, axes=None, keep=True)
            gv = R.reshape(lv4, R.shape([n, 4]))
            R.output(lv1, gv)
        z = cls.helper(lv1, R.shape([1, n]), (gv, lv1))
        w = R.call_pure_packed("vm.f", z, R.prim_value(n + 1), R.dtype("float32"), sinfo_args=(R.Tensor((2,), dtype="int64"),))
        return (lv1, w)
)";

TEST(ModuleTest, EveryKindOfValueReadsBack) {
  const IrModule module = ParseOk(kGraph);
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_EQ(module.name, "Module");
  EXPECT_EQ(module.attrs.count("version"), 1u);
  ExpectPrintsAndReadsBack(module);
  const absl::Status status = Verify(module);
  EXPECT_TRUE(status.ok()) << status.ToString();
  const GraphFunc& main = std::get<GraphFunc>(module.functions[2]);
  ASSERT_EQ(main.blocks.size(), 2u);
  EXPECT_TRUE(main.blocks[0].is_dataflow);
  EXPECT_EQ(main.blocks[0].bindings.size(), 6u);
  EXPECT_EQ(main.dims.size(), 1u);
  const CallTir* call = main.blocks[0].bindings[0].value.As<CallTir>();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->function, "double");
  EXPECT_FALSE(call->packed);
  EXPECT_TRUE(std::get<GraphFunc>(module.functions[1]).is_private);
  EXPECT_FALSE(std::get<GraphFunc>(module.functions[1]).is_pure);
}

TEST(ModuleTest, EqualityIgnoresNamesOfValuesAndNothingElse) {
  const auto graph = [](const std::string& body) {
    return ParseOk(absl::StrCat("@R.function\ndef f(x: R.Tensor((\"n\",), dtype=\"float32\"), y: R.Object):\n", body));
  };
  const IrModule base = graph("    a = R.add(x, y)\n    return a\n");
  EXPECT_TRUE(StructuralEqual(base, graph("    other = R.add(x, y)\n    return other\n")));
  for (const char* different : {"    a = R.add(y, x)\n    return a\n", "    a = R.subtract(x, y)\n    return a\n",
                                "    a = R.add(x, y)\n    return x\n", "    a: R.Object = R.add(x, y)\n    return a\n",
                                "    a = R.add(x, y, axis=1)\n    return a\n",
                                "    R.func_attr({\"k\": 1})\n    a = R.add(x, y)\n    return a\n",
                                "    with R.dataflow():\n        a = R.add(x, y)\n        R.output(a)\n    return a\n",
                                "    a = R.add(x, y)\n    b = R.add(x, y)\n    return a\n"}) {
    EXPECT_FALSE(StructuralEqual(base, graph(different))) << different;
  }
}

TEST(ModuleTest, TheSpellingOf2022BecomesTodays) {
  const IrModule old = ParseOk(R"(
@tvm.script.ir_module
class M:
    @R.function
    def main(x: Tensor((1, 784), "float32"), w: Tensor(None, "float32", ndim = 2)):
        # block 0
        with R.dataflow():
            a = R.call_tir("env.linear", (x, meta[relay.Constant][0], w), (1, 128), dtype="float32")
            R.output(a)
        return a
)");
  EXPECT_EQ(ToText(old), R"(@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((1, 784), dtype="float32"), w: R.Tensor(dtype="float32", ndim=2)):
        with R.dataflow():
            a = R.call_dps_packed("env.linear", (x, metadata["relax.expr.Constant"][0], w), out_sinfo=R.Tensor((1, 128), dtype="float32"))
            R.output(a)
        return a
)");
}

struct Refusal {
  const char* name;
  const char* body;  // of a graph function of x, on line 3
  const char* message;
};
constexpr Refusal kRefusals[] = {
    {"Unknown", "    return y\n",
     "line 3, column 12: `y` is not defined here; expected a parameter or an earlier value"},
    {"NoReturn", "    y = R.add(x, x)\n",
     "line 4, column 1: found the end of the block; expected `return` and the function's value"},
    {"Branch", "    if x:\n        y = x\n    return x\n",
     "line 3, column 5: found `if` in a graph function, which is a line of bindings; expected an assignment, `with "
     "R.dataflow():` or `return`"},
    {"NoOutput", "    with R.dataflow():\n        y = R.add(x, x)\n    return x\n",
     "line 5, column 5: found the end of the block; expected R.output(...) with what the rest of the function may use"},
    {"Hidden",
     "    with R.dataflow():\n        y = R.add(x, x)\n        z = R.add(y, y)\n        R.output(z)\n    return y\n",
     "line 7, column 12: `y` is not defined here; expected a parameter or an earlier value"},
    {"OutputOfAnother", "    with R.dataflow():\n        R.output(x)\n    return x\n",
     "line 4, column 18: `x` is no value of this dataflow block"},
    {"NoResult", "    y = R.call_tir(f, (x,))\n    return y\n",
     "line 3, column 27: this call says nothing of its result; expected out_sinfo=R.Tensor(...)"},
    {"PackedByName", "    y = R.call_dps_packed(f, (x,), R.Tensor((1,), \"float32\"))\n    return y\n",
     "line 3, column 27: found `f`; expected the name of a function of the environment, in quotes"},
    {"Type", "    y: R.Tensor((4,), dtype=\"flot32\") = x\n    return y\n",
     "line 3, column 29: \"flot32\" names no type; expected one such as \"float32\" or \"int64\""},
    {"Callable", "    y: R.Callable = x\n    return y\n",
     "line 3, column 8: found `R`; expected R.Tensor, R.Tuple, R.Shape, R.Prim or R.Object"},
    {"Order", "    y = R.f(axis=1, x)\n    return y\n",
     "line 3, column 21: found `x`; expected name=value: arguments by position come first"},
    {"Size", "    y = R.zeros(R.shape([m]), dtype=\"float32\")\n    return y\n",
     "line 3, column 26: `m` is not defined here; expected a loop's or block's variable, or a buffer"},
    {"After", "    return x\n    y = x\n",
     "line 4, column 5: found `y`; expected the end of the function after its `return`"},
};

class GraphRefusal : public testing::TestWithParam<Refusal> {};
TEST_P(GraphRefusal, SaysWhereAndWhy) {
  const auto module =
      ParseIrModule(absl::StrCat("@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n", GetParam().body));
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(std::string(module.status().message()), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(Cases, GraphRefusal, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

TEST(ModuleTest, AClassHasEveryNameOnce) {
  const std::string f = "    @R.function\n    def f(x: R.Object):\n        return x\n";
  EXPECT_THAT(std::string(ParseIrModule(absl::StrCat("@I.ir_module\nclass M:\n", f, f)).status().message()),
              HasSubstr("line 7, column 9: class M has a second function `f`"));
}

TEST(ModuleTest, CallsFitTheFunctionsTheyCall) {
  const std::string function = R"(
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
)";
  const auto verify = [&](const std::string& call, const std::string& type = "R.Tensor((4,), \"float32\")") {
    return std::string(
        Verify(ParseOk(absl::StrCat("@I.ir_module\nclass M:\n", function, "    @R.function\n    def main(x: ", type,
                                    "):\n        cls = M\n        y = ", call, "\n        return y\n")))
            .message());
  };
  EXPECT_EQ(verify("R.call_tir(cls.f, (x,), R.Tensor((4,), \"float32\"))"), "");
  EXPECT_EQ(verify("R.call_tir(cls.g, (x,), R.Tensor((4,), \"float32\"))"),
            "function main, value y: R.call_tir of `g`; the module has no tensor function of this name");
  EXPECT_EQ(verify("R.call_tir(cls.f, (x, x), R.Tensor((4,), \"float32\"))"),
            "function main, value y: `f` takes 2 tensors; found 2 arguments and 1 results");
  EXPECT_EQ(verify("R.call_tir(cls.f, (x,), R.Tensor((5,), \"float32\"))"),
            "function main, value y: `f` takes dimension 0 of 4 as `B`; found dimension 0 of 5");
  EXPECT_EQ(verify("R.call_tir(cls.f, (x,), R.Tensor((4,), \"float32\"))", "R.Tensor((4,), \"int32\")"),
            "function main, value y: `f` takes float32 as `A`; found int32");
}

}  // namespace
}  // namespace hone
