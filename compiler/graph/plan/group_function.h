// A group as a TensorIR function.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan/group.h"

namespace hone {

struct GroupFunction {
  PrimFunc func;            // attributes "outputs", "constants", "domains" are set
  std::vector<int> params;  // the graph's value for each param, outputs last
  std::string name;         // for people; not unique
  double flop = 0, bytes = 0;
};

// Elementwise operators that follow each other are one block; constants of one element are literals.
absl::StatusOr<GroupFunction> MakeGroupFunction(const Graph& graph, const Group& group);

// "conv2d_3x3_s2_112x112x64_add_relu"
std::string GroupName(const Graph& graph, const Group& group);

}  // namespace hone
