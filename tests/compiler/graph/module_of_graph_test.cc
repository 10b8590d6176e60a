// Graphs as modules: what the text says, that it reads back, and which constants it can hold.
#include "compiler/graph/module_of_graph.h"

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "compiler/graph/calls.h"
#include "compiler/graph/passes.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = Net::Ints;
using ::testing::HasSubstr;

// The text of the graph's module, which must keep the rules and read back to an equal module.
std::string CheckedModuleText(const Graph& graph) {
  const GraphModule made = ModuleOf(graph);
  EXPECT_TRUE(Verify(made.module).ok()) << Verify(made.module);
  const std::string text = ToText(made.module);
  const absl::StatusOr<IrModule> read = ParseIrModule(text);
  EXPECT_TRUE(read.ok()) << read.status() << "\n" << text;
  if (read.ok()) {
    EXPECT_TRUE(StructuralEqual(*read, made.module)) << text;
    EXPECT_EQ(ToText(*read), text);
  }
  return text;
}

TEST(ModuleOf, NodesAreBindingsWithTheirTypes) {
  Net net;
  const int dense = net.Op("dense", {net.Input({1, 6}), net.Constant({6, 4}, 1)});
  const int sum = net.Op("add", {dense, net.Filled({4}, 0.1)});
  net.Output(net.Op("reshape", {net.Op("clip", {sum}, {{"min", -0.5}, {"max", 6.0}})}, Shape({2, 2})));
  EXPECT_EQ(CheckedModuleText(net.graph()),
            R"(@I.ir_module
class Module:
    @R.function
    def main(x0: R.Tensor((1, 6), dtype="float32")) -> R.Tensor((2, 2), dtype="float32"):
        with R.dataflow():
            dense0: R.Tensor((1, 4), dtype="float32") = R.hone.dense(x0, metadata["relax.expr.Constant"][0])
            add1: R.Tensor((1, 4), dtype="float32") = R.hone.add(dense0, R.const([0.1, 0.1, 0.1, 0.1], "float32"))
            clip2: R.Tensor((1, 4), dtype="float32") = R.hone.clip(add1, max=6.0, min=-0.5)
            y0: R.Tensor((2, 2), dtype="float32") = R.hone.reshape(clip2, shape=[2, 2])
            R.output(y0)
        return y0
)");
}

TEST(ModuleOf, SeveralOutputsAreATuple) {
  Graph graph;
  graph.inputs = {graph.AddValue("x", {kFloat32, {1, 8}})};
  const std::vector<int> best = *graph.AddNode("topk", "best", graph.inputs, {{"k", int64_t{2}}, {"axis", int64_t{1}}});
  ASSERT_EQ(best.size(), 2u);
  graph.outputs = {best[1], best[0]};
  graph.output_names = {"places", "numbers"};
  const std::string text = CheckedModuleText(graph);
  EXPECT_THAT(text, HasSubstr("best: R.Tuple(R.Tensor((1, 2), dtype=\"float32\"), R.Tensor((1, 2), dtype=\"int64\")) = "
                              "R.hone.topk(x, axis=1, k=2)\n"));
  EXPECT_THAT(text, HasSubstr("numbers: R.Tensor((1, 2), dtype=\"float32\") = best[0]\n"));
  EXPECT_THAT(text, HasSubstr("places: R.Tensor((1, 2), dtype=\"int64\") = best[1]\n"));
  EXPECT_THAT(text, HasSubstr("R.output(places, numbers)\n"));
  EXPECT_THAT(text, HasSubstr("return (places, numbers)\n"));
}

// Values of that type with other values, which are no bindings of the block.
TEST(ModuleOf, OutputsThatNoNodeMakes) {
  Net net;
  EXPECT_THAT(CheckedModuleText(net.graph()), HasSubstr("def main() -> R.Tuple():\n        return ()\n"));
  const int x = net.Input({3}), sum = net.Op("add", {x, x});
  for (const int output : {x, sum, net.Filled({}, 2), net.Constant({17}, 1), sum}) net.Output(output);
  EXPECT_THAT(CheckedModuleText(net.graph()),
              HasSubstr("R.output(y1)\n        return (x0, y1, R.const(2.0, \"float32\"), "
                        "metadata[\"relax.expr.Constant\"][0], y1)\n"));
}

TEST(ModuleOf, NamesAreIdentifiersEachOnce) {
  Graph graph;
  for (const char* name : {"input.1", "1", "def", "", "a b"})
    graph.inputs.push_back(graph.AddValue(name, {kFloat32, {2}}));
  int sum = graph.inputs[0];
  for (const int input : graph.inputs) sum = *graph.Add("add", "a/b", {sum, input});
  graph.outputs = {sum};
  graph.output_names = {"a_b"};
  const std::string text = CheckedModuleText(graph);
  for (const char* name : {"(input_1: ", ", v1: ", ", def_1: ", ", v: ", ", a_b: "}) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, HasSubstr("a_b_1: R.Tensor((2,), dtype=\"float32\") = R.hone.add(a_b_5, a_b)\n"));
  EXPECT_THAT(text, HasSubstr("return a_b_1\n"));
}

