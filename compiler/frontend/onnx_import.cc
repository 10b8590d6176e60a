#include "compiler/frontend/onnx_import.h"

#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/frontend/graph_of_model.h"
#include "compiler/frontend/model_file.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::ZeroCopyInputStream;

// A model, and what was found wrong with it so far.
struct Decoded {
  OnnxModel model;
  std::vector<std::string> problems;
};

// `bytes`: of the file, where it has a size.
absl::StatusOr<Decoded> Decode(ZeroCopyInputStream& file, int64_t bytes, const std::string& folder) {
  if (bytes > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has ", bytes, " bytes; beyond 2 GiB weights must be external data"));
  }
  Decoded decoded;
  HONE_ASSIGN_OR_RETURN(decoded.model, DecodeOnnx(file, bytes, folder, decoded.problems));
  return decoded;
}

// A file on its way to a Decoded.
struct Opened {
  Decoded decoded;
  std::string digest;
};
absl::StatusOr<Opened> DecodeFile(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const int fd, OpenToRead(path));
  struct stat info {};
  ::fstat(fd, &info);
  ModelFile file(fd);
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  absl::StatusOr<Decoded> decoded = Decode(file, info.st_size, folder);
  if (file.error() != 0)
    return absl::InternalError(absl::StrCat("cannot read ", path, ": ", std::strerror(file.error())));
  if (!decoded.ok()) return Annotate(decoded.status(), path);
  return Opened{*std::move(decoded), file.Digest()};
}

}  // namespace

absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  ArrayInputStream file(bytes.data(), static_cast<int>(std::min<int64_t>(size, INT_MAX)));
  absl::StatusOr<Decoded> decoded = Decode(file, size, folder);
  if (!decoded.ok()) return AsImportError(decoded.status());
  absl::StatusOr<Graph> graph = GraphOfModel(decoded->model, /*last=*/true, decoded->problems, options);
  if (!graph.ok()) return AsImportError(graph.status());
  return graph;
}

absl::Status ImportOnnxAtSizes(const std::string& path, const ImportOptions& options,
                               std::span<const std::map<std::string, int64_t>> sizes,
                               const std::function<absl::Status(Graph)>& take) {
  absl::StatusOr<Opened> opened = DecodeFile(path);
  if (!opened.ok()) return AsImportError(opened.status());
  for (const std::map<std::string, int64_t>& at : sizes) {
    const bool last = &at == &sizes.back();
    absl::StatusOr<Graph> graph =
        GraphOfModel(opened->decoded.model, last, opened->decoded.problems, AtSizes(options, at));
    if (!graph.ok()) return AsImportError(Annotate(graph.status(), path));
    graph->file_digest = opened->digest;
    HONE_RETURN_IF_ERROR(take(*std::move(graph)));
  }
  return absl::OkStatus();
}

}  // namespace hone
