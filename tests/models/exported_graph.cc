#include "tests/models/exported_graph.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kExportedFolder = HONE_TEST_DATA "/models/exported";

absl::Status WriteWeights(const Json& weights, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  Random random(1);
  std::vector<float> values;
  for (const Json& weight : weights) {
    int64_t elements = 1;
    for (const Json& extent : weight.at("shape")) elements *= extent.get<int64_t>();
    values.resize(static_cast<size_t>(elements));
    for (float& value : values) value = static_cast<float>(0.5 + random.Uniform() / 2);
    file.seekp(weight.at("offset").get<int64_t>());
    file.write(reinterpret_cast<const char*>(values.data()), elements * 4);
  }
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

}  // namespace

std::set<std::string> ExportedNetworks() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExportedFolder)) {
    if (entry.path().extension() == ".onnx") names.insert(entry.path().stem());
  }
  return names;
}

absl::StatusOr<Graph> ExportedGraph(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/hone_exported_", getpid());
  fs::create_directories(folder);
  HONE_ASSIGN_OR_RETURN(const std::string json, ReadFile(absl::StrCat(kExportedFolder, "/", name, ".json")));
  HONE_RETURN_IF_ERROR(WriteWeights(Json::parse(json).at("weights"), absl::StrCat(folder, "/", name, ".onnx.data")));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(absl::StrCat(kExportedFolder, "/", name, ".onnx")));
  absl::StatusOr<Graph> graph = ImportOnnxBytes(bytes, folder);
  fs::remove_all(folder);
  return graph;
}

}  // namespace hone
