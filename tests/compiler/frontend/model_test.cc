// Small models of the shapes people have: the optimised, fused plan computes what the graph computes node by node, and
// is cut as it should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "compiler/frontend/import_model.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/plan/planner.h"
#include "tests/compiler/frontend/onnx_builder.h"
#include "tests/processes.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<int64_t>;

class ModelTest : public testing::Test {
 protected:
  // Imports, plans both ways, runs both on the same inputs, compares; leaves the optimised plan and its outputs.
  void Run(const OnnxBuilder& model, double tolerance = 2e-5) {
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "");
    ASSERT_TRUE(graph.ok()) << graph.status();
    absl::StatusOr<Plan> plain = MakePlan(*graph, {.optimize = false, .fuse = false});
    ASSERT_TRUE(plain.ok()) << plain.status();
    absl::StatusOr<Plan> plan = MakePlan(*graph);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
    inputs_.clear();
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const PlanTensor& tensor = plan_.tensors[plan_.inputs[i]];
      NdArray input(tensor.dtype, tensor.shape);
      const std::vector<float> numbers = Numbers(input.NumElements(), 100 + i);
      for (int64_t e = 0; e < input.NumElements(); ++e) input.Set(e, tensor.dtype.is_float() ? numbers[e] : e % 5);
      inputs_.push_back(std::move(input));
    }
    absl::StatusOr<std::vector<NdArray>> expected = InterpretPlan(*plain, inputs_), got = InterpretPlan(plan_, inputs_);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status();
    outputs_ = *std::move(got);
    ASSERT_EQ(outputs_.size(), expected->size());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const NdArray &a = outputs_[o], &b = (*expected)[o];
      ASSERT_EQ(a.shape, b.shape);
      double largest = 0;
      for (int64_t i = 0; i < a.NumElements(); ++i) largest = std::max(largest, std::abs(b.Get(i)));
      for (int64_t i = 0; i < a.NumElements(); ++i)
        ASSERT_NEAR(a.Get(i), b.Get(i), tolerance * (1 + largest)) << "output " << o << " element " << i;
    }
  }

  std::vector<std::string> StepNames() const {
    std::vector<std::string> names;
    for (const PlanStep& step : plan_.steps) names.push_back(plan_.tasks[step.task].name);
    return names;
  }
  int Count(std::string_view part) const {
    const std::vector<std::string> names = StepNames();
    return static_cast<int>(std::count_if(names.begin(), names.end(),
                                          [&](const std::string& n) { return n.find(part) != std::string::npos; }));
  }

  Plan plan_;
  std::vector<NdArray> inputs_, outputs_;
};

