// Single operators, all that make_op_cases.py knows, against what ONNX Runtime computes: once as `hone compile` and
// `hone run` do it (default schedules, compiled, in a bundle, by the runtime), for both numeric levels, once in the
// interpreter.
//
// The cases are written by Python on first use and again when the script changes; without HONE_PYTHON the tests skip.
// They are dealt to a few tests, so that ctest runs them side by side.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/npy.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kShards = 4;
constexpr size_t kLeastCases = 400;

const char* Python() { return std::getenv("HONE_PYTHON"); }

// Held while the cases are written: the tests are processes that ctest starts at the same time.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    flock(file_, LOCK_EX);
  }
  ~FileLock() { close(file_); }

 private:
  int file_;
};

// The folder with index.json, up to date.
absl::StatusOr<std::string> WriteCases() {
  const std::string scripts = HONE_TEST_DATA "/models", folder = HONE_BIN "/../op_cases", stamp = folder + "/.made_by";
  fs::create_directories(folder);
  const FileLock lock(folder + "/.lock");
  std::string sources;
  for (const char* script : {"/make_op_cases.py", "/random_programs.py", "/reference.py"}) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(scripts + script));
    sources += text;
  }
  const std::string digest = Sha256(sources);
  const absl::StatusOr<std::string> made = ReadFile(stamp);
  if (made.ok() && *made == digest) return folder;
  const std::string command =
      absl::StrCat("'", Python(), "' '", scripts, "/make_op_cases.py' -o '", folder, "' >'", folder, "/.log' 2>&1");
  if (const int code = std::system(command.c_str()); code != 0) {
    const absl::StatusOr<std::string> log = ReadFile(folder + "/.log");
    return absl::InternalError(absl::StrCat(command, " ended with ", code, "\n", log.ok() ? *log : ""));
  }
  std::ofstream(stamp) << digest;
  return folder;
}

// Empty when all elements agree: |got - want| <= atol + rtol * |want|.
std::string Difference(const NdArray& got, const NdArray& want, double rtol, double atol) {
  if (got.shape != want.shape) return "another shape";
  if (got.dtype != want.dtype)
    return absl::StrCat("its type is ", ToText(got.dtype), " instead of ", ToText(want.dtype));
  for (int64_t i = 0; i < want.NumElements(); ++i) {
    if (!want.dtype.is_float()) {
      if (got.GetInt(i) == want.GetInt(i)) continue;
      return absl::StrCat("element ", i, " is ", got.GetInt(i), " instead of ", want.GetInt(i));
    }
    const double a = got.Get(i), b = want.Get(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= atol + rtol * std::abs(b)) continue;
    return absl::StrCat("element ", i, " is ", a, " instead of ", b);
  }
  return "";
}

