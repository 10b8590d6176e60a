// Small graphs for tests, and what a pass did to one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/plan/plan.h"
#include "gtest/gtest.h"

namespace hone {

// Grows a graph. Operators must accept what they are given.
class Net {
 public:
  using Ints = std::vector<int64_t>;

  int Input(const Ints& shape, DType dtype = kFloat32);
  int Constant(const Ints& shape, uint64_t seed);  // in [0.5, 1.5)
  int Constant(NdArray data);
  int Filled(const Ints& shape, double value);
  int Op(std::string_view op, std::vector<int> inputs, Attrs attrs = {});
  void Output(int value);
  void SetDomain(int input, const std::string& domain) { graph_.values[input].domain = domain; }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
};

// Attributes of transpose, of reshape, and of a reduction that keeps its dimensions.
Attrs Perm(Net::Ints perm);
Attrs Shape(Net::Ints shape);
Attrs Over(Net::Ints axes);

// Names of the nodes in their order: "dense add relu".
std::string Operators(const Graph& graph);

// Runs the pass on a copy and gives that; fails unless both compute the same on seeded inputs, up to `tolerance`
// relative to the largest element.
Graph After(const Net& net, const std::function<absl::Status(Graph&)>& pass, double tolerance = 1e-5);

// What the plan computes in the interpreter on seeded inputs; the same of the graph, node by node.
std::vector<NdArray> Interpreted(const Plan& plan);
std::vector<NdArray> Computed(const Graph& graph);
void ExpectNear(const std::vector<NdArray>& got, const std::vector<NdArray>& want, double tolerance);

}  // namespace hone