// Convolution and batch norm as an exporter in training mode leaves them.
void ConvBn(OnnxBuilder& b, const std::string& x, const std::string& y, int64_t in, int64_t out, int64_t kernel,
            int64_t stride = 1, int64_t groups = 1) {
  b.Floats(y + ".w", {out, in / groups, kernel, kernel}, Numbers(out * in / groups * kernel * kernel, y.size() + 7));
  const int64_t pad = kernel / 2;
  b.Node("Conv", {x, y + ".w"}, {y + ".conv"},
         {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", groups}});
  std::vector<float> var = Numbers(out, 5);
  for (float& v : var) v = 1.2f + v;
  b.Floats(y + ".s", {out}, Numbers(out, 1))
      .Floats(y + ".b", {out}, Numbers(out, 2))
      .Floats(y + ".m", {out}, Numbers(out, 3))
      .Floats(y + ".v", {out}, var);
  b.Node("BatchNormalization", {y + ".conv", y + ".s", y + ".b", y + ".m", y + ".v"}, {y});
}

TEST_F(ModelTest, Mlp) {
  OnnxBuilder b;
  b.Input("x", {1, 7})
      .Floats("w1", {5, 7}, Numbers(35, 1))
      .Floats("b1", {5}, Numbers(5, 2))
      .Floats("w2", {5, 3}, Numbers(15, 3))
      .Output("y");
  b.Node("Gemm", {"x", "w1", "b1"}, {"h"}, {{"transB", int64_t{1}}});
  b.Node("Relu", {"h"}, {"r"});
  b.Node("MatMul", {"r", "w2"}, {"y"});
  Run(b);
  EXPECT_THAT(StepNames(), ElementsAre("dense_1x5x7_add_relu", "dense_1x3x5"));
  // Against loops written out here, which share nothing with the interpreter.
  const std::vector<float> w1 = Numbers(35, 1), b1 = Numbers(5, 2), w2 = Numbers(15, 3);
  for (int o = 0; o < 3; ++o) {
    double sum = 0;
    for (int h = 0; h < 5; ++h) {
      double hidden = b1[h];
      for (int i = 0; i < 7; ++i) hidden += inputs_[0].Get(i) * w1[h * 7 + i];
      sum += std::max(hidden, 0.0) * w2[h * 3 + o];
    }
    EXPECT_NEAR(outputs_[0].Get(o), sum, 1e-5);
  }
}

TEST_F(ModelTest, ResidualBlocks) {
  OnnxBuilder b;
  b.Input("x", {1, 3, 16, 16}).Output("y");
  ConvBn(b, "x", "stem", 3, 8, 7, 2);
  b.Node("Relu", {"stem"}, {"a"});
  b.Node("MaxPool", {"a"}, {"p"}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  ConvBn(b, "p", "c1", 8, 8, 3);
  b.Node("Relu", {"c1"}, {"r1"});
  ConvBn(b, "r1", "c2", 8, 8, 3);
  b.Node("Add", {"c2", "p"}, {"s1"});
  b.Node("Relu", {"s1"}, {"o1"});
  ConvBn(b, "o1", "c3", 8, 16, 3, 2);
  b.Node("Relu", {"c3"}, {"r3"});
  ConvBn(b, "r3", "c4", 16, 16, 3);
  ConvBn(b, "o1", "down", 8, 16, 1, 2);
  b.Node("Add", {"c4", "down"}, {"s2"});
  b.Node("Relu", {"s2"}, {"o2"});
  b.Node("GlobalAveragePool", {"o2"}, {"g"});
  b.Node("Flatten", {"g"}, {"f"});
  b.Floats("w", {16, 10}, Numbers(160, 4)).Floats("bias", {10}, Numbers(10, 5));
  b.Node("Gemm", {"f", "w", "bias"}, {"y"});
  Run(b);
  EXPECT_THAT(
      StepNames(),
      ElementsAre("transpose_conv2d_7x7_s2_8x8x8_add_relu", "max_pool_3x3_s2_4x4x8", "conv2d_3x3_s1_4x4x8_add_relu",
                  "conv2d_3x3_s1_4x4x8_add_add_relu", "conv2d_3x3_s2_2x2x16_add_relu", "conv2d_1x1_s2_2x2x16_add",
                  "conv2d_3x3_s1_2x2x16_add_add_relu", "mean_2x2x16_to_1x1x16", "dense_1x10x16_add"));
}

// Residual sums written the other way round are the same task.
TEST_F(ModelTest, EqualBlocksAreOneTask) {
  OnnxBuilder b;
  b.Input("x", {1, 4, 6, 6}).Output("y");
  ConvBn(b, "x", "a", 4, 4, 3);
  b.Node("Add", {"a", "x"}, {"s"});
  ConvBn(b, "s", "b", 4, 4, 3);
  b.Node("Add", {"s", "b"}, {"t"});
  ConvBn(b, "t", "c", 4, 4, 3);
  b.Node("Add", {"t", "c"}, {"y"});
  Run(b);
  EXPECT_EQ(Count("conv2d"), 3);
  EXPECT_EQ(plan_.tasks.size(), 2u);  // the convolution with the layout before it, and the one after it
  const auto conv = std::find_if(plan_.tasks.begin(), plan_.tasks.end(),
                                 [](const PlanTask& t) { return t.name.starts_with("transpose_conv2d"); });
  ASSERT_NE(conv, plan_.tasks.end());
  EXPECT_EQ(conv->weight, 3);
  EXPECT_EQ(conv->flop, 2.0 * 36 * 4 * 36 + 144);
  EXPECT_EQ(conv->bytes, 4.0 * (144 + 144 + 4 + 144));
}

TEST_F(ModelTest, InvertedResidualWithSqueezeAndExcitation) {
  OnnxBuilder b;
  b.Input("x", {1, 4, 8, 8}).Output("y");
  ConvBn(b, "x", "e", 4, 12, 1);
  b.Node("HardSwish", {"e"}, {"h"});
  ConvBn(b, "h", "d", 12, 12, 3, 1, 12);
  b.Node("Relu", {"d"}, {"dr"});
  b.Node("GlobalAveragePool", {"dr"}, {"g"});
  b.Floats("w1", {3, 12, 1, 1}, Numbers(36, 8))
      .Floats("b1", {3}, Numbers(3, 9))
      .Floats("w2", {12, 3, 1, 1}, Numbers(36, 10));
  b.Node("Conv", {"g", "w1", "b1"}, {"q"});
  b.Node("Relu", {"q"}, {"qr"});
  b.Node("Conv", {"qr", "w2"}, {"u"});
  b.Node("HardSigmoid", {"u"}, {"gate"}, {{"alpha", 1.0f / 6}});
  b.Node("Mul", {"gate", "dr"}, {"m"});
  ConvBn(b, "m", "p", 12, 4, 1);
  b.Node("Add", {"x", "p"}, {"y"});
  Run(b);
  EXPECT_EQ(Count("transpose"), 2);
  EXPECT_EQ(Count("depthwise_conv2d_3x3_s1_8x8x12_add_relu"), 1);
}

// As PyTorch's exporter writes a transformer layer: shapes computed from shapes, norms and GELU in single steps.
TEST_F(ModelTest, TransformerLayer) {
  constexpr int64_t kTokens = 6, kWidth = 8, kHeads = 2;
  OnnxBuilder b(14);
  b.Input("x", {1, kTokens, kWidth}).Output("y");
  b.Ints("i0", {}, {0})
      .Ints("i1", {}, {1})
      .Ints("heads", {1}, {kHeads})
      .Ints("size", {1}, {kWidth / kHeads})
      .Ints("axis0", {1}, {0});
  b.Node("Shape", {"x"}, {"shape"});
  b.Node("Gather", {"shape", "i0"}, {"batch"});
  b.Node("Gather", {"shape", "i1"}, {"length"});
  b.Node("Unsqueeze", {"batch", "axis0"}, {"batch1"});
  b.Node("Unsqueeze", {"length", "axis0"}, {"length1"});
  b.Node("Concat", {"batch1", "length1", "heads", "size"}, {"split_shape"}, {{"axis", int64_t{0}}});
  b.Ints("all", {1}, {-1});
  b.Node("Concat", {"batch1", "length1", "all"}, {"join_shape"}, {{"axis", int64_t{0}}});
  const auto linear = [&](const std::string& x, const std::string& y, int64_t in, int64_t out) {
    b.Floats(y + ".w", {in, out}, Numbers(in * out, y.size())).Floats(y + ".b", {out}, Numbers(out, 3 * y.size()));
    b.Node("MatMul", {x, y + ".w"}, {y + ".m"});
    b.Node("Add", {y + ".b", y + ".m"}, {y});
  };
  for (const char* name : {"q", "k", "v"}) {
    linear("x", name, kWidth, kWidth);
    b.Node("Reshape", {name, "split_shape"}, {std::string(name) + "4"});
    b.Node("Transpose", {std::string(name) + "4"}, {std::string(name) + "t"},
           {{"perm", std::string(name) == "k" ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}});
  }
  b.Node("MatMul", {"qt", "kt"}, {"scores"});
  b.Floats("root", {}, {2});
  b.Node("Div", {"scores", "root"}, {"scaled"});
  b.Node("Softmax", {"scaled"}, {"prob"}, {{"axis", int64_t{-1}}});
  b.Node("MatMul", {"prob", "vt"}, {"mix"});
  b.Node("Transpose", {"mix"}, {"mixt"}, {{"perm", Ints{0, 2, 1, 3}}});
  b.Node("Reshape", {"mixt", "join_shape"}, {"joined"});
  linear("joined", "out", kWidth, kWidth);
  b.Node("Add", {"out", "x"}, {"res"});
  // Layer norm in its parts.
  b.Node("ReduceMean", {"res"}, {"mean"}, {{"axes", Ints{-1}}});
  b.Node("Sub", {"res", "mean"}, {"centred"});
  b.Floats("two", {}, {2})
      .Floats("eps", {}, {1e-5f})
      .Floats("gamma", {kWidth}, Numbers(kWidth, 21))
      .Floats("beta", {kWidth}, Numbers(kWidth, 22));
  b.Node("Pow", {"centred", "two"}, {"squared"});
  b.Node("ReduceMean", {"squared"}, {"var"}, {{"axes", Ints{-1}}});
  b.Node("Add", {"var", "eps"}, {"safe"});
  b.Node("Sqrt", {"safe"}, {"dev"});
  b.Node("Div", {"centred", "dev"}, {"normal"});
  b.Node("Mul", {"normal", "gamma"}, {"scaled_norm"});
  b.Node("Add", {"scaled_norm", "beta"}, {"norm"});
  linear("norm", "up", kWidth, 4 * kWidth);
  // GELU in its parts.
  b.Floats("sqrt2", {}, {1.41421356f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f});
  b.Node("Div", {"up", "sqrt2"}, {"g1"});
  b.Node("Erf", {"g1"}, {"g2"});
  b.Node("Add", {"g2", "one"}, {"g3"});
  b.Node("Mul", {"up", "g3"}, {"g4"});
  b.Node("Mul", {"g4", "half"}, {"gelu"});
  linear("gelu", "down", 4 * kWidth, kWidth);
  b.Node("Add", {"down", "norm"}, {"y"});
  Run(b);
  EXPECT_THAT(StepNames(),
              ElementsAre("dense_6x8x8_add", "dense_6x8x8_add", "dense_6x8x8_add",
                          "batch_matmul_2x6x6x4_multiply_softmax_2x6x6_batch_matmul_6x2x4x6", "dense_6x8x8_add_add",
                          "layer_norm_6x8", "dense_6x32x8_add_gelu", "dense_6x8x32_add_add"));
}

TEST_F(ModelTest, PatchEmbedding) {
  OnnxBuilder b;
  b.Input("x", {1, 3, 8, 8})
      .Floats("w", {6, 3, 4, 4}, Numbers(288, 1))
      .Floats("bias", {6}, Numbers(6, 2))
      .Ints("s", {3}, {1, 6, 4});
  b.Floats("token", {1, 1, 6}, Numbers(6, 3)).Floats("place", {1, 5, 6}, Numbers(30, 4)).Output("y");
  b.Node("Conv", {"x", "w", "bias"}, {"c"}, {{"strides", Ints{4, 4}}});
  b.Node("Reshape", {"c", "s"}, {"r"});
  b.Node("Transpose", {"r"}, {"t"}, {{"perm", Ints{0, 2, 1}}});
  b.Node("Concat", {"token", "t"}, {"j"}, {{"axis", int64_t{1}}});
  b.Node("Add", {"j", "place"}, {"y"});
  Run(b);
  EXPECT_THAT(StepNames(), ElementsAre("transpose_8x8x3", "conv2d_4x4_s4_2x2x6_add", "concat_add_5x6"));
}

// The flattened image goes into a product: the rows of its weight move, not the image.
TEST_F(ModelTest, FlattenBeforeDense) {
  OnnxBuilder b;
  b.Input("x", {2, 2, 4, 4}).Floats("w", {5, 48}, Numbers(240, 1)).Output("y");
  ConvBn(b, "x", "c", 2, 3, 3);
  b.Node("Relu", {"c"}, {"r"});
  b.Node("Flatten", {"r"}, {"f"});
  b.Node("Gemm", {"f", "w"}, {"y"}, {{"transB", int64_t{1}}});
  Run(b);
  EXPECT_THAT(StepNames(), ElementsAre("transpose_conv2d_3x3_s1_2x4x4x3_add_relu", "dense_2x5x48"));
}

TEST_F(ModelTest, ChannelShuffle) {
  OnnxBuilder b;
  b.Input("x", {1, 6, 4, 4}).Ints("a", {5}, {1, 2, 3, 4, 4}).Ints("b", {4}, {1, -1, 4, 4}).Output("y");
  ConvBn(b, "x", "c", 6, 6, 1, 1, 2);
  b.Node("Reshape", {"c", "a"}, {"r"});
  b.Node("Transpose", {"r"}, {"t"}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  b.Node("Reshape", {"t", "b"}, {"s"});
  ConvBn(b, "s", "y", 6, 6, 3, 1, 6);
  Run(b);
}

TEST_F(ModelTest, UpsamplingWithSkips) {
  OnnxBuilder b;
  b.Input("x", {1, 2, 8, 8}).Floats("scales", {4}, {1, 1, 2, 2}).Output("y").Output("low");
  ConvBn(b, "x", "c1", 2, 4, 3);
  b.Node("LeakyRelu", {"c1"}, {"r1"}, {{"alpha", 0.1f}});
  b.Node("AveragePool", {"r1"}, {"p"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  ConvBn(b, "p", "c2", 4, 8, 3);
  b.Node("Sigmoid", {"c2"}, {"g"});
  b.Node("Mul", {"c2", "g"}, {"low"});
  b.Node("Resize", {"low", "", "scales"}, {"u"}, {{"mode", std::string("linear")}});
  b.Node("Concat", {"u", "r1"}, {"j"}, {{"axis", int64_t{1}}});
  ConvBn(b, "j", "c3", 12, 3, 1);
  b.Node("Softmax", {"c3"}, {"y"}, {{"axis", int64_t{1}}});
  Run(b);
  EXPECT_EQ(Count("conv2d_3x3_s1_4x4x8_add_silu"), 1);
  EXPECT_EQ(Count("transpose"), 3);  // the input and both outputs
}

TEST_F(ModelTest, GroupAndInstanceNorm) {
  OnnxBuilder b(18);
  b.Input("x", {2, 6, 5, 5})
      .Floats("s", {3}, Numbers(3, 1))
      .Floats("t", {3}, Numbers(3, 2))
      .Floats("s6", {6}, Numbers(6, 3))
      .Output("y");
  b.Node("GroupNormalization", {"x", "s", "t"}, {"g"}, {{"num_groups", int64_t{3}}});
  b.Node("Sigmoid", {"g"}, {"sg"});
  b.Node("Mul", {"g", "sg"}, {"m"});
  b.Node("InstanceNormalization", {"m", "s6", "s6"}, {"y"});
  Run(b, 1e-4);
}

TEST_F(ModelTest, OneDimensionalConvolutions) {
  OnnxBuilder b;
  b.Input("x", {1, 3, 10}).Floats("w", {4, 3, 3}, Numbers(36, 1)).Floats("w2", {4, 1, 3}, Numbers(12, 2)).Output("y");
  b.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1}}, {"strides", Ints{2}}});
  b.Node("Relu", {"c"}, {"r"});
  b.Node("Conv", {"r", "w2"}, {"d"}, {{"pads", Ints{2, 0}}, {"group", int64_t{4}}});
  b.Node("MaxPool", {"d"}, {"p"}, {{"kernel_shape", Ints{2}}});
  b.Node("Add", {"p", "p"}, {"y"});
  Run(b);
  EXPECT_EQ(Count("transpose"), 2);
}

TEST_F(ModelTest, Embedding) {
  OnnxBuilder b;
  b.Input("ids", {1, 4}, onnx::TensorProto::INT64)
      .Floats("table", {5, 6}, Numbers(30, 1))
      .Floats("s", {6}, Numbers(6, 2))
      .Output("y");
  b.Node("Gather", {"table", "ids"}, {"e"});
  b.Node("LayerNormalization", {"e", "s"}, {"y"});
  Run(b);
  const PlanTask& gather = plan_.tasks[plan_.steps[0].task];
  EXPECT_EQ(std::get<std::vector<std::string>>(gather.func.attrs.at("domains")),
            (std::vector<std::string>{"", "int[0,5)", ""}));
  EXPECT_EQ(std::get<Ints>(gather.func.attrs.at("constants")), Ints{0});
}

// "domain.NAME" in the model's metadata says which values an input of integers takes.
TEST_F(ModelTest, DomainsOfInputsComeFromTheMetadata) {
  OnnxBuilder b;
  b.Input("n", {6}, onnx::TensorProto::INT64).Output("y");
  b.Node("Mul", {"n", "n"}, {"y"});
  onnx::StringStringEntryProto* entry = b.model().add_metadata_props();
  entry->set_key("domain.n");
  entry->set_value("int[2,30)");
  Run(b);
  EXPECT_EQ(std::get<std::vector<std::string>>(plan_.tasks[0].func.attrs.at("domains")),
            (std::vector<std::string>{"int[2,30)", ""}));
  for (const char* bad : {"int[5,5)", "int[0,9]", "positive", "int[0)", "int[a,b)", ""}) {
    entry->set_value(bad);
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(b.Bytes(), "");
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr("input \"n\": the metadata \"domain.n\"")) << bad;
  }
}

TEST_F(ModelTest, KnownConditionsAreDecided) {
  OnnxBuilder b;
  b.Input("x", {3}).Output("y");
  const auto branch = [](const std::string& op, const std::string& out) {
    onnx::GraphProto g;
    onnx::NodeProto& node = *g.add_node();
    node.set_op_type(op);
    node.add_input("x");
    node.add_output(out);
    g.add_output()->set_name(out);
    return g;
  };
  b.Ints("one", {}, {1});
  b.Node("Shape", {"x"}, {"s"});
  b.Node("Size", {"s"}, {"rank"});
  b.Node("Equal", {"rank", "one"}, {"is_vector"});
  b.Node("If", {"is_vector"}, {"y"}, {{"then_branch", branch("Neg", "n")}, {"else_branch", branch("Exp", "e")}});
  Run(b);
  EXPECT_EQ(outputs_[0].Get(0), -inputs_[0].Get(0));
}

TEST_F(ModelTest, OutputsOfEveryKind) {
  OnnxBuilder b;
  b.Input("x", {2, 3})
      .Floats("c", {2}, {5, 6})
      .Ints("flat", {1}, {6})
      .Output("x")
      .Output("c")
      .Output("view")
      .Output("r")
      .Output("again");
  b.Node("Relu", {"x"}, {"r"});
  b.Node("Reshape", {"r", "flat"}, {"view"});
  b.Node("Identity", {"r"}, {"again"});
  Run(b);
  ASSERT_EQ(outputs_.size(), 5u);
  EXPECT_EQ(outputs_[0].Get(1), inputs_[0].Get(1));
  EXPECT_EQ(outputs_[1].Get(1), 6);
  EXPECT_EQ(outputs_[2].shape, Ints{6});
  EXPECT_EQ(outputs_[2].Get(4), std::max(0.0, inputs_[0].Get(4)));
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const PlanTensor& tensor = plan_.tensors[plan_.outputs[i]];
    EXPECT_EQ(tensor.kind, PlanTensor::kOutput);
    EXPECT_EQ(tensor.alias_of, -1);
  }
  EXPECT_EQ(plan_.tensors[plan_.outputs[3]].name, "r");
}

