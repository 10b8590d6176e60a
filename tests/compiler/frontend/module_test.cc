// Modules of the text dialect as models: those of the notes "机器学习编译" and small ones, against sums made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/frontend/module_import.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Graph> GraphOfText(const std::string& text, const ImportOptions& options = {}) {
  const absl::StatusOr<IrModule> module = ParseIrModule(text);
  if (!module.ok()) return module.status();
  return ImportModule(*module, options);
}

std::string Seed(const std::string& name) {
  const auto text = ReadFile(absl::StrCat(HONE_TEST_DATA "/compiler/text/seeds/", name, ".txt"));
  EXPECT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> parts = absl::StrSplit(text.value_or(""), "----\n");
  return parts[0];
}

NdArray Ramp(std::vector<int64_t> shape, double scale) {
  NdArray array(kFloat32, std::move(shape));
  for (int64_t i = 0; i < array.NumElements(); ++i) array.Set(i, scale * static_cast<double>(i % 17 - 8));
  return array;
}

// x [1, K] times the rows of w [N, K], and b.
std::vector<double> RowsTimes(const std::vector<double>& x, const NdArray& w, const NdArray& b) {
  std::vector<double> y;
  for (int64_t n = 0; n < w.shape[0]; ++n) {
    double sum = b.Get(n);
    for (int64_t k = 0; k < w.shape[1]; ++k) sum += x[static_cast<size_t>(k)] * w.Get(n * w.shape[1] + k);
    y.push_back(sum);
  }
  return y;
}

// max(x w0' + b0, 0) w1' + b1 on the inputs of the perceptrons of the notes.
std::vector<double> Perceptron(const std::vector<NdArray>& in) {
  std::vector<double> x;
  for (int64_t i = 0; i < in[0].NumElements(); ++i) x.push_back(in[0].Get(i));
  std::vector<double> hidden = RowsTimes(x, in[1], in[2]);
  for (double& h : hidden) h = std::max(h, 0.0);
  return RowsTimes(hidden, in[3], in[4]);
}

std::vector<NdArray> InputsOf(const Plan& plan) {
  std::vector<NdArray> inputs;
  for (const int t : plan.inputs) inputs.push_back(Ramp(plan.tensors[t].shape, 0.01 * (1 + inputs.size())));
  return inputs;
}

void ExpectClose(const NdArray& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.NumElements(), static_cast<int64_t>(expected.size()));
  double largest = 1;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got.Get(static_cast<int64_t>(i)), expected[i], 1e-5 * largest) << "element " << i;
}

// What the graph's plan computes of the inputs; nothing, and a failure, where it cannot.
std::vector<NdArray> OutputsOf(const absl::StatusOr<Graph>& graph, const std::vector<NdArray>& inputs) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(*plan, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<NdArray>();
}

