// `hone run`: one run of a bundle on files.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bundle_session.h"
#include "compiler/driver/command.h"
#include "compiler/driver/npy.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct RunOptions {
  std::string bundle;
  std::vector<std::string> inputs, outputs;
  int threads = 0;
};

absl::StatusOr<std::pair<std::string, std::string>> NameAndFile(const std::string& text, const char* flag) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", text, ": expected NAME=FILE.npy"));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

absl::Status Run(const RunOptions& options) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(options.bundle, options.threads));
  std::vector<std::string> missing;
  for (const BundleSession::Tensor& input : session.inputs()) missing.push_back(input.name);
  for (const std::string& text : options.inputs) {
    HONE_ASSIGN_OR_RETURN(const auto parts, NameAndFile(text, "--input"));
    HONE_ASSIGN_OR_RETURN(const NdArray value, ReadNpy(parts.second));
    HONE_RETURN_IF_ERROR(session.SetInput(parts.first, value));
    std::erase(missing, parts.first);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", missing.front(), "' is not given; add --input ", missing.front(), "=FILE.npy"));
  }
  // All names are checked before anything runs or is written.
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const std::string& text : options.outputs) {
    HONE_ASSIGN_OR_RETURN(auto parts, NameAndFile(text, "--output"));
    HONE_RETURN_IF_ERROR(session.Output(parts.first).status());
    outputs.push_back(std::move(parts));
  }
  HONE_RETURN_IF_ERROR(session.Run());
  for (const auto& [name, file] : outputs) {
    HONE_ASSIGN_OR_RETURN(const NdArray value, session.Output(name));
    HONE_RETURN_IF_ERROR(WriteNpy(file, value));
  }
  return absl::OkStatus();
}

}  // namespace

void AddRunCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a bundle once on .npy files.");
  command->add_option("bundle", options->bundle, "a bundle made by hone compile")->required();
  command->add_option("--input", options->inputs, "NAME=FILE.npy, one for each input");
  command->add_option("--output", options->outputs, "NAME=FILE.npy, for each output to keep");
  command->add_option("--threads", options->threads, "threads to run with (default: what it was tuned for)");
  command->footer(Examples({"hone run resnet18.hone --input x=x.npy --output y=y.npy"}));
  command->callback([options, chosen] { *chosen = [options] { return Run(*options); }; });
}

}  // namespace hone