TEST_F(ModelTest, BatchIsTakenAsOne) {
  OnnxBuilder b;
  b.Input("x", {-1, 4}).Output("y").Node("Relu", {"x"}, {"y"});
  Run(b);
  EXPECT_EQ(outputs_[0].shape, (Ints{1, 4}));
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(b.Bytes(), "");
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(
      graph->notes,
      ElementsAre("The dimension 0 (\"n\") of input \"x\" has no fixed size and is taken as 1; --dim n=SIZE gives "
                  "another."));
  const absl::StatusOr<Graph> eight = ImportOnnxBytes(b.Bytes(), "", {.dims = {{"n", 8}}});
  ASSERT_TRUE(eight.ok());
  EXPECT_EQ(eight->type(eight->inputs[0]).shape, (Ints{8, 4}));
  EXPECT_TRUE(eight->notes.empty());
  const absl::StatusOr<Graph> three = ImportOnnxBytes(b.Bytes(), "", {.shapes = {{"x", {3, 9}}}});
  ASSERT_TRUE(three.ok());
  EXPECT_EQ(three->type(three->inputs[0]).shape, (Ints{3, 4})) << "what the model says stays";
}

// The most memory that the process had since the last call, in bytes; 0 where the system does not tell.
int64_t TakePeakMemory() {
  const int64_t kib = KiBOf(::getpid(), "VmHWM");
  std::ofstream reset("/proc/self/clear_refs");
  return reset << "5" << std::flush ? kib << 10 : 0;
}