TEST(ImportedModules, CallTensorFunctions) {
  const absl::StatusOr<Graph> graph = GraphOfText(Seed("linear_relu_linear"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const PlanStep& step : plan->steps) names.push_back(plan->tasks[step.task].name);
  EXPECT_THAT(names, ElementsAre("linear0", "relu0", "linear1"));
  EXPECT_EQ(plan->tasks[0].flop, 2.0 * 128 * 784 + 128);
  const std::vector<NdArray> inputs = InputsOf(*plan);
  const auto outputs = InterpretPlan(*plan, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectClose((*outputs)[0], Perceptron(inputs));
}

// The same of operators, which are fused as those of any model.
TEST(ImportedModules, HaveOperators) {
  const absl::StatusOr<Graph> graph = GraphOfText(Seed("mlp_operators"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<NdArray> inputs = InputsOf(*plan);
  ASSERT_EQ(inputs.size(), 4u);
  const auto outputs = InterpretPlan(*plan, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  inputs.push_back(NdArray(kFloat32, {10}));
  ExpectClose((*outputs)[0], Perceptron(inputs));
}

// Parameters and constants outside of the text get their values from outside.
TEST(ImportedModules, BindWhatIsOutsideOfTheText) {
  std::string text = absl::StrReplaceAll(
      Seed("bound_constants"), {{"R.call_tir(\"env.relu\", (lv0,), (1, 128), dtype=\"float32\")", "R.nn.relu(lv0)"}});
  text = absl::StrReplaceAll(
      text, {{"R.call_tir(\"env.linear\", (lv1, meta[relay.Constant][2], meta[relay.Constant][3]), (1, 10), "
              "dtype=\"float32\")",
              "R.add(R.matmul(lv1, R.permute_dims(meta[relay.Constant][2])), meta[relay.Constant][3])"}});
  const std::vector<NdArray> in = {Ramp({1, 784}, 0.01), Ramp({128, 784}, 0.02), Ramp({128}, 0.03),
                                   Ramp({10, 128}, 0.04), Ramp({10}, 0.05)};
  ImportOptions options;
  options.constants = [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const NdArray>> {
    if (name == "x") return nullptr;
    return std::make_shared<const NdArray>(in[1 + std::stoul(name)]);
  };
  const absl::StatusOr<Graph> graph = GraphOfText(text, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->inputs.size(), 1u);
  EXPECT_EQ(plan->tasks[0].func.attrs.at("constants"), Attr(std::vector<int64_t>{1, 2}));
  const auto outputs = InterpretPlan(*plan, std::span(in.data(), 1));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectClose((*outputs)[0], Perceptron(in));

  options.constants = [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const NdArray>> {
    return name == "x" ? std::make_shared<const NdArray>(in[2]) : nullptr;
  };
  const std::string message(GraphOfText(text, options).status().message());
  EXPECT_THAT(message, HasSubstr("parameter \"x\": it is bound to float32[128], but is float32[1, 784]"));
  EXPECT_THAT(message, HasSubstr("constant 0, which is outside of the text, is not given"));
}

TEST(ImportedModules, CallFunctionsOfTheProgram) {
  const absl::StatusOr<Graph> graph = GraphOfText(Seed("extern_calls"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> calls;
  for (const Node& node : graph->nodes) calls.push_back(absl::StrCat(node.op, " ", StringAttr(node.attrs, "function")));
  EXPECT_THAT(calls, ElementsAre("call_packed env.linear", "call_packed env.relu", "call_packed env.linear"));
  EXPECT_EQ(graph->type(graph->outputs[0]), (TensorType{kFloat32, {1, 10}}));
}

constexpr char kSymbolic[] = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(n: T.int64(1, 64), A: T.Buffer((n, 3), "float32"), B: T.Buffer((n, 3), "float32")):
        for i, j in T.grid(n, T.int64(3)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vi, vj]
    @R.function
    def main(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tensor(("n * 3",), dtype="float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n, 3), dtype="float32"))
            gv = R.reshape(lv, R.shape([n * 3]))
            R.output(gv)
        return gv
)";

TEST(ImportedModules, TakeTheSizesThatAreChosen) {
  const absl::StatusOr<Graph> graph = GraphOfText(kSymbolic, {.dims = {{"n", 5}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->type(graph->outputs[0]), (TensorType{kFloat32, {15}}));
  const NdArray x = Ramp({5, 3}, 1);
  const std::vector<NdArray> outputs = OutputsOf(graph, {x});
  ASSERT_EQ(outputs.size(), 1u);
  for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(outputs[0].Get(i), 2 * x.Get(i));

  const absl::StatusOr<Graph> of_one = GraphOfText(kSymbolic);
  ASSERT_TRUE(of_one.ok()) << of_one.status();
  ASSERT_EQ(of_one->notes.size(), 1u);
  EXPECT_THAT(of_one->notes[0], HasSubstr("taken as 1; --dim n=SIZE"));
}

// Sizes are in numbers alone, so that a graph at other sizes has the same form (graph_at_sizes.h).
TEST(ImportedModules, AreTheSameAtOtherSizes) {
  const auto form = [](int64_t n) {
    const absl::StatusOr<Graph> graph = GraphOfText(kSymbolic, {.dims = {{"n", n}}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    const Attrs& attrs = graph->nodes[0].attrs;
    EXPECT_EQ(IntsAttr(attrs, "shapes"), (std::vector<int64_t>{n, 3}));
    return StringAttr(attrs, "function");
  };
  EXPECT_EQ(form(5), form(7));
}

TEST(ImportedModules, CallOneAnother) {
  const absl::StatusOr<Graph> graph = GraphOfText(R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def halves(x: R.Tensor((4, 6), dtype="float32")) -> R.Tuple(R.Tensor((4, 3), dtype="float32"), R.Tensor((4, 3), dtype="float32")):
        lv: R.Tuple(R.Tensor((4, 3), dtype="float32"), R.Tensor((4, 3), dtype="float32")) = R.split(x, indices_or_sections=2, axis=1)
        return lv
    @R.function
    def main(x: R.Tensor((4, 6), dtype="float32")) -> R.Tensor((3, 4), dtype="float32"):
        cls = Module
        lv: R.Tuple(R.Tensor((4, 3), dtype="float32"), R.Tensor((4, 3), dtype="float32")) = cls.halves(x)
        lv1 = R.multiply(lv[0], R.const([1, 10, 100], "float32"))
        lv2 = R.subtract(lv1, lv[1])
        gv = R.permute_dims(lv2)
        return gv
)");
  const NdArray x = Ramp({4, 6}, 1);
  const std::vector<NdArray> outputs = OutputsOf(graph, {x});
  ASSERT_EQ(outputs.size(), 1u);
  const double factor[] = {1, 10, 100};
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 3; ++j)
      EXPECT_EQ(outputs[0].Get(j * 4 + i), x.Get(i * 6 + j) * factor[j] - x.Get(i * 6 + 3 + j));
  }
}

// A network of images in the dialect's operators is planned as it is from any file: a convolution with its batch norm,
// activation and pool, a mean, a product.
TEST(ImportedModules, OfImagesAreFused) {
  const absl::StatusOr<Graph> graph = GraphOfText(R"(
@R.function
def main(x: R.Tensor((1, 3, 8, 8), dtype="float32")) -> R.Tensor((1, 5), dtype="float32"):
    with R.dataflow():
        lv = R.nn.conv2d(x, R.full_weights(), strides=[1, 1])
        R.output(lv)
    return lv
)");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("(R.full_weights): this operator is not supported"));

  ImportOptions options;
  options.constants = [](const std::string& name) -> absl::StatusOr<std::shared_ptr<const NdArray>> {
    if (name == "x") return nullptr;
    if (name == "w") return std::make_shared<const NdArray>(Ramp({4, 3, 3, 3}, 0.1));
    if (name == "last") return std::make_shared<const NdArray>(Ramp({4, 5}, 0.1));
    NdArray channels(kFloat32, {4});
    for (int64_t i = 0; i < 4; ++i) channels.Set(i, 1 + 0.5 * static_cast<double>(i));
    return std::make_shared<const NdArray>(std::move(channels));
  };
  const absl::StatusOr<Graph> network = GraphOfText(R"(
@R.function
def main(x: R.Tensor((1, 3, 8, 8), dtype="float32"), w: R.Tensor((4, 3, 3, 3), dtype="float32"), gamma: R.Tensor((4,), dtype="float32"), beta: R.Tensor((4,), dtype="float32"), mean: R.Tensor((4,), dtype="float32"), var: R.Tensor((4,), dtype="float32"), last: R.Tensor((4, 5), dtype="float32")) -> R.Tensor((1, 5), dtype="float32"):
    with R.dataflow():
        lv = R.nn.conv2d(x, w, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW", out_dtype="void")
        lv1 = R.nn.batch_norm(lv, gamma, beta, mean, var, axis=1, epsilon=1.0000000000000001e-05, center=True, scale=True, momentum=0.1)
        lv2 = lv1[0]
        lv3 = R.nn.relu(lv2)
        lv4 = R.nn.max_pool2d(lv3, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], padding=[0, 0, 0, 0], ceil_mode=False, count_include_pad=False, layout="NCHW", out_layout="NCHW")
        lv5 = R.mean(lv4, axis=[2, 3], keepdims=False)
        lv6 = R.matmul(lv5, last, out_dtype="void")
        gv = R.nn.softmax(lv6, axis=-1)
        R.output(gv)
    return gv
)",
                                                    options);
  ASSERT_TRUE(network.ok()) << network.status();
  const absl::StatusOr<Plan> plain = MakePlan(*network, {.optimize = false, .fuse = false}), plan = MakePlan(*network);
  ASSERT_TRUE(plain.ok()) << plain.status();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->steps.size(), 6u);
  EXPECT_GT(plain->steps.size(), plan->steps.size());
  const NdArray x = Ramp({1, 3, 8, 8}, 0.3);
  const auto expected = InterpretPlan(*plain, std::span(&x, 1)), got = InterpretPlan(*plan, std::span(&x, 1));
  ASSERT_TRUE(expected.ok() && got.ok()) << expected.status() << got.status();
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR((*got)[0].Get(i), (*expected)[0].Get(i), 1e-6);
}

// What differs from ONNX's of a like name: attributes, numbers by place, where axes stand.
TEST(ImportedModules, HaveTheDialectsOperators) {
  const auto computed = [](const std::string& value) {
    const absl::StatusOr<Graph> graph = GraphOfText(absl::StrCat(
        "@R.function\ndef main(x: R.Tensor((2, 3), dtype=\"float32\")):\n    gv = ", value, "\n    return gv\n"));
    const std::vector<float> numbers = {-1, 2, -3, 4, -5, 6};
    const std::vector<NdArray> outputs = OutputsOf(graph, {NdArray::Of<float>(kFloat32, {2, 3}, numbers)});
    if (outputs.size() != 1) return std::string("no output");
    const NdArray& y = outputs[0];
    std::string text = absl::StrCat("[", absl::StrJoin(y.shape, ", "), "]");
    for (int64_t i = 0; i < y.NumElements(); ++i) absl::StrAppend(&text, " ", y.Get(i));
    return text;
  };
  EXPECT_EQ(computed("R.sum(x, axis=[1], keepdims=True)"), "[2, 1] -2 5");
  EXPECT_EQ(computed("R.sum(x, axis=None)"), "[] 3");
  EXPECT_EQ(computed("R.max(x, axis=[0])"), "[3] 4 2 6");
  EXPECT_EQ(computed("R.clip(x, R.prim_value(-2), R.prim_value(4.5))"), "[2, 3] -1 2 -2 4 -2 4.5");
  EXPECT_EQ(computed("R.reshape(x, R.shape([3, 2]))"), "[3, 2] -1 2 -3 4 -5 6");
  EXPECT_EQ(computed("R.flatten(x)"), "[6] -1 2 -3 4 -5 6");
  EXPECT_EQ(computed("R.squeeze(R.expand_dims(x, axis=[0, 3]), axis=[0])"), "[2, 3, 1] -1 2 -3 4 -5 6");
  EXPECT_EQ(computed("R.broadcast_to(R.sum(x, axis=[1], keepdims=True), R.shape([2, 2]))"), "[2, 2] -2 -2 5 5");
  EXPECT_EQ(
      computed("R.strided_slice(x, (R.prim_value(1),), (R.prim_value(0),), (R.prim_value(3),), (R.prim_value(2),), "
               "assume_inbound=False)"),
      "[2, 2] -1 -3 4 6");
  EXPECT_EQ(computed("R.take(x, R.const([1, 0], \"int64\"), axis=1)"), "[2, 2] 2 -1 -5 4");
  EXPECT_EQ(computed("R.take(x, R.const([5, 0], \"int64\"))"), "[2] 6 -1");
  EXPECT_EQ(computed("R.concat((x, x), axis=0)"), "[4, 3] -1 2 -3 4 -5 6 -1 2 -3 4 -5 6");
  EXPECT_EQ(computed("R.split(x, indices_or_sections=[1], axis=-1)[1]"), "[2, 2] 2 -3 -5 6");
  EXPECT_EQ(computed("R.astype(x, dtype=\"int32\")"), "[2, 3] -1 2 -3 4 -5 6");
  EXPECT_EQ(computed("R.nn.leakyrelu(x, alpha=0.5)"), "[2, 3] -0.5 2 -1.5 4 -2.5 6");
  EXPECT_EQ(computed("R.matmul(x, R.permute_dims(x, axes=[1, 0]), out_dtype=\"float32\")"), "[2, 2] 14 -32 -32 77");
  EXPECT_EQ(computed("R.astype(R.logical_not(R.less(x, R.const(0, \"float32\"))), dtype=\"float32\")"),
            "[2, 3] 0 1 0 1 0 1");
}

// Operators of the graph itself stand as they are.
TEST(ImportedModules, TakeOperatorsOfTheGraph) {
  const absl::StatusOr<Graph> graph = GraphOfText(R"(
@R.function
def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((3, 2), dtype="float32"):
    lv = R.hone.leaky_relu(x, alpha=0.25)
    gv = R.hone.transpose(lv, perm=[1, 0])
    return gv
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ(graph->nodes[0].op, "leaky_relu");
  EXPECT_EQ(FloatAttr(graph->nodes[0].attrs, "alpha"), 0.25);
  EXPECT_EQ(graph->type(graph->outputs[0]), (TensorType{kFloat32, {3, 2}}));
}

TEST(ImportedModules, NameTheirOutputs) {
  const absl::StatusOr<Graph> graph = GraphOfText(R"text(
@R.function
def main(x: R.Tensor((4,), dtype="int8")):
    R.func_attr({"domains": ["int[0,9)"], "elements": ["int4"], "output_elements": ["", "int4", ""]})
    first = R.hone.relu(x)
    second = x
    third = first
    return (first, second, third)
)text");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->output_names, ElementsAre("first", "second", "third"));
  EXPECT_THAT(graph->output_elements, ElementsAre("", "int4", ""));
  EXPECT_EQ(graph->values[graph->inputs[0]].element, "int4");
  EXPECT_EQ(graph->values[graph->inputs[0]].domain, "int[0,9)");
  EXPECT_EQ(graph->outputs[0], graph->outputs[2]);
}

TEST(ImportedModules, AreRefusedInOneMessage) {
  const auto message = [](const std::string& body) {
    const auto graph = GraphOfText(
        absl::StrCat("@R.function\ndef main(x: R.Tensor((2, 3), dtype=\"float32\")):\n", body, "    return gv\n"));
    EXPECT_FALSE(graph.ok());
    EXPECT_TRUE(IsImportError(graph.status())) << graph.status();
    return std::string(graph.status().message());
  };
  EXPECT_THAT(message("    gv = R.hone.nothing(x)\n"), HasSubstr("(R.hone.nothing): this operator is not supported"));
  EXPECT_THAT(message("    gv = R.hone.transpose(x, perm=[0, 0])\n"), HasSubstr("is not a permutation of 2 axes"));
  EXPECT_THAT(message("    gv = R.add(x, R.const([1, 2], \"float32\"))\n"), HasSubstr("node \"gv\" (R.add)"));
  EXPECT_THAT(message("    gv = R.nn.softmax(x, axis=7)\n"), HasSubstr("axis 7 is outside the rank 2"));
  EXPECT_THAT(message("    gv = R.nn.softmax(x, axis=1, spread=3)\n"),
              HasSubstr("attribute \"spread\" is not supported"));
  // Its first lists are 4096 x 4096 x 4096.
  std::string deep = "0";
  for (int depth = 0; depth < 3; ++depth) {
    deep = absl::StrCat("[", deep);
    for (int i = 1; i < 4096; ++i) deep += ", 0";
    deep += "]";
  }
  EXPECT_THAT(message(absl::StrCat("    gv = R.add(x, R.const(", deep, ", \"float32\"))\n")),
              HasSubstr("R.const of lists that differ in length"));
  EXPECT_THAT(message("    gv = R.sum(x, axis=1, spread=3)\n"), HasSubstr("attribute \"spread\" is not supported"));
  EXPECT_THAT(message("    gv = R.split(x, indices_or_sections=2, axis=1)\n"),
              HasSubstr("2 equal parts of 3 elements"));
  EXPECT_THAT(message("    R.func_attr({\"domains\": [\"\", \"\"]})\n    gv = R.nn.relu(x)\n"),
              HasSubstr("attribute \"domains\": it has not 1 texts"));
  EXPECT_THAT(message("    gv = R.shape([2, 3])\n"), HasSubstr("a value that is no tensor"));
  EXPECT_THAT(std::string(GraphOfText("@T.prim_func\ndef f(A: T.Buffer((2,), \"float32\")):\n    A[0] = T.float32(1)\n")
                              .status()
                              .message()),
              HasSubstr("no graph function"));
}

// What a model's file says in TensorIR is compiled and run: it has to stay inside its buffers.
TEST(ImportedModules, HaveNoTensorFunctionThatMayLeaveItsBuffers) {
  const auto graph = GraphOfText(R"(
@I.ir_module
class Module:
    @T.prim_func
    def shift(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[I[vi]]
    @R.function
    def main(x: R.Tensor((8,), dtype="float32"), at: R.Tensor((8,), dtype="int32")):
        cls = Module
        gv = R.call_tir(cls.shift, (x, at), out_sinfo=R.Tensor((8,), dtype="float32"))
        return gv
)");
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("shift: block B: A[I_1[vi]]: index 0, `I_1[vi]`, is not proven"));
}

}  // namespace
}  // namespace hone
