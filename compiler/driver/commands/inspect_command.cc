// `hone inspect`: what is in a model (its tasks and steps, or its graph as text) or in a bundle (its manifest), and
// where two bundles differ.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/models/model.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/graph/passes.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "deploy/runtime/bundle/archive.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string file, other;
  bool json = false, text = false, optimized = false;
  std::string task, write_constants;
  ImportFlags import;
};

Json TensorJson(const PlanTensor& tensor) {
  return {{"name", tensor.name}, {"dtype", ToText(tensor.dtype)}, {"shape", tensor.shape}};
}

absl::Status InspectModel(const InspectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(options.import));
  HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(options.file, import));
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
    Json json = {{"model", model.plan.model_name}, {"hash", ToHex(model.hash)}};
    for (const int i : model.plan.inputs)
      json["inputs"].push_back(TensorJson(model.plan.tensors[static_cast<size_t>(i)]));
    for (const int i : model.plan.outputs)
      json["outputs"].push_back(TensorJson(model.plan.tensors[static_cast<size_t>(i)]));
    json["tasks"] = Json::array();
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

// The model's graph as a module of the text dialect.
absl::Status PrintModule(const InspectOptions& options) {
  if (!options.other.empty() || options.file.ends_with(".hone"))
    return absl::InvalidArgumentError("--text is for one model; a bundle (.hone) has no graph any more");
  if (options.json || !options.task.empty())
    return absl::InvalidArgumentError("--text prints the whole model as a module; leave out --json and --task");
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(options.import));
  HONE_ASSIGN_OR_RETURN(Graph graph, LoadGraph(options.file, import));
  if (options.optimized) HONE_RETURN_IF_ERROR(Annotate(Optimize(graph), options.file));
  const GraphModule module = ModuleOf(graph);
  if (!options.write_constants.empty())
    HONE_RETURN_IF_ERROR(Annotate(WriteConstants(options.write_constants, module.constants), "--write-constants"));
  std::printf("%s", ToText(module.module).c_str());
  return absl::OkStatus();
}

absl::StatusOr<Json> ReadManifest(const std::string& file) {
  const absl::StatusOr<BundleSession> session = BundleSession::Load(file, 1);
  if (session.ok()) return Json::parse(session->manifest(), nullptr, false);
  if (!absl::IsFailedPrecondition(session.status())) return session.status();
  // For another CPU, or for a program of the user's: it cannot be run here, but it says what it is made of.
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
  const RuntimeResult<std::vector<ArchiveMember>> members = ReadArchive(bytes);
  if (!members.ok()) return session.status();
  const auto manifest = std::ranges::find(*members, "manifest.json", &ArchiveMember::name);
  if (manifest == members->end() || !Json::accept(manifest->bytes)) return session.status();
  return Json::parse(manifest->bytes);
}