void AddRaw(OnnxBuilder& model, const std::string& name, std::initializer_list<int64_t> shape) {
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  size_t bytes = 4;
  for (const int64_t extent : shape) {
    tensor.add_dims(extent);
    bytes *= static_cast<size_t>(extent);
  }
  tensor.set_raw_data(std::string(bytes, 'x'));
}

class ImportMemory : public testing::Test {
 protected:
  // Large arrays are given back to the system when they are freed, whatever was freed before.
  ImportMemory() { ::mallopt(M_MMAP_THRESHOLD, 1 << 20); }
  ~ImportMemory() override { std::filesystem::remove(path_); }
  void Write(const OnnxBuilder& model) { std::ofstream(path_, std::ios::binary) << model.Bytes(); }
  const std::string path_ = testing::TempDir() + "/large_" + std::to_string(::getpid()) + ".onnx";
};

TEST_F(ImportMemory, OfAFileNoSecondCopyIsHeld) {
  constexpr int64_t kBytes = int64_t{48} << 20;
  {
    OnnxBuilder b;
    b.Input("x", {kBytes / 4}).Output("y").Node("Add", {"x", "w"}, {"y"});
    AddRaw(b, "w", {kBytes / 4});
    Write(b);
  }
  if (TakePeakMemory() == 0) GTEST_SKIP() << "this system does not tell how much memory was used";
  const int64_t before = TakePeakMemory();
  const absl::StatusOr<Graph> graph = ImportModel(path_);
  EXPECT_LT(TakePeakMemory() - before, kBytes * 5 / 4);
  ASSERT_TRUE(graph.ok()) << graph.status();
}

