#include "compiler/driver/commands/opt_passes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target.h"

namespace hone {
namespace {

const std::vector<LoweringPass>& TensorPasses() {
  static const auto* rows = [] {
    auto* all = new std::vector<LoweringPass>(LoweringPasses().begin(), LoweringPasses().end());
    all->push_back({"lower", [](PrimFunc func, const LowerOptions& lower) -> absl::StatusOr<PrimFunc> {
                      HONE_ASSIGN_OR_RETURN(LoweredFunc lowered, Lower(func, lower));
                      return std::move(lowered.func);
                    }});
    return all;
  }();
  return *rows;
}

std::string NamesOf(const auto& passes) {
  return absl::StrJoin(passes, ", ", [](std::string* out, const auto& pass) { absl::StrAppend(out, pass.name); });
}

}  // namespace

absl::StatusOr<PrimFunc> ChosenPasses::Run(PrimFunc func) const {
  for (const LoweringPass* pass : tensor) { HONE_ASSIGN_OR_RETURN(func, pass->run(std::move(func), lower)); }
  return func;
}

absl::Status ChosenPasses::Run(Graph& graph_of_module) const {
  for (const GraphPass* pass : graph) {
    HONE_RETURN_IF_ERROR(Annotate(pass->run(graph_of_module, features), absl::StrCat("--pass ", pass->name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChosenPasses> ChoosePasses(const std::vector<std::string>& names, const std::string& target) {
  ChosenPasses chosen;
  if (!target.empty()) {
    if (names.empty()) return absl::InvalidArgumentError("--target is what passes are for; add --pass lower");
    HONE_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
    chosen.features = parsed.features;
    chosen.lower = LowerOptionsFor(parsed);
  }
  for (const std::string& name : names) {
    const auto tensor = std::ranges::find(TensorPasses(), name, &LoweringPass::name);
    const auto graph = std::ranges::find(GraphPasses(), name, &GraphPass::name);
    if (tensor != TensorPasses().end()) {
      chosen.tensor.push_back(&*tensor);
    } else if (graph != GraphPasses().end()) {
      chosen.graph.push_back(&*graph);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--pass ", name, ": there are ", TensorPassNames(),
                                                     " for tensor functions and ", GraphPassNames(),
                                                     " for graph functions"));
    }
  }
  return chosen;
}

std::string TensorPassNames() { return NamesOf(TensorPasses()); }
std::string GraphPassNames() { return NamesOf(GraphPasses()); }

}  // namespace hone