// ---- constants

template <class T>
NdArray ArrayOf(DType type, Ints shape, const std::vector<T>& values) {
  return NdArray::Of<T>(type, std::move(shape), values);
}

// What the text has for the constant; nothing where it is kept outside.
std::string ConstantText(NdArray data) {
  Net net;
  net.Output(net.Constant(std::move(data)));
  const std::string text = CheckedModuleText(net.graph());
  const size_t start = text.find("return R.const(");
  if (start == std::string::npos) {
    EXPECT_THAT(text, HasSubstr("return metadata[\"relax.expr.Constant\"][0]\n"));
    EXPECT_EQ(ModuleOf(net.graph()).constants, std::vector{net.graph().values[0].data});
    return "";
  }
  EXPECT_TRUE(ModuleOf(net.graph()).constants.empty());
  return text.substr(start + 15, text.size() - start - 17);
}

TEST(ModuleOf, SmallConstantsAreInTheText) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ConstantText(ArrayOf<float>(kFloat32, {}, {1e-5f})), "1e-05, \"float32\"");
  EXPECT_EQ(ConstantText(ArrayOf<float>(kFloat32, {2, 3}, {0, -0.0f, infinity, -infinity, nan, 16777216})),
            "[[0.0, -0.0, float(\"inf\")], [float(\"-inf\"), float(\"nan\"), 16777216.0]], \"float32\"");
  EXPECT_EQ(ConstantText(ArrayOf<double>(DType::Float(64), {1, 1, 1}, {0.1})), "[[[0.1]]], \"float64\"");
  EXPECT_EQ(ConstantText(ArrayOf<uint16_t>(DType::Float(16), {2}, {0x2e66, 0x7c00})),
            "[0.099975586, float(\"inf\")], \"float16\"");
  EXPECT_EQ(ConstantText(ArrayOf<uint16_t>(DType::BFloat16(), {1}, {0x3dcd})), "[0.100097656], \"bfloat16\"");
  EXPECT_EQ(ConstantText(ArrayOf<int64_t>(kInt64, {2}, {INT64_MIN, INT64_MAX})),
            "[-9223372036854775808, 9223372036854775807], \"int64\"");
  EXPECT_EQ(ConstantText(ArrayOf<uint8_t>(DType::UInt(8), {2}, {0, 255})), "[0, 255], \"uint8\"");
  EXPECT_EQ(ConstantText(ArrayOf<char>(kBool, {2}, {0, 1})), "[False, True], \"bool\"");
  EXPECT_THAT(ConstantText(NdArray(kInt32, {4, 4})), HasSubstr("[0, 0, 0, 0]], \"int32\""));
}

TEST(ModuleOf, WhatTheTextCannotSayExactlyIsKeptOutside) {
  EXPECT_EQ(ConstantText(NdArray(kFloat32, {17})), "");
  EXPECT_EQ(ConstantText(NdArray(kFloat32, {0})), "");
  EXPECT_EQ(ConstantText(NdArray(kFloat32, {2, 0})), "");
  EXPECT_EQ(ConstantText(ArrayOf<uint64_t>(DType::UInt(64), {1}, {UINT64_MAX})), "");
  EXPECT_EQ(ConstantText(ArrayOf<char>(kBool, {1}, {2})), "");
  const float own_nan = std::bit_cast<float>(0x7fc00001), negative_nan = std::bit_cast<float>(0xffc00000);
  EXPECT_EQ(ConstantText(ArrayOf<float>(kFloat32, {1}, {own_nan})), "");
  EXPECT_EQ(ConstantText(ArrayOf<float>(kFloat32, {1}, {negative_nan})), "");
}

TEST(ModuleOf, AnArrayIsKeptOnce) {
  Net net;
  const int x = net.Input({20}), a = net.Constant({20}, 1), b = net.Constant({20}, 2);
  Graph graph = net.graph();
  const int a_again = graph.AddConstant("again", graph.values[a].data);
  int sum = x;
  for (const int constant : {b, a, a_again, b}) sum = *graph.Add("add", "sum", {sum, constant});
  graph.outputs = {sum};
  graph.output_names = {"y"};
  const std::string text = CheckedModuleText(graph);
  EXPECT_THAT(text, HasSubstr("R.hone.add(x0, metadata[\"relax.expr.Constant\"][0])"));
  EXPECT_THAT(text, HasSubstr("R.hone.add(sum_1, metadata[\"relax.expr.Constant\"][1])"));
  EXPECT_EQ(ModuleOf(graph).constants, (std::vector{graph.values[b].data, graph.values[a].data}));
}

