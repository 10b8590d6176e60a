// What importing does beyond the single operator: values and shapes that come at run time, graphs inside nodes, narrow
// element types. The operators' numbers are tested by tests/onnx/suite and onnx_node_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/op.h"
#include "compiler/graph/operators/narrow_types.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/graph/plan/planner.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<int64_t>;

std::string ErrorOf(const OnnxBuilder& model, const ImportOptions& options = {}) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "", options);
  return graph.ok() ? "" : std::string(graph.status().message());
}

NdArray Floats(const Ints& shape, const std::vector<float>& values) {
  return NdArray::Of<float>(kFloat32, shape, values);
}
NdArray Integers(const Ints& shape, const Ints& values) { return NdArray::Of<int64_t>(kInt64, shape, values); }

// The outputs, one after the other.
std::vector<std::vector<double>> RunAll(const OnnxBuilder& model, const std::vector<NdArray>& inputs,
                                        const ImportOptions& options = {}) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "", options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(*plan, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<std::vector<double>> all;
  for (size_t o = 0; outputs.ok() && o < outputs->size(); ++o) {
    std::vector<double>& values = all.emplace_back();
    for (int64_t i = 0; i < (*outputs)[o].NumElements(); ++i) values.push_back((*outputs)[o].Get(i));
  }
  return all;
}
std::vector<double> RunOnce(const OnnxBuilder& model, const std::vector<NdArray>& inputs,
                            const ImportOptions& options = {}) {
  const std::vector<std::vector<double>> all = RunAll(model, inputs, options);
  return all.empty() ? std::vector<double>() : all[0];
}

void DeclareOutput(OnnxBuilder& model, const Ints& shape) {
  auto* type = model.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
  type->mutable_shape()->clear_dim();
  for (const int64_t size : shape) type->mutable_shape()->add_dim()->set_dim_value(size);
}

TEST(Operators, AnAttributeThatNobodyKnowsIsRefused) {
  OnnxBuilder model;
  model.Input("x", {2}).Output("y").Node("Relu", {"x"}, {"y"}, {{"slope", 0.5f}});
  EXPECT_THAT(ErrorOf(model), HasSubstr("its attribute \"slope\" is not supported"));
}

// The exponentials and their sum are rounded as the standard's function rounds them; rounded once, three of the four
// would be 0.082275390625, 0.2236328125 and 0.36865234375.
TEST(Operators, ASoftmaxOfFloat16RoundsEveryStep) {
  OnnxBuilder model;
  model.Input("x", {4}, onnx::TensorProto::FLOAT16).Output("y").Node("Softmax", {"x"}, {"y"});
  NdArray x(DType::Float(16), {4});
  const std::vector<double> values = {-0.75, 0.625, 0.25, 0.75};
  for (size_t i = 0; i < values.size(); ++i) x.Set(static_cast<int64_t>(i), values[i]);
  EXPECT_THAT(RunOnce(model, {x}), ElementsAre(0.08233642578125, 0.325439453125, 0.2237548828125, 0.368896484375));
}

TEST(Operators, AShapeThatComesAtRunTimeIsTheOneTheModelDeclares) {
  OnnxBuilder model;
  model.Input("x", {4}).Input("s", {2}, onnx::TensorProto::INT64).Output("y").Node("Reshape", {"x", "s"}, {"y"});
  EXPECT_THAT(ErrorOf(model), HasSubstr("the model must declare the shape of the output"));
  DeclareOutput(model, {2, 2});
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->type(graph->outputs[0]).shape, (Ints{2, 2}));
  EXPECT_THAT(graph->notes, ElementsAre(HasSubstr("\"s\" comes at run time")));
}