// Weights change their layout and take up scales one after another.
TEST_F(ImportMemory, OfWeightsInTheirOldFormNoneIsHeldForLong) {
  constexpr int64_t kChannels = 416, kConvolutions = 8, kBytes = kConvolutions * kChannels * kChannels * 9 * 4;
  {
    OnnxBuilder b;
    b.Input("x0", {1, kChannels, 4, 4}).Output("x8");
    for (int i = 0; i < kConvolutions; ++i) {
      const std::string n = std::to_string(i);
      AddRaw(b, "w" + n, {kChannels, kChannels, 3, 3});
      AddRaw(b, "s" + n, {1, kChannels, 1, 1});
      b.Node("Conv", {"x" + n, "w" + n}, {"c" + n}, {{"pads", Ints{1, 1, 1, 1}}});
      b.Node("Mul", {"c" + n, "s" + n}, {"x" + std::to_string(i + 1)});
    }
    Write(b);
  }
  if (TakePeakMemory() == 0) GTEST_SKIP() << "this system does not tell how much memory was used";
  const int64_t before = TakePeakMemory();
  absl::StatusOr<Graph> graph = ImportModel(path_);
  EXPECT_LT(TakePeakMemory() - before, kBytes * 3 / 2);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Plan> plan = MakePlan(*std::move(graph));
  EXPECT_LT(TakePeakMemory() - before, kBytes * 3 / 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps.size(), 10u);  // with a change of layout at each end
}

}  // namespace
}  // namespace hone
