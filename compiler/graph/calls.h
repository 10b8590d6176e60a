// The attributes of nodes that call what is no operator (operators/flow/calls.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

// "function", its name; of what it gives back "dtypes", "ranks" and "shapes", one after the other, in numbers so that a
// graph at several sizes says how they follow from these (graph_at_sizes.h).
Attrs CallAttrs(std::string function, std::span<const TensorType> outputs);

// What it gives back. InvalidArgument when the attributes do not say it.
absl::StatusOr<std::vector<TensorType>> OutputsOfCall(const Attrs& attrs);

}  // namespace hone
