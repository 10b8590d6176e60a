// The passes that `hone opt --pass` names: those over tensor functions (compiler/lower/passes.h, and "lower", which
// runs them all) and those over graph functions (compiler/graph/passes.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/passes.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes.h"

namespace hone {

// Passes in the order in which they are run, for the target that was named. Those over graphs do not look into tensor
// functions, nor the others into graph functions.
struct ChosenPasses {
  std::vector<const LoweringPass*> tensor;
  std::vector<const GraphPass*> graph;
  LowerOptions lower;
  std::set<std::string> features;

  absl::StatusOr<PrimFunc> Run(PrimFunc func) const;
  absl::Status Run(Graph& graph_of_module) const;
};

// `target` as ParseTarget reads it; "": none is named. InvalidArgument where a name is no pass's, or the target is for
// nothing.
absl::StatusOr<ChosenPasses> ChoosePasses(const std::vector<std::string>& names, const std::string& target);

std::string TensorPassNames();  // all there are: a list with commas
std::string GraphPassNames();

}  // namespace hone
