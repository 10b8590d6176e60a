#include "compiler/graph/passes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct OptimizePass {
  const char* name;
  absl::Status (*run)(Graph&);
};

// Constants and what does nothing are folded twice, since FoldScales leaves both.
constexpr OptimizePass kOptimizePasses[] = {
    {"quantised_products", QuantisedProducts},
    {"fold_constants", FoldConstants},
    {"remove_no_ops", RemoveNoOps},
    {"crop_windows", CropWindows},
    {"recognise_patterns", RecognisePatterns},
    {"sink_layout", SinkLayout},
    {"fold_scales", FoldScales},
    {"fold_constants_again", FoldConstants},
    {"remove_no_ops_again", RemoveNoOps},
    {"expose_operands", ExposeOperands},
    {"fold_transposes", FoldTransposes},
    {"keep_channels_first", KeepChannelsFirst},
    {"raise_reshapes", RaiseReshapes},
};

}  // namespace

absl::Status Optimize(Graph& graph) {
  for (const OptimizePass& pass : kOptimizePasses) HONE_RETURN_IF_ERROR(pass.run(graph));
  return absl::OkStatus();
}

std::span<const GraphPass> GraphPasses() {
  static const auto* passes = [] {
    auto* all = new std::vector<GraphPass>;
    const auto add = [all](const OptimizePass& pass) {
      all->push_back({pass.name, [run = pass.run](Graph& graph, const std::set<std::string>&) { return run(graph); }});
    };
    for (const OptimizePass& pass : kOptimizePasses) add(pass);
    add({"optimize", Optimize});
    all->push_back({"bfloat16_products", Bfloat16Products});
    all->push_back({"int8_products", Int8Products});
    all->push_back({"int16_products", Int16Products});
    return all;
  }();
  return *passes;
}

}  // namespace hone