TEST(Operators, BoundsOfASliceMayComeAtRunTime) {
  OnnxBuilder model;
  model.Input("x", {6}).Input("from", {1}, onnx::TensorProto::INT64).Input("to", {1}, onnx::TensorProto::INT64);
  model.Output("y").Node("Slice", {"x", "from", "to"}, {"y"});
  DeclareOutput(model, {2});
  const NdArray x = Floats({6}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(RunOnce(model, {x, Integers({1}, {1}), Integers({1}, {3})}), ElementsAre(1, 2));
  EXPECT_THAT(RunOnce(model, {x, Integers({1}, {-3}), Integers({1}, {-1})}), ElementsAre(3, 4));
}

TEST(Operators, AxesOfAReductionMayComeAtRunTime) {
  OnnxBuilder model(18);
  model.Input("x", {2, 2}).Input("axes", {1}, onnx::TensorProto::INT64).Output("y");
  model.Node("ReduceSum", {"x", "axes"}, {"y"}, {{"keepdims", int64_t{0}}});
  DeclareOutput(model, {2});
  const NdArray x = Floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(RunOnce(model, {x, Integers({1}, {0})}), ElementsAre(4, 6));
  EXPECT_THAT(RunOnce(model, {x, Integers({1}, {1})}), ElementsAre(3, 7));
  EXPECT_THAT(RunOnce(model, {x, Integers({1}, {-1})}), ElementsAre(3, 7));
}

// A graph with one node of two inputs.
onnx::GraphProto Body(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::GraphProto graph;
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  graph.add_output()->set_name(output);
  return graph;
}

TEST(Operators, AConditionAtRunTimeChoosesBetweenTwoResults) {
  OnnxBuilder model;
  model.Input("c", {}, onnx::TensorProto::BOOL).Input("x", {1}).Output("y");
  model.Node("If", {"c"}, {"y"},
             {{"then_branch", Body("Add", {"x", "x"}, "twice")}, {"else_branch", Body("Neg", {"x"}, "negative")}});
  NdArray condition(kBool, {});
  EXPECT_THAT(RunOnce(model, {condition, Floats({1}, {3})}), ElementsAre(-3));
  condition.SetInt(0, 1);
  EXPECT_THAT(RunOnce(model, {condition, Floats({1}, {3})}), ElementsAre(6));
}

// A loop's body: next = sum + x, and on it goes.
onnx::GraphProto LoopBody() {
  onnx::GraphProto body = Body("Add", {"sum", "x"}, "next");
  for (const char* input : {"i", "going", "sum"}) body.add_input()->set_name(input);
  onnx::NodeProto& keep = *body.add_node();
  keep.set_op_type("Identity");
  keep.add_input("going");
  keep.add_output("still");
  body.clear_output();
  for (const char* output : {"still", "next"}) body.add_output()->set_name(output);
  return body;
}

TEST(Operators, ALoopRunsAsOftenAsItsCountSays) {
  OnnxBuilder model;
  model.Input("x", {1}).Ints("count", {}, {4}).Output("y");
  model.Node("Loop", {"count", "", "x"}, {"y"}, {{"body", LoopBody()}});
  EXPECT_THAT(RunOnce(model, {Floats({1}, {2})}), ElementsAre(10));
}

TEST(Operators, LoopsInsideLoopsCostNoMoreThanALimit) {
  onnx::GraphProto outer = LoopBody();
  onnx::NodeProto& loop = *outer.mutable_node(0);
  loop.set_op_type("Loop");
  loop.clear_input();
  for (const char* input : {"count", "", "sum"}) loop.add_input(input);
  onnx::AttributeProto& body = *loop.add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  *body.mutable_g() = LoopBody();
  OnnxBuilder model;
  model.Input("x", {1}).Ints("count", {}, {1000}).Output("y");
  model.Node("Loop", {"count", "", "x"}, {"y"}, {{"body", outer}});
  EXPECT_THAT(ErrorOf(model), HasSubstr("the graphs inside nodes and functions come to more than 65536 nodes"));
}

TEST(Operators, WithoutElementsThereIsNothingToCompute) {
  OnnxBuilder model(18);
  model.Input("x", {2, 0}).Ints("axes", {1}, {1}).Output("y").Node("ReduceSum", {"x", "axes"}, {"y"});
  EXPECT_THAT(RunOnce(model, {NdArray(kFloat32, {2, 0})}), ElementsAre(0, 0));
}

TEST(Operators, NarrowElementsAreConvertedAndNotComputedWith) {
  OnnxBuilder sum;
  sum.Input("x", {1}, onnx::TensorProto::FLOAT + 16).Output("y").Node("Relu", {"x"}, {"y"});  // 17: float8e4m3fn
  EXPECT_THAT(ErrorOf(sum), HasSubstr("does not take elements of type float8_e4m3fn"));
  OnnxBuilder back;
  back.Input("x", {5}).Output("y").Node("Cast", {"x"}, {"narrow"}, {{"to", int64_t{17}}});
  back.Node("Cast", {"narrow"}, {"y"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  // 0.0625 + 0.00390625 lies half way between two values: the one with the even code is taken; 448 is the greatest.
  EXPECT_THAT(RunOnce(back, {Floats({5}, {1.0f, -0.06640625f, 1000.0f, 0.0009765625f, 3.3f})}),
              ElementsAre(1.0, -0.0625, 448.0, 0.0, 3.25));
}

TEST(Operators, AValueThatShapesFollowFromMayBeFixed) {
  OnnxBuilder model;
  model.Input("n", {}, onnx::TensorProto::INT64).Output("y");
  model.Ints("zero", {}, {0}).Ints("one", {}, {1}).Node("Range", {"zero", "n", "one"}, {"y"});
  EXPECT_THAT(ErrorOf(model), HasSubstr("\"n\") is computed at run time"));
  EXPECT_THAT(ErrorOf(model, {.values = {{"n", {1, 2}}}}), HasSubstr("--value n: it gives 2 numbers"));
  EXPECT_THAT(ErrorOf(model, {.values = {{"n", {1.5}}}}), HasSubstr("1.5 is no integer"));
  EXPECT_THAT(ErrorOf(model, {.values = {{"m", {1}}}}), HasSubstr("--value m: no input has this name"));
  const ImportOptions four{.values = {{"n", {4}}}};
  EXPECT_THAT(RunOnce(model, {Integers({}, {4})}, four), ElementsAre(0, 1, 2, 3));
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "", four);
  EXPECT_THAT(graph->notes, ElementsAre("The input \"n\" is taken as [4], whatever it is given when the bundle runs."));
}

TEST(Operators, TheShapeOfAnOutputThatTheDataDecidesMayBeGiven) {
  OnnxBuilder model;
  model.Input("x", {5}).Output("y").Node("Unique", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(model), HasSubstr("depends on the data"));
  EXPECT_THAT(RunOnce(model, {Floats({5}, {3, 1, 3, 2, 1})}, {.shapes = {{"y", {3}}}}), ElementsAre(1, 2, 3));
}

void DeclareSequence(OnnxBuilder& model, const std::string& name) {
  onnx::ValueInfoProto& input = *model.graph().add_input();
  input.set_name(name);
  input.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
}

TEST(Operators, ASequenceIsAnInputAndAnOutputForEachElement) {
  OnnxBuilder model;
  DeclareSequence(model, "x");
  model.Input("z", {1}).Output("s").Output("last");
  model.Ints("zero", {}, {0}).Node("SequenceInsert", {"x", "z", "zero"}, {"s"});
  model.Node("SequenceAt", {"s", "end"}, {"last"});
  model.Ints("end", {}, {-1});
  EXPECT_THAT(ErrorOf(model), HasSubstr("--sequence x=2x3,4x3 says how many it has"));
  const ImportOptions options{.sequences = {{"x", {{2}, {1}}}}};
  const std::vector<NdArray> inputs = {Floats({2}, {1, 2}), Floats({1}, {3}), Floats({1}, {4})};
  EXPECT_THAT(RunAll(model, inputs, options),
              ElementsAre(ElementsAre(4), ElementsAre(1, 2), ElementsAre(3), ElementsAre(3)));
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "", options);
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->inputs[1])].name, "x[1]");
  EXPECT_THAT(graph->output_names, ElementsAre("s[0]", "s[1]", "s[2]", "last"));
  model.Node("Relu", {"s"}, {"r"});
  EXPECT_THAT(ErrorOf(model, options), HasSubstr("its input 0 (\"s\") is a sequence, which it does not take"));
}

