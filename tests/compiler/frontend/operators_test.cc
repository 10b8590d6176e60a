// What importing does beyond the single operator: values and shapes that come at run time, graphs inside nodes, narrow
// element types. The operators' numbers are tested by tests/onnx/suite and onnx_node_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/op.h"
#include "compiler/graph/operators/narrow_types.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/graph/planner.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<int64_t>;

std::string ErrorOf(const OnnxBuilder& model) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "");
  return graph.ok() ? "" : std::string(graph.status().message());
}

NdArray Floats(const Ints& shape, const std::vector<float>& values) {
  return NdArray::Of<float>(kFloat32, shape, values);
}
NdArray Integers(const Ints& shape, const Ints& values) { return NdArray::Of<int64_t>(kInt64, shape, values); }

std::vector<double> RunOnce(const OnnxBuilder& model, const std::vector<NdArray>& inputs) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const absl::StatusOr<Plan> plan = MakePlan(*graph);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(*plan, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<double> values;
  if (!outputs.ok()) return values;
  for (int64_t i = 0; i < (*outputs)[0].NumElements(); ++i) values.push_back((*outputs)[0].Get(i));
  return values;
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
  EXPECT_THAT(ErrorOf(model), HasSubstr("the graphs inside nodes come to more than 65536 nodes"));
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
