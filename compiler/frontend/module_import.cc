#include "compiler/frontend/module_import.h"

#include "compiler/arith/prove_bounds.h"
#include "compiler/frontend/graph_of_model.h"
#include "compiler/frontend/module_model.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

absl::Status CheckModule(const IrModule& module) {
  HONE_RETURN_IF_ERROR(Verify(module));
  for (const auto& function : module.functions) {
    const PrimFunc* func = std::get_if<PrimFunc>(&function);
    if (func != nullptr) HONE_RETURN_IF_ERROR(Annotate(ProveInBounds(*func), func->name));
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> GraphOfModule(const IrModule& module, const ImportOptions& options) {
  std::vector<std::string> problems;
  HONE_ASSIGN_OR_RETURN(OnnxModel model, ModelOfModule(module, options, problems));
  return GraphOfModel(model, /*last=*/true, std::move(problems), options);
}

}  // namespace

absl::StatusOr<Graph> ImportModule(const IrModule& module, const ImportOptions& options) {
  if (const absl::Status status = CheckModule(module); !status.ok()) return AsImportError(status);
  absl::StatusOr<Graph> graph = GraphOfModule(module, options);
  if (!graph.ok()) return AsImportError(graph.status());
  return graph;
}

absl::Status ImportModuleAtSizes(const std::string& path, const ImportOptions& options,
                                 std::span<const std::map<std::string, int64_t>> sizes,
                                 const std::function<absl::Status(Graph)>& take) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return AsImportError(text.status());
  const absl::StatusOr<IrModule> module = ParseIrModule(*text);
  if (!module.ok()) return AsImportError(Annotate(module.status(), path));
  if (const absl::Status status = CheckModule(*module); !status.ok()) return AsImportError(Annotate(status, path));
  const std::string digest = Sha256(*text);
  for (const std::map<std::string, int64_t>& at : sizes) {
    absl::StatusOr<Graph> graph = GraphOfModule(*module, AtSizes(options, at));
    if (!graph.ok()) return AsImportError(Annotate(graph.status(), path));
    graph->file_digest = digest;
    HONE_RETURN_IF_ERROR(take(*std::move(graph)));
  }
  return absl::OkStatus();
}

}  // namespace hone
