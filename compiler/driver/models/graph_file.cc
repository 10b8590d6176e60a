#include "compiler/driver/models/graph_file.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/npy.h"
#include "compiler/frontend/import_model.h"
#include "compiler/frontend/module_import.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::string PathIn(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / absl::StrCat(name, ".npy")).string();
}

}  // namespace

absl::StatusOr<Graph> LoadGraph(const std::string& path, const ImportOptions& options) {
  absl::StatusOr<Graph> graph = ImportModel(path, options);
  if (!graph.ok()) return WithExitCode(ExitCode::kImport, graph.status());
  for (const std::string& note : graph->notes) std::fprintf(stderr, "%s: %s\n", path.c_str(), note.c_str());
  return graph;
}

decltype(ImportOptions::constants) ConstantsIn(const std::string& folder) {
  auto read = std::make_shared<std::map<std::string, std::shared_ptr<const NdArray>>>();
  return [folder, read](const std::string& name) -> absl::StatusOr<std::shared_ptr<const NdArray>> {
    const std::string path = PathIn(folder, name);
    std::shared_ptr<const NdArray>& known = (*read)[name];
    if (known == nullptr && std::filesystem::exists(path)) {
      HONE_ASSIGN_OR_RETURN(NdArray array, ReadNpy(path));
      known = std::make_shared<const NdArray>(std::move(array));
    }
    return known;
  };
}

absl::StatusOr<Graph> GraphFromModule(const IrModule& module, const std::string& constants) {
  ImportOptions options;
  if (!constants.empty()) options.constants = ConstantsIn(constants);
  return ImportModule(module, options);
}

absl::Status WriteConstants(const std::string& folder, std::span<const std::shared_ptr<const NdArray>> constants) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return absl::InvalidArgumentError(absl::StrCat(folder, ": ", failed.message()));
  for (size_t i = 0; i < constants.size(); ++i)
    HONE_RETURN_IF_ERROR(WriteNpy(PathIn(folder, absl::StrCat(i)), *constants[i]));
  return absl::OkStatus();
}

}  // namespace hone
