#include "tests/compiler/graph/net.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"

namespace hone {

int Net::Input(const Ints& shape, DType dtype) {
  const int value = graph_.AddValue(absl::StrCat("x", graph_.inputs.size()), {dtype, shape});
  graph_.inputs.push_back(value);
  return value;
}

int Net::Constant(const Ints& shape, uint64_t seed) {
  NdArray data(kFloat32, shape);
  Random random(seed);
  for (int64_t i = 0; i < data.NumElements(); ++i) data.Set(i, 0.5 + random.Uniform());
  return graph_.AddConstant(absl::StrCat("c", seed), std::move(data));
}

int Net::Constant(NdArray data) { return graph_.AddConstant("constant", std::move(data)); }

int Net::Filled(const Ints& shape, double value) {
  NdArray data(kFloat32, shape);
  for (int64_t i = 0; i < data.NumElements(); ++i) data.Set(i, value);
  return graph_.AddConstant("filled", std::move(data));
}

int Net::Op(std::string_view op, std::vector<int> inputs, Attrs attrs) {
  const absl::StatusOr<int> value =
      graph_.Add(op, absl::StrCat(std::string(op), graph_.nodes.size()), std::move(inputs), std::move(attrs));
  HONE_CHECK(value.ok()) << value.status().ToString();
  return *value;
}

void Net::Output(int value) {
  graph_.outputs.push_back(value);
  graph_.output_names.push_back(absl::StrCat("y", graph_.output_names.size()));
}

Attrs Perm(Net::Ints perm) { return {{"perm", std::move(perm)}}; }
Attrs Shape(Net::Ints shape) { return {{"shape", std::move(shape)}}; }
Attrs Over(Net::Ints axes) { return {{"axes", std::move(axes)}, {"keepdims", int64_t{1}}}; }

std::string Operators(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) absl::StrAppend(&text, text.empty() ? "" : " ", node.op);
  return text;
}

std::vector<NdArray> Interpreted(const Plan& plan) {
  std::vector<NdArray> inputs;
  for (const int input : plan.inputs) {
    const PlanTensor& tensor = plan.tensors[input];
    NdArray data(tensor.dtype, tensor.shape);
    Random random(inputs.size() + 1000);
    for (int64_t i = 0; i < data.NumElements(); ++i)
      data.Set(i, tensor.dtype.is_float() ? 2 * random.Uniform() - 1 : static_cast<double>(i % 3));
    inputs.push_back(std::move(data));
  }
  absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(plan, inputs);
  HONE_CHECK(outputs.ok()) << outputs.status().ToString();
  return *std::move(outputs);
}

std::vector<NdArray> Computed(const Graph& graph) {
  const absl::StatusOr<Plan> plan = MakePlan(graph, {.optimize = false, .fuse = false});
  HONE_CHECK(plan.ok()) << plan.status().ToString();
  return Interpreted(*plan);
}

void ExpectNear(const std::vector<NdArray>& got, const std::vector<NdArray>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    ASSERT_EQ(got[o].shape, want[o].shape) << "output " << o;
    double largest = 1;
    for (int64_t i = 0; i < want[o].NumElements(); ++i) largest = std::max(largest, std::abs(want[o].Get(i)));
    for (int64_t i = 0; i < want[o].NumElements(); ++i)
      ASSERT_NEAR(got[o].Get(i), want[o].Get(i), tolerance * largest) << "output " << o << " element " << i;
  }
}

Graph After(const Net& net, const std::function<absl::Status(Graph&)>& pass, double tolerance) {
  Graph graph = net.graph();
  const absl::Status done = pass(graph);
  EXPECT_TRUE(done.ok()) << done;
  ExpectNear(Computed(graph), Computed(net.graph()), tolerance);
  return graph;
}

}  // namespace hone
