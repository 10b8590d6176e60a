// Functions that a model defines: a node that calls one computes what its nodes compute in the node's place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/plan/planner.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using testing::HasSubstr;

// A model that calls functions of the domain "own", of inputs `x` of 2 x 3 x 4 and an output `y`.
class FunctionsTest : public testing::Test {
 protected:
  FunctionsTest() {
    called_.Input("x", {2, 3, 4}).Output("y");
    inlined_.Input("x", {2, 3, 4}).Output("y");
  }

  onnx::FunctionProto& Define(const std::string& name, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs, int64_t opset = 17) {
    onnx::FunctionProto& function = *called_.model().add_functions();
    function.set_domain("own");
    function.set_name(name);
    for (const std::string& input : inputs) function.add_input(input);
    for (const std::string& output : outputs) function.add_output(output);
    function.add_opset_import()->set_version(opset);
    return function;
  }
  static onnx::NodeProto& Node(onnx::FunctionProto& function, const std::string& op,
                               const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  static void Refer(onnx::NodeProto& node, const std::string& name, const std::string& to,
                    onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_ref_attr_name(to);
    attribute.set_type(type);
  }
  void Call(const std::string& name, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
            const std::vector<OnnxAttr>& attributes = {}) {
    called_.Node(name, inputs, outputs, attributes).set_domain("own");
  }

  static NdArray Outcome(const OnnxBuilder& model) {
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(model.Bytes(), "");
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return {};
    const absl::StatusOr<Plan> plan = MakePlan(*graph);
    EXPECT_TRUE(plan.ok()) << plan.status();
    NdArray input(kFloat32, {2, 3, 4});
    const std::vector<float> numbers = Numbers(24, 7);
    for (int i = 0; i < 24; ++i) input.Set(i, numbers[static_cast<size_t>(i)]);
    absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(*plan, std::span(&input, 1));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return (*outputs)[0];
  }
  void ExpectAlike() {
    const NdArray got = Outcome(called_), expected = Outcome(inlined_);
    EXPECT_EQ(got.shape, expected.shape);
    EXPECT_EQ(got.data, expected.data);
  }
  std::string Refusal() const { return std::string(ImportOnnxBytes(called_.Bytes(), "").status().message()); }

  OnnxBuilder called_, inlined_;
};

TEST_F(FunctionsTest, ACallSeesItsInputsAndAttributesAlone) {
  onnx::FunctionProto& leaky = Define("Leaky", {"a", "x"}, {"r", "s"});
  Refer(Node(leaky, "LeakyRelu", {"a"}, "t"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  Node(leaky, "Add", {"t", "x"}, "r");  // its own `x`
  Node(leaky, "Neg", {"t"}, "s");
  called_.Floats("one", {1}, {1});
  Call("Leaky", {"x", "one"}, {"t"}, {{"slope", 0.25f}});
  Call("Leaky", {"t", "x"}, {"", "y"}, {{"slope", 0.5f}});
  inlined_.Floats("one", {1}, {1});
  inlined_.Node("LeakyRelu", {"x"}, {"a"}, {{"alpha", 0.25f}});
  inlined_.Node("Add", {"a", "one"}, {"b"});
  inlined_.Node("LeakyRelu", {"b"}, {"c"}, {{"alpha", 0.5f}});
  inlined_.Node("Neg", {"c"}, {"y"});
  ExpectAlike();
}

TEST_F(FunctionsTest, AnAttributeThatIsLeftOutHasTheFunctionsDefaultOrTheOperators) {
  onnx::FunctionProto& leaky = Define("Leaky", {"a"}, {"r"});
  Refer(Node(leaky, "LeakyRelu", {"a"}, "t"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  Refer(Node(leaky, "LeakyRelu", {"t"}, "r"), "alpha", "second", onnx::AttributeProto::FLOAT);
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.75f);
  constexpr int kAttributeProto = 11;
  leaky.GetReflection()->MutableUnknownFields(&leaky)->AddLengthDelimited(kAttributeProto, slope.SerializeAsString());
  Call("Leaky", {"x"}, {"y"});
  inlined_.Node("LeakyRelu", {"x"}, {"a"}, {{"alpha", 0.75f}});
  inlined_.Node("LeakyRelu", {"a"}, {"y"});
  ExpectAlike();
}

TEST_F(FunctionsTest, CallsAreNestedAndInputsLeftOut) {
  onnx::FunctionProto& clip = Define("Bound", {"a", "low", "high"}, {"r"});
  Node(clip, "Clip", {"a", "low", "high"}, "r");
  onnx::FunctionProto& twice = Define("Twice", {"a", "low"}, {"r"});
  Node(twice, "Bound", {"a", "low"}, "t").set_domain("own");
  Node(twice, "Add", {"t", "t"}, "r");
  called_.Floats("low", {}, {-0.5f});
  Call("Twice", {"x", "low"}, {"y"});
  inlined_.Floats("low", {}, {-0.5f});
  inlined_.Node("Clip", {"x", "low"}, {"t"});
  inlined_.Node("Add", {"t", "t"}, {"y"});
  ExpectAlike();
}

// Softmax took all dimensions from its axis on together before version 13.
TEST_F(FunctionsTest, ItsNodesAreOfItsOwnVersions) {
  onnx::FunctionProto& function = Define("Flat", {"a"}, {"r"}, 12);
  Node(function, "Softmax", {"a"}, "r");
  Call("Flat", {"x"}, {"y"});
  inlined_.Ints("flat", {2}, {2, 12}).Ints("shape", {3}, {2, 3, 4});
  inlined_.Node("Reshape", {"x", "flat"}, {"a"});
  inlined_.Node("Softmax", {"a"}, {"b"});
  inlined_.Node("Reshape", {"b", "shape"}, {"y"});
  ExpectAlike();
}

TEST_F(FunctionsTest, OneOfAnOverloadIsAnotherAndGoesBeforeAnOperator) {
  onnx::FunctionProto& plain = Define("F", {"a"}, {"r"});
  Node(plain, "Neg", {"a"}, "r");
  onnx::FunctionProto& other = Define("F", {"a"}, {"r"});
  Node(other, "Abs", {"a"}, "r");
  constexpr int kOverloadOfFunction = 13, kOverloadOfNode = 8;
  other.GetReflection()->MutableUnknownFields(&other)->AddLengthDelimited(kOverloadOfFunction, "2");
  onnx::FunctionProto& relu = Define("Relu", {"a"}, {"r"});
  relu.set_domain("");
  Node(relu, "Abs", {"a"}, "r");
  Call("F", {"x"}, {"a"});
  onnx::NodeProto& call = called_.Node("F", {"a"}, {"b"});
  call.set_domain("own");
  call.GetReflection()->MutableUnknownFields(&call)->AddLengthDelimited(kOverloadOfNode, "2");
  called_.Node("Relu", {"x"}, {"c"});
  called_.Node("Sub", {"b", "c"}, {"y"});
  inlined_.Node("Sub", {"x", "x"}, {"y"});  // | -x | - | x |
  ExpectAlike();
}

TEST_F(FunctionsTest, OneThatCallsItselfIsRefused) {
  onnx::FunctionProto& function = Define("Again", {"a"}, {"r"});
  Node(function, "Again", {"a"}, "r").set_domain("own");
  Call("Again", {"x"}, {"y"});
  EXPECT_THAT(Refusal(), HasSubstr("functions call one another more than 64 deep: none may call itself"));
}

TEST_F(FunctionsTest, ACallWithTooManyInputsIsRefused) {
  onnx::FunctionProto& function = Define("F", {"a"}, {"r"});
  Node(function, "Neg", {"a"}, "r");
  Call("F", {"x", "x"}, {"y"});
  EXPECT_THAT(Refusal(), HasSubstr("it has 2 inputs and 1 outputs, the model's function of its name 1 and 1"));
}

TEST_F(FunctionsTest, AReferenceOutsideAFunctionIsRefused) {
  Refer(called_.Node("LeakyRelu", {"x"}, {"y"}), "alpha", "slope", onnx::AttributeProto::FLOAT);
  EXPECT_THAT(Refusal(), HasSubstr("it refers to an attribute of a function, and is in none"));
}

}  // namespace
}  // namespace hone