// ---- what a graph knows besides

TEST(ModuleOf, DomainsAndElementsAreAttributes) {
  Net net;
  const int tokens = net.Input({4}, kInt64), table = net.Input({9, 2});
  net.Output(net.Op("gather", {table, tokens}, {{"axis", int64_t{0}}}));
  EXPECT_THAT(CheckedModuleText(net.graph()), ::testing::Not(HasSubstr("func_attr")));
  net.SetDomain(tokens, "int[0,9)");
  Graph graph = net.graph();
  EXPECT_THAT(CheckedModuleText(graph), HasSubstr("        R.func_attr({\"domains\": [\"int[0,9)\", \"\"]})\n"));
  graph.values[table].element = "int4";
  graph.output_elements = {"int4"};
  EXPECT_THAT(CheckedModuleText(graph),
              HasSubstr("R.func_attr({\"domains\": [\"int[0,9)\", \"\"], \"elements\": [\"\", "
                        "\"int4\"], \"output_elements\": [\"int4\"]})\n"));
}

TEST(ModuleOf, TensorFunctionsAreCalled) {
  constexpr char kDouble[] = R"(@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v] * T.float32(2)
)";
  Graph graph;
  graph.inputs = {graph.AddValue("x", {kFloat32, {4}})};
  graph.functions["main"] = *ParsePrimFunc(kDouble);
  const std::vector<TensorType> two{{kFloat32, {4}}, {kInt32, {}}};
  const int twice = *graph.Add("call_tir", "twice", graph.inputs, CallAttrs("main", std::span(two.data(), 1)));
  const std::vector<int> packed = *graph.AddNode("call_packed", "packed", {twice}, CallAttrs("env.split", two));
  graph.outputs = packed;
  graph.output_names = {"a", "b"};
  const std::string text = CheckedModuleText(graph);
  EXPECT_THAT(text, HasSubstr("    def main(A: T.Buffer((4,), \"float32\")"));
  EXPECT_THAT(text, HasSubstr("    def main_1(x: R.Tensor((4,), dtype=\"float32\"))"));
  EXPECT_THAT(text, HasSubstr("= R.call_tir(cls.main, (x,), out_sinfo=R.Tensor((4,), dtype=\"float32\"))\n"));
  EXPECT_THAT(text, HasSubstr("= R.call_dps_packed(\"env.split\", (twice,), out_sinfo=[R.Tensor((4,), "
                              "dtype=\"float32\"), R.Tensor((), dtype=\"int32\")])\n"));
  EXPECT_THAT(text, HasSubstr("b: R.Tensor((), dtype=\"int32\") = packed[1]\n"));
}

// An image network, and what every pass by itself leaves of it.
TEST(ModuleOf, ReadsBackBehindEveryPass) {
  Net net;
  const int image = net.Op("transpose", {net.Input({1, 4, 6, 6})}, Perm({0, 2, 3, 1}));
  const int conv = net.Op("conv", {image, net.Constant({3, 3, 4, 5}, 1)});
  const int scaled = net.Op("relu", {net.Op("multiply", {conv, net.Constant({5}, 2)})});
  net.Output(net.Op("transpose", {scaled}, Perm({0, 3, 1, 2})));
  for (const GraphPass& pass : GraphPasses()) {
    Graph graph = net.graph();
    const absl::Status done = pass.run(graph, {"avx512f", "avx512bw", "avx512bf16"});
    ASSERT_TRUE(done.ok()) << pass.name << ": " << done;
    SCOPED_TRACE(pass.name);
    CheckedModuleText(graph);
  }
}

TEST(GraphPasses, TheListIsOptimize) {
  Net net;
  const int conv = net.Op("conv", {net.Input({1, 6, 6, 4}), net.Constant({3, 3, 4, 5}, 1)});
  net.Output(net.Op("reshape", {net.Op("multiply", {conv, net.Constant({5}, 2)})}, Shape({16, 5})));
  Graph one_by_one = net.graph(), at_once = net.graph();
  for (const GraphPass& pass : GraphPasses()) {
    if (std::string_view(pass.name) == "optimize") break;
    ASSERT_TRUE(pass.run(one_by_one, {}).ok()) << pass.name;
  }
  ASSERT_TRUE(Optimize(at_once).ok());
  EXPECT_EQ(ToText(one_by_one), ToText(at_once));
  EXPECT_EQ(Operators(at_once), "conv reshape");
}

}  // namespace
}  // namespace hone
