// The networks of exported/ as graphs. The files have no weights: these are made up.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

std::set<std::string> ExportedNetworks();  // names, "resnet18"
// With weights in [0.5, 1), of which no pass thinks that they are none.
absl::StatusOr<Graph> ExportedGraph(const std::string& name);

}  // namespace hone
