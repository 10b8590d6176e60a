#include "compiler/frontend/import_model.h"

#include <utility>

#include "compiler/frontend/module_import.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<Graph> ImportModel(const std::string& path, const ImportOptions& options) {
  Graph graph;
  const std::map<std::string, int64_t> no_sizes;
  HONE_RETURN_IF_ERROR(ImportModelAtSizes(path, options, std::span(&no_sizes, 1), [&](Graph imported) {
    graph = std::move(imported);
    return absl::OkStatus();
  }));
  return graph;
}

absl::Status ImportModelAtSizes(const std::string& path, const ImportOptions& options,
                                std::span<const std::map<std::string, int64_t>> sizes,
                                const std::function<absl::Status(Graph)>& take) {
  return path.ends_with(".py") ? ImportModuleAtSizes(path, options, sizes, take)
                               : ImportOnnxAtSizes(path, options, sizes, take);
}

}  // namespace hone