TEST(Operators, WhatHasToBeATensorIsNoSequence) {
  onnx::GraphProto body = LoopBody();
  onnx::NodeProto& keep = *body.mutable_node(1);
  keep.set_op_type("SequenceConstruct");
  OnnxBuilder condition;
  condition.Input("x", {1}).Ints("count", {}, {2}).Output("y");
  condition.Node("Loop", {"count", "", "x"}, {"y"}, {{"body", body}});
  EXPECT_THAT(ErrorOf(condition), HasSubstr("its condition is no tensor"));
  OnnxBuilder nested;
  nested.Input("x", {1}).Output("y").Node("SequenceConstruct", {"x"}, {"s"});
  nested.Node("SequenceConstruct", {"s"}, {"y"});
  EXPECT_THAT(ErrorOf(nested), HasSubstr("element 0 is no tensor"));
  OnnxBuilder many;
  many.Input("x", {int64_t{1} << 39}).Ints("size", {}, {1}).Output("y").Node("SplitToSequence", {"x", "size"}, {"y"});
  EXPECT_THAT(ErrorOf(many), HasSubstr("parts of 1 of 549755813888 elements"));
}

TEST(Operators, APositionInASequenceMayComeAtRunTime) {
  OnnxBuilder model;
  model.Input("x", {3, 2}).Input("at", {}, onnx::TensorProto::INT64).Output("y");
  model.Node("SplitToSequence", {"x"}, {"rows"}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  model.Node("SequenceAt", {"rows", "at"}, {"y"});
  const NdArray x = Floats({3, 2}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(RunOnce(model, {x, Integers({}, {1})}), ElementsAre(2, 3));
  EXPECT_THAT(RunOnce(model, {x, Integers({}, {-1})}), ElementsAre(4, 5));
}

TEST(Operators, AnOptionalInputIsThereUnlessItIsSaidToBeAbsent) {
  OnnxBuilder model;
  onnx::ValueInfoProto& input = *model.graph().add_input();
  input.set_name("x");
  auto* tensor = input.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  tensor->mutable_shape()->add_dim()->set_dim_value(1);
  model.Output("y").Node("OptionalHasElement", {"x"}, {"y"});
  EXPECT_THAT(RunOnce(model, {Floats({1}, {0})}), ElementsAre(1));
  EXPECT_THAT(RunOnce(model, {}, {.absent = {"x"}}), ElementsAre(0));
  OnnxBuilder tensors;
  tensors.Input("x", {1}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(ErrorOf(tensors, {.absent = {"x"}}), HasSubstr("its type is not optional"));
}

// The reference's generator: numpy.random.seed(0); numpy.random.uniform(size=8) is .549 .715 .603 .545 .424 .646 .438
// .892.
TEST(Operators, DropoutInTrainingDrawsTheNumbersOfItsSeed) {
  OnnxBuilder model;
  model.Input("x", {8}).Input("training", {}, onnx::TensorProto::BOOL).Floats("ratio", {}, {0.5f}).Output("y");
  model.Node("Dropout", {"x", "ratio", "training"}, {"y"}, {{"seed", int64_t{0}}});
  const NdArray x = Floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  NdArray training(kBool, {});
  EXPECT_THAT(RunOnce(model, {x, training}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  training.SetInt(0, 1);
  EXPECT_THAT(RunOnce(model, {x, training}), ElementsAre(2, 4, 6, 8, 0, 12, 0, 16));
}

void AddDomain(OnnxBuilder& model, const std::string& domain, int64_t version) {
  onnx::OperatorSetIdProto& set = *model.model().add_opset_import();
  set.set_domain(domain);
  set.set_version(version);
}

TEST(Operators, AGradientIsTheSlope) {
  OnnxBuilder model;
  AddDomain(model, "ai.onnx.preview.training", 1);
  model.Input("a", {1}).Input("b", {2}).Output("y").Output("da").Output("db");
  model.Node("Tanh", {"a"}, {"t"});
  model.Node("Mul", {"t", "b"}, {"p"});
  model.Node("Exp", {"p"}, {"e"});
  model.Node("Div", {"e", "a"}, {"y"});
  onnx::NodeProto& node = model.Node("Gradient", {"a", "b"}, {"da", "db"}, {{"y", std::string("y")}});
  node.set_domain("ai.onnx.preview.training");
  onnx::AttributeProto& xs = *node.add_attribute();
  xs.set_name("xs");
  xs.set_type(onnx::AttributeProto::STRINGS);
  for (const char* name : {"a", "b"}) xs.add_strings(name);
  const auto sum_of_y = [&](float a, float b0, float b1) {
    const std::vector<double> y = RunAll(model, {Floats({1}, {a}), Floats({2}, {b0, b1})})[0];
    return y[0] + y[1];
  };
  const std::vector<std::vector<double>> all = RunAll(model, {Floats({1}, {0.7f}), Floats({2}, {0.5f, -0.3f})});
  constexpr float kStep = 0x1p-8f;
  const auto slope = [&](float da, float db0, float db1) {
    return (sum_of_y(0.7f + da, 0.5f + db0, -0.3f + db1) - sum_of_y(0.7f - da, 0.5f - db0, -0.3f - db1)) / (2 * kStep);
  };
  ASSERT_EQ(all.size(), 3u);
  EXPECT_NEAR(all[1][0], slope(kStep, 0, 0), 1e-3);
  EXPECT_NEAR(all[2][0], slope(0, kStep, 0), 1e-3);
  EXPECT_NEAR(all[2][1], slope(0, 0, kStep), 1e-3);
}

// Each comparison once: the rows of x lie at, below and above the threshold of 1.
TEST(Operators, TreesCompareInSixWays) {
  const std::vector<std::vector<double>> taken = {{1, 1, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {1, 0, 0}, {0, 1, 1}};
  for (int64_t mode = 0; mode < 6; ++mode) {
    OnnxBuilder model;
    AddDomain(model, "ai.onnx.ml", 5);
    model.Input("x", {3, 2}).Output("y");
    onnx::TensorProto modes;
    modes.set_data_type(onnx::TensorProto::UINT8);
    modes.add_dims(1);
    modes.add_int32_data(static_cast<int32_t>(mode));
    const Ints zero{0}, one{1};
    model
        .Node("TreeEnsemble", {"x"}, {"y"},
              {{"nodes_featureids", one},
               {"nodes_modes", modes},
               {"nodes_splits", FloatTensor({1}, {1})},
               {"nodes_truenodeids", one},
               {"nodes_trueleafs", one},
               {"nodes_falsenodeids", zero},
               {"nodes_falseleafs", one},
               {"tree_roots", zero},
               {"leaf_targetids", Ints{0, 0}},
               {"leaf_weights", FloatTensor({2}, {0, 1})}})
        .set_domain("ai.onnx.ml");
    EXPECT_EQ(RunOnce(model, {Floats({3, 2}, {9, 1, 9, 0, 9, 2})}), taken[static_cast<size_t>(mode)]) << mode;
  }
}

TEST(Operators, CountsOfNGramsAreWeighted) {
  const auto counts = [](const std::string& mode) {
    OnnxBuilder model;
    model.Input("x", {6}, onnx::TensorProto::INT64).Output("y");
    model.Node("TfIdfVectorizer", {"x"}, {"y"},
               {{"mode", mode},
                {"min_gram_length", int64_t{1}},
                {"max_gram_length", int64_t{2}},
                {"max_skip_count", int64_t{0}},
                {"ngram_counts", Ints{0, 1}},
                {"ngram_indexes", Ints{2, 0}},
                {"pool_int64s", Ints{7, 7, 8}},
                {"weights", std::vector<float>{0.5f, 9, 3}}});
    return RunOnce(model, {Integers({6}, {7, 8, 7, 7, 8, 1})});
  };
  EXPECT_THAT(counts("TF"), ElementsAre(2, 0, 3));
  EXPECT_THAT(counts("IDF"), ElementsAre(0.5, 0, 3));
  EXPECT_THAT(counts("TFIDF"), ElementsAre(1, 0, 9));
}

struct DecodeCase {
  const char* type;
  int code;
  double value;
};
// From the tables of ONNX, "Float stored in 8 bits", and OCP Microscaling Formats 1.0.
constexpr DecodeCase kCodes[] = {
    {"float8_e4m3fn", 0x7e, 448},     {"float8_e4m3fn", 0x01, 0x1p-9}, {"float8_e4m3fn", 0xb8, -1},
    {"float8_e4m3fnuz", 0x7f, 240},   {"float8_e5m2", 0x7b, 57344},    {"float8_e5m2", 0x01, 0x1p-16},
    {"float8_e5m2fnuz", 0x7f, 57344}, {"float4_e2m1fn", 0x7, 6},       {"float4_e2m1fn", 0x1, 0.5},
    {"float8_e8m0fnu", 0x7f, 1},      {"float8_e8m0fnu", 0x80, 2},
};
TEST(Operators, CodesOfNarrowFloats) {
  for (const DecodeCase& c : kCodes) {
    const NarrowType* type = FindNarrowType(std::string_view(c.type));
    ASSERT_NE(type, nullptr) << c.type;
    EXPECT_EQ(type->Decode(c.code), c.value) << c.type << " " << c.code;
  }
}

}  // namespace
}  // namespace hone
