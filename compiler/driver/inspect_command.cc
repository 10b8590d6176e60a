// `hone inspect`: what is in a model (its tasks and steps) or in a bundle (its manifest).
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bundle_session.h"
#include "compiler/driver/command.h"
#include "compiler/driver/hints.h"
#include "compiler/driver/model.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct InspectOptions {
  std::string file;
  bool json = false;
  std::string task;
};

nlohmann::ordered_json TensorJson(const PlanTensor& tensor) {
  return {{"name", tensor.name}, {"dtype", ToText(tensor.dtype)}, {"shape", tensor.shape}};
}

absl::Status InspectModel(const InspectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(options.file));
  if (!options.task.empty()) {
    for (size_t i = 0; i < model.plan.tasks.size(); ++i) {
      if (model.plan.tasks[i].name != options.task) continue;
      std::printf("%s", model.workloads[i].text.c_str());
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("the model has no task '", options.task, "'; ", HoneProgram(),
                                                   " inspect ", ShellWord(options.file), " lists them"));
  }
  if (options.json) {
    nlohmann::ordered_json json = {{"model", model.plan.model_name}, {"hash", ToHex(model.hash)}};
    for (const int i : model.plan.inputs)
      json["inputs"].push_back(TensorJson(model.plan.tensors[static_cast<size_t>(i)]));
    for (const int i : model.plan.outputs)
      json["outputs"].push_back(TensorJson(model.plan.tensors[static_cast<size_t>(i)]));
    json["tasks"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < model.plan.tasks.size(); ++i) {
      const PlanTask& task = model.plan.tasks[i];
      json["tasks"].push_back({{"name", task.name},
                               {"weight", task.weight},
                               {"flop", task.flop},
                               {"bytes", task.bytes},
                               {"workload", ToHex(model.workloads[i].hash)}});
    }
    std::printf("%s\n", json.dump().c_str());
    return absl::OkStatus();
  }
  std::printf("%-8s %10s %10s  %s\n", "weight", "MFLOP", "KiB", "task");
  for (const PlanTask& task : model.plan.tasks) {
    std::printf("%-8.0f %10.2f %10.1f  %s\n", task.weight, task.flop / 1e6, task.bytes / 1024, task.name.c_str());
  }
  return absl::OkStatus();
}

absl::Status Inspect(const InspectOptions& options) {
  const std::string& file = options.file;
  if (!file.ends_with(".hone")) return InspectModel(options);
  HONE_ASSIGN_OR_RETURN(const BundleSession session, BundleSession::Load(file, 1));
  const nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(session.manifest(), nullptr, false);
  std::printf("%s\n", manifest.dump(options.json ? -1 : 2).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddInspectCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show the tasks of a model, or what a bundle was made of.");
  command->add_option("file", options->file, "an ONNX file or a bundle (.hone)")->required();
  command->add_option("--task", options->task, "print this task's program");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      Examples({"hone inspect resnet18.onnx", "hone inspect resnet18.onnx --task conv2d_3x3_s2_112x112x64_add_relu",
                "hone inspect resnet18.hone --json"}));
  command->callback([options, chosen] { *chosen = [options] { return Inspect(*options); }; });
}

}  // namespace hone
