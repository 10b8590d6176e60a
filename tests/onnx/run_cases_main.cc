// Compiles and runs ONNX models, one process each: what tests/onnx/suite hands its cases to.
//
// clang-format off
//   stdin    a line for each case: a folder with model.onnx, import.json and, for each set of inputs D and input I,
//            "D_I.in" with the tensor's bytes in C order (elements smaller than a byte take one each)
//   stdout   a line of JSON for each case, in the same order: {"kind": "ran" | "refused" | "failed" | "crashed" | "slow",
//            "reason": .., "outputs": [{"name": .., "dtype": .., "shape": [..]}]}; the outputs' bytes are in "D_I.out"
// clang-format on
// import.json has what the client has flags for: {"shapes": {NAME: [..]}, "values": {NAME: [..]}, "sequences": {NAME:
// [[..]]}, "absent": [NAME]}.
//
// A case is compiled as `hone compile --untuned --numeric strict` does it, and its bundle is run by the runtime.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/models/model.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/support/check.h"
#include "compiler/support/child_process.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using Json = nlohmann::json;

constexpr int kMostSeconds = 60;

absl::Status RunSet(BundleSession& session, const std::string& prefix, Json& outputs) {
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const BundleSession::Tensor& input = session.inputs()[i];
    NdArray value(input.dtype, input.shape);
    HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(absl::StrCat(prefix, "_", i, ".in")));
    if (bytes.size() != value.data.size())
      return absl::InternalError(
          absl::StrCat("input ", input.name, " has ", bytes.size(), " bytes instead of ", value.data.size()));
    std::copy(bytes.begin(), bytes.end(), value.data.begin());
    HONE_RETURN_IF_ERROR(session.SetInput(input.name, value));
  }
  HONE_RETURN_IF_ERROR(session.Run());
  outputs = Json::array();
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const NdArray value, session.Output(session.outputs()[i].name));
    outputs.push_back(
        {{"name", session.outputs()[i].name}, {"dtype", session.outputs()[i].type_name}, {"shape", value.shape}});
    HONE_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(prefix, "_", i, ".out"), {value.data.data(), value.data.size()}));
  }
  return absl::OkStatus();
}

ImportOptions ReadImportOptions(const std::string& folder) {
  const absl::StatusOr<std::string> text = ReadFile(folder + "/import.json");
  HONE_CHECK(text.ok()) << text.status();
  const Json json = Json::parse(*text);
  ImportOptions options;
  json.at("shapes").get_to(options.shapes);
  json.at("values").get_to(options.values);
  json.at("sequences").get_to(options.sequences);
  json.at("absent").get_to(options.absent);
  return options;
}

Json RunCase(const std::string& folder, const ResolvedSettings& settings) {
  const auto failure = [](const char* kind, const absl::Status& status) {
    return Json{{"kind", kind}, {"reason", std::string(status.message())}};
  };
  const absl::StatusOr<Model> model = LoadModel(folder + "/model.onnx", ReadImportOptions(folder));
  if (!model.ok()) return failure(IsImportError(model.status()) ? "refused" : "failed", model.status());
  const std::string bundle = folder + "/model.hone";
  if (const auto made = CompileModel(*model, settings, nullptr, bundle); !made.ok())
    return failure("failed", made.status());
  absl::StatusOr<BundleSession> session = BundleSession::Load(bundle, 0);
  if (!session.ok()) return failure("failed", session.status());
  Json outputs = Json::array();
  const bool no_inputs = session->inputs().empty();
  for (int set = 0; set == 0 || std::filesystem::exists(absl::StrCat(folder, "/", set, "_0.in")); ++set) {
    if (const absl::Status ran = RunSet(*session, absl::StrCat(folder, "/", set), outputs); !ran.ok())
      return failure("failed", ran);
    if (no_inputs) break;
  }
  return {{"kind", "ran"}, {"outputs", outputs}};
}

// In a process of its own: whatever the case does to it, the next one goes on.
Json RunApart(const std::string& folder, const ResolvedSettings& settings) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {{"kind", "failed"}, {"reason", "no pipe"}};
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const std::string text = RunCase(folder, settings).dump(-1, ' ', false, Json::error_handler_t::replace);
    const bool written = write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string text;
  bool slow = false;
  for (const absl::Time end = absl::Now() + absl::Seconds(kMostSeconds);;) {
    pollfd wait{pipe_ends[0], POLLIN, 0};
    const int left = static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now()));
    if (left <= 0 || poll(&wait, 1, left) == 0) {
      slow = true;
      kill(child, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t got = read(pipe_ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (slow) return {{"kind", "slow"}, {"reason", absl::StrCat("it took over ", kMostSeconds, " s")}};
  if (status != 0) return {{"kind", "crashed"}, {"reason", DescribeWaitStatus(status)}};
  return Json::parse(text);
}

int Main() {
  const absl::StatusOr<ResolvedSettings> settings =
      Resolve({.threads = 1, .numeric_text = "strict", .machine_text = "usual"});
  if (!settings.ok()) {
    std::cerr << "hone-onnx-cases: " << settings.status().message() << "\n";
    return 1;
  }
  for (std::string folder; std::getline(std::cin, folder);) {
    std::cout << RunApart(folder, *settings).dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main() { return hone::Main(); }