class OpCases : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (Python() == nullptr) GTEST_SKIP() << "HONE_PYTHON is not set; tests/run sets it";
    const absl::StatusOr<std::string> folder = WriteCases();
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder + "/";
    std::ifstream file(folder_ + "index.json");
    const Json index = Json::parse(file);
    ASSERT_GE(index.size(), kLeastCases);
    const char* only = std::getenv("HONE_OP_CASE");  // one case by name, for debugging
    for (size_t i = GetParam(); i < index.size(); i += kShards) {
      if (only == nullptr || index[i].at("name") == only) cases_.push_back(index[i]);
    }
  }

  // Reads the arrays of "inputs" or "outputs".
  absl::StatusOr<std::map<std::string, NdArray>> Arrays(const Json& entry, const char* which) const {
    std::map<std::string, NdArray> arrays;
    for (const auto& [name, file] : entry.at(which).items()) {
      HONE_ASSIGN_OR_RETURN(NdArray array, ReadNpy(folder_ + file.get<std::string>()));
      arrays.emplace(name, std::move(array));
    }
    return arrays;
  }

  absl::StatusOr<std::map<std::string, NdArray>> Compiled(const Model& model, const BuildSettings& how,
                                                          const std::map<std::string, NdArray>& inputs) const {
    const std::string bundle = absl::StrCat(folder_, "shard", GetParam(), ".hone");
    HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, Resolve(how));
    HONE_RETURN_IF_ERROR(CompileModel(model, settings, nullptr, bundle).status());
    HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(bundle, 0));
    for (const auto& [name, value] : inputs) HONE_RETURN_IF_ERROR(session.SetInput(name, value));
    HONE_RETURN_IF_ERROR(session.Run());
    std::map<std::string, NdArray> outputs;
    for (const BundleSession::Tensor& output : session.outputs()) {
      HONE_ASSIGN_OR_RETURN(NdArray value, session.Output(output.name));
      outputs.emplace(output.name, std::move(value));
    }
    return outputs;
  }

  absl::StatusOr<std::map<std::string, NdArray>> Interpreted(const Model& model,
                                                             const std::map<std::string, NdArray>& inputs) const {
    std::vector<NdArray> values;
    for (const int input : model.plan.inputs) values.push_back(inputs.at(model.plan.tensors[input].name));
    HONE_ASSIGN_OR_RETURN(std::vector<NdArray> results, InterpretPlan(model.plan, values));
    std::map<std::string, NdArray> outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs.emplace(model.plan.tensors[model.plan.outputs[i]].name, std::move(results[i]));
    return outputs;
  }

  // `floor`: an error of so much of an output's largest element is none. What Winograd's algorithm rounds is as large
  // as the largest of its neighbours, not as the result.
  void ExpectAgrees(const Json& entry, const char* how, const absl::StatusOr<std::map<std::string, NdArray>>& got,
                    const std::map<std::string, NdArray>& want, double floor = 0) const {
    const std::string label =
        absl::StrCat(entry.at("name").get<std::string>(), " (", entry.at("op").get<std::string>(), "), ", how);
    if (!got.ok()) {
      ADD_FAILURE() << label << ": " << got.status();
      return;
    }
    for (const auto& [name, value] : want) {
      ASSERT_EQ(got->count(name), 1u) << label << ": no output " << name;
      const double atol = std::max(entry.at("atol").get<double>(), floor * Largest(value));
      const std::string problem = Difference(got->at(name), value, entry.at("rtol"), atol);
      EXPECT_TRUE(problem.empty()) << label << ": " << name << ": " << problem;
    }
  }

  static double Largest(const NdArray& array) {
    double largest = 0;
    for (int64_t i = 0; array.dtype.is_float() && i < array.NumElements(); ++i) {
      if (std::isfinite(array.Get(i))) largest = std::max(largest, std::abs(array.Get(i)));
    }
    return largest;
  }

  std::string folder_;
  std::vector<Json> cases_;
};

TEST_P(OpCases, AgreeWithOnnxRuntime) {
  for (const Json& entry : cases_) {
    const std::string name = entry.at("name");
    std::fprintf(stderr, "%s\n", name.c_str());  // the last one named is the one that crashed
    const absl::StatusOr<Model> model = LoadModel(folder_ + entry.at("model").get<std::string>());
    const absl::StatusOr<std::map<std::string, NdArray>> inputs = Arrays(entry, "inputs"),
                                                         want = Arrays(entry, "outputs");
    if (!model.ok() || !inputs.ok() || !want.ok()) {
      ADD_FAILURE() << name << ": " << model.status() << inputs.status() << want.status();
      continue;
    }
    ExpectAgrees(entry, "compiled", Compiled(*model, {.threads = 2}, *inputs), *want, 1e-5);
    ExpectAgrees(entry, "compiled strictly", Compiled(*model, {.threads = 1, .numeric_text = "strict"}, *inputs),
                 *want);
    ExpectAgrees(entry, "interpreted", Interpreted(*model, *inputs), *want);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, OpCases, testing::Range<size_t>(0, kShards));

}  // namespace
}  // namespace hone