// A field of a manifest as text; "" when it is not there.
std::string TextOf(const Json& object, const char* field) {
  if (!object.contains(field)) return "";
  const Json& value = object.at(field);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string PortsText(const Json& ports) {
  std::vector<std::string> texts;
  for (const Json& port : ports) {
    const char* shape = port.contains("symbolic_shape") ? "symbolic_shape" : "shape";
    texts.push_back(absl::StrCat(TextOf(port, "name"), ": ", TextOf(port, "dtype"), TextOf(port, shape)));
  }
  return absl::StrJoin(texts, ", ");
}

// "batch from 1 to 8, seq from 1 to 512"
std::string SizesText(const Json& sizes) {
  std::vector<std::string> texts;
  for (const Json& size : sizes)
    texts.push_back(absl::StrCat(TextOf(size, "name"), " from ", TextOf(size, "min"), " to ", TextOf(size, "max")));
  return absl::StrJoin(texts, ", ");
}

// "record 17" or "default": what a kernel was made from.
std::string OriginOf(const Json& kernel) {
  const std::string record = TextOf(kernel, "record"), source = TextOf(kernel, "source");
  return record.empty() ? source : absl::StrCat(source == "record" ? "" : source + " ", "record ", record);
}

// "concat_12x1152x64 up to [1024,1]": some kernels of one name each serve some of the sizes.
std::string KernelName(const Json& kernel) {
  return absl::StrCat(TextOf(kernel, "name"), kernel.contains("sizes_up_to") ? " up to " : "",
                      TextOf(kernel, "sizes_up_to"));
}

void PrintBundle(const Json& manifest) {
  for (const char* field : {"model", "target", "device_class", "numeric", "threads", "generator"}) {
    std::printf("%-13s %s\n", field, TextOf(manifest, field).c_str());
  }
  std::printf("%-13s %s\n", "inputs", PortsText(manifest.at("inputs")).c_str());
  std::printf("%-13s %s\n", "outputs", PortsText(manifest.at("outputs")).c_str());
  if (manifest.contains("sizes")) std::printf("%-13s %s\n", "sizes", SizesText(manifest.at("sizes")).c_str());
  if (manifest.contains("functions"))
    std::printf("%-13s %s of the program that runs it\n", "functions", TextOf(manifest, "functions").c_str());
  std::printf("%-13s %.0f KiB of constants, %.0f KiB to run in\n", "memory", manifest.value("params_bytes", 0.0) / 1024,
              manifest.value("arena_bytes", 0.0) / 1024);
  std::printf("%-8s %10s %10s  %-28s %s\n", "weight", "MFLOP", "us", "made from", "kernel");
  for (const Json& kernel : manifest.at("kernels")) {
    const double us = kernel.value("measured_us", 0.0);
    std::printf("%-8.0f %10.2f %10s  %-28s %s\n", kernel.value("weight", 0.0), kernel.value("flop", 0.0) / 1e6,
                us > 0 ? absl::StrFormat("%.2f", us).c_str() : "-", OriginOf(kernel).c_str(),
                KernelName(kernel).c_str());
    for (const Json& said : kernel.value("serial_loops", Json::array()))
      std::printf("%-8s %s\n", "", said.get<std::string>().c_str());
  }
}

// What tells one kernel from another: the program it was made from, and the bytes of its code.
bool SameKernel(const Json& a, const Json& b) {
  return TextOf(a, "program_hash") == TextOf(b, "program_hash") &&
         TextOf(a, "object_digest") == TextOf(b, "object_digest");
}

absl::Status CompareManifests(const InspectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Json a, ReadManifest(options.file));
  HONE_ASSIGN_OR_RETURN(const Json b, ReadManifest(options.other));
  Json differences = {{"a", options.file}, {"b", options.other}};
  differences["fields"] = Json::object();
  for (const char* field : {"model", "target", "device_class", "features", "numeric", "threads", "generator", "inputs",
                            "outputs", "functions", "arena_bytes", "params_bytes"}) {
    if (TextOf(a, field) == TextOf(b, field)) continue;
    differences["fields"][field] = {TextOf(a, field), TextOf(b, field)};
  }
  std::map<std::string, const Json*> of_b;
  for (const Json& kernel : b.at("kernels")) of_b[KernelName(kernel)] = &kernel;
  differences["kernels"] = Json::array();
  int same = 0;
  for (const Json& kernel : a.at("kernels")) {
    const std::string name = KernelName(kernel);
    const auto found = of_b.find(name);
    if (found == of_b.end()) {
      differences["kernels"].push_back({{"name", name}, {"a", OriginOf(kernel)}, {"b", nullptr}});
      continue;
    }
    const Json& other = *found->second;
    of_b.erase(found);
    if (SameKernel(kernel, other)) {
      ++same;
      continue;
    }
    const bool program = TextOf(kernel, "program_hash") != TextOf(other, "program_hash");
    differences["kernels"].push_back({{"name", name},
                                      {"a", OriginOf(kernel)},
                                      {"b", OriginOf(other)},
                                      {"differs", program ? "program" : "code alone"}});
  }
  for (const Json& kernel : b.at("kernels")) {
    const std::string name = KernelName(kernel);
    if (of_b.contains(name))
      differences["kernels"].push_back({{"name", name}, {"a", nullptr}, {"b", OriginOf(kernel)}});
  }
  differences["same_kernels"] = same;
  if (options.json) {
    std::printf("%s\n", differences.dump().c_str());
    return absl::OkStatus();
  }
  for (const auto& [field, values] : differences["fields"].items()) {
    std::printf("%s\n  %s\n  %s\n", field.c_str(), values[0].get<std::string>().c_str(),
                values[1].get<std::string>().c_str());
  }
  std::printf("%zu kernels differ, %d are the same\n", differences["kernels"].size(), same);
  if (!differences["kernels"].empty())
    std::printf("%-28s %-28s %-11s %s\n", "in the first", "in the second", "differs in", "kernel");
  for (const Json& kernel : differences["kernels"]) {
    const auto side = [&](const char* which) {
      return kernel.at(which).is_null() ? "not there" : TextOf(kernel, which);
    };
    std::printf("%-28s %-28s %-11s %s\n", side("a").c_str(), side("b").c_str(),
                kernel.contains("differs") ? TextOf(kernel, "differs").c_str() : "", TextOf(kernel, "name").c_str());
  }
  return absl::OkStatus();
}

absl::Status Inspect(const InspectOptions& options) {
  const std::string& file = options.file;
  if (options.text) return PrintModule(options);
  if (options.optimized || !options.write_constants.empty())
    return absl::InvalidArgumentError("--optimized and --write-constants belong to the text of a model; add --text");
  if (!options.other.empty()) {
    if (!file.ends_with(".hone") || !options.other.ends_with(".hone")) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, " and ", options.other, ": two bundles (.hone) are compared; inspect a model alone"));
    }
    return CompareManifests(options);
  }
  if (!file.ends_with(".hone")) return InspectModel(options);
  HONE_ASSIGN_OR_RETURN(const Json manifest, ReadManifest(file));
  if (options.json) {
    std::printf("%s\n", manifest.dump().c_str());
  } else {
    PrintBundle(manifest);
  }
  return absl::OkStatus();
}

}  // namespace

void AddInspectCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show the tasks of a model, what a bundle was made of, or in which kernels two bundles differ.");
  command->add_option("file", options->file, "an ONNX file or a bundle (.hone)")->required();
  command->add_option("other", options->other, "another bundle: what differs is shown");
  command->add_option("--task", options->task, "print this task's program");
  command->add_flag("--text", options->text, "print the model's graph as a module of the text dialect");
  command->add_flag("--optimized", options->optimized, "with --text: the graph as its kernels are made from it");
  command->add_option("--write-constants", options->write_constants,
                      "with --text: the folder for 0.npy, 1.npy, ..., the constants that the text only numbers");
  options->import.AddTo(*command);
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      Examples({"hone inspect resnet18.onnx", "hone inspect resnet18.onnx --task conv2d_3x3_s2_112x112x64_add_relu",
                "hone inspect resnet18.onnx --text --write-constants resnet18 > resnet18.py",
                "hone inspect resnet18.hone", "hone inspect before.hone after.hone --json"}));
  command->callback([options, chosen] { *chosen = [options] { return Inspect(*options); }; });
}

}  // namespace hone
