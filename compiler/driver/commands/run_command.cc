// `hone run`: one run of a bundle, on files or on seeded values, held against the model it was compiled from where
// asked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/bundles/run_program.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/npy.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  std::string bundle, model;
  std::vector<std::string> inputs, outputs;
  int threads = 0;
  bool random = false, json = false;
  uint64_t seed = 0;
  double rtol = 1e-3, atol = 1e-4;
  ImportFlags import;  // of --verify: as the bundle was compiled
};

absl::StatusOr<std::pair<std::string, std::string>> NameAndFile(const std::string& text, const char* flag) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", text, ": expected NAME=FILE.npy"));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

// The inputs by name: those given, and with --random seeded values for the others.
absl::StatusOr<std::map<std::string, NdArray>> SetInputs(const RunOptions& options, BundleSession& session) {
  std::map<std::string, NdArray> values;
  for (const std::string& text : options.inputs) {
    HONE_ASSIGN_OR_RETURN(const auto parts, NameAndFile(text, "--input"));
    HONE_ASSIGN_OR_RETURN(NdArray value, ReadNpy(parts.second));
    HONE_RETURN_IF_ERROR(session.SetInput(parts.first, value));
    values.insert_or_assign(parts.first, std::move(value));
  }
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const std::string& name = session.inputs()[i].name;
    if (values.contains(name)) continue;
    if (!options.random) {
      return absl::InvalidArgumentError(absl::StrCat("input '", name, "' is not given; add --input ", name,
                                                     "=FILE.npy, or --random for seeded values"));
    }
    NdArray value = session.RandomInput(i, options.seed);
    HONE_RETURN_IF_ERROR(session.SetInput(name, value));
    values.emplace(name, std::move(value));
  }
  return values;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// The index of element `at` in row-major order.
std::string IndexText(const std::vector<int64_t>& shape, int64_t at) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = at % shape[d];
  return ShapeText(index);
}

// Of |got - want| <= atol + rtol * |want|, for every element.
struct Agreement {
  int64_t differing = 0, worst_at = 0;
  double largest_error = 0, worst_excess = 0;
};
Agreement Compare(const NdArray& got, const NdArray& want, double rtol, double atol) {
  Agreement result;
  for (int64_t i = 0; i < want.NumElements(); ++i) {
    const double x = got.Get(i), y = want.Get(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double error = std::abs(x - y), excess = error - (atol + rtol * std::abs(y));
    if (error > result.largest_error) result.largest_error = error;
    if (excess <= 0) continue;  // false for what is no number
    if (result.differing++ == 0 || excess > result.worst_excess) {
      result.worst_at = i;
      result.worst_excess = excess;
    }
  }
  return result;
}

// The model imported anew and every operator computed by its plain program: no schedule, no record, no packed weights.
absl::StatusOr<std::map<std::string, NdArray>> Expected(const std::string& path, const ImportFlags& flags,
                                                        const std::map<std::string, NdArray>& values) {
  HONE_ASSIGN_OR_RETURN(ImportOptions import, ImportOptionsOf(flags));
  for (const auto& [name, value] : values) import.shapes[name] = value.shape;
  HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(path, import));
  std::vector<NdArray> inputs;
  for (const int i : model.plan.inputs) {
    const PlanTensor& tensor = model.plan.tensors[static_cast<size_t>(i)];
    const auto found = values.find(tensor.name);
    if (found == values.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--verify ", path, ": its input '", tensor.name,
                                                     "' is none of the bundle's; was it compiled from another model?"));
    }
    inputs.push_back(found->second);
  }
  absl::StatusOr<std::vector<NdArray>> outputs = RunPlan(
      model.plan, inputs, [](const PlanTask& task, std::vector<NdArray>& args) { return RunPlain(task.func, args); });
  if (!outputs.ok()) return Annotate(outputs.status(), absl::StrCat("--verify ", path));
  std::map<std::string, NdArray> named;
  for (size_t i = 0; i < outputs->size(); ++i) {
    named.emplace(model.plan.tensors[static_cast<size_t>(model.plan.outputs[i])].name, std::move((*outputs)[i]));
  }
  return named;
}

absl::Status Verify(const RunOptions& options, const std::map<std::string, NdArray>& inputs,
                    const std::map<std::string, NdArray>& outputs, std::vector<std::string>* lines, Json* json) {
  HONE_ASSIGN_OR_RETURN(const auto expected, Expected(options.model, options.import, inputs));
  absl::Status first;
  for (const auto& [name, got] : outputs) {
    const auto found = expected.find(name);
    if (found == expected.end() || found->second.shape != got.shape || !(found->second.dtype == got.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("--verify ", options.model, ": it has no output '", name, "' of ",
                                                     ToText(got.dtype), ShapeText(got.shape),
                                                     "; was the bundle compiled from another model?"));
    }
    const NdArray& want = found->second;
    const Agreement agreement = Compare(got, want, options.rtol, options.atol);
    (*json)[name] = {{"differing", agreement.differing}, {"largest_error", agreement.largest_error}};
    if (agreement.differing == 0) {
      lines->push_back(absl::StrFormat("%s agrees with the model within rtol %g, atol %g (largest error %.2g)", name,
                                       options.rtol, options.atol, agreement.largest_error));
    } else if (first.ok()) {
      const int64_t at = agreement.worst_at;
      first = absl::InternalError(absl::StrFormat(
          "output '%s': %d of %d elements differ from the model's; the worst at %s: %g where %g is right, off by %.3g",
          name, agreement.differing, want.NumElements(), IndexText(want.shape, at), got.Get(at), want.Get(at),
          std::abs(got.Get(at) - want.Get(at))));
    }
  }
  return WithExitCode(ExitCode::kMismatch, first);
}

Json OutputJson(const std::string& name, const NdArray& value, const std::string& file) {
  Json json = {{"name", name}, {"dtype", ToText(value.dtype)}, {"shape", value.shape}};
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    low = std::min(low, value.Get(i));
    high = std::max(high, value.Get(i));
  }
  if (low <= high) json.update({{"min", low}, {"max", high}});
  if (!file.empty()) json["file"] = file;
  return json;
}

absl::Status Run(const RunOptions& options) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(options.bundle, options.threads));
  if (!session.SizeNames().empty()) {
    HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(options.import));
    HONE_RETURN_IF_ERROR(session.ChooseSizes(import.dims));
  }
  HONE_ASSIGN_OR_RETURN(const auto inputs, SetInputs(options, session));
  // All names are checked before anything runs or is written.
  std::map<std::string, std::string> files;
  for (const std::string& text : options.outputs) {
    HONE_ASSIGN_OR_RETURN(auto parts, NameAndFile(text, "--output"));
    if (std::ranges::find(session.outputs(), parts.first, &BundleSession::Tensor::name) == session.outputs().end())
      return session.Output(parts.first).status();
    files.insert(std::move(parts));
  }
  HONE_RETURN_IF_ERROR(session.Run());
  std::map<std::string, NdArray> outputs;
  for (const BundleSession::Tensor& output : session.outputs()) {
    HONE_ASSIGN_OR_RETURN(outputs[output.name], session.Output(output.name));
  }
  for (const auto& [name, file] : files) HONE_RETURN_IF_ERROR(WriteNpy(file, outputs.at(name)));
  std::vector<std::string> lines;
  Json json = {{"outputs", Json::array()}};
  for (const BundleSession::Tensor& output : session.outputs()) {
    const auto file = files.find(output.name);
    const Json row = OutputJson(output.name, outputs.at(output.name), file == files.end() ? "" : file->second);
    lines.push_back(absl::StrCat(
        output.name, ": ", ToText(output.dtype), ShapeText(outputs.at(output.name).shape),
        row.contains("min") ? absl::StrFormat(", from %g to %g", row["min"].get<double>(), row["max"].get<double>())
                            : "",
        file == files.end() ? "" : absl::StrCat(", written to ", file->second)));
    json["outputs"].push_back(row);
  }
  absl::Status verified;
  if (!options.model.empty()) verified = Verify(options, inputs, outputs, &lines, &json["verified"]);
  if (!verified.ok() && ExitCodeOf(verified) != static_cast<int>(ExitCode::kMismatch)) return verified;
  if (options.json) {
    std::printf("%s\n", json.dump().c_str());
  } else {
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  }
  return verified;
}

}  // namespace

void AddRunCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a bundle once, on .npy files or on seeded values.");
  command->add_option("bundle", options->bundle, "a bundle made by hone compile")->required();
  command->add_option("--input", options->inputs, "NAME=FILE.npy, one for each input")->allow_extra_args(false);
  command->add_option("--output", options->outputs, "NAME=FILE.npy, for each output to keep")->allow_extra_args(false);
  command->add_flag("--random", options->random, "seeded values for every input that is not given");
  command->add_option("--seed", options->seed, "of --random")->capture_default_str();
  command->add_option("--verify", options->model,
                      "the ONNX model: its operators, each computed plainly, must give the same outputs");
  options->import.AddTo(*command);
  command->add_option("--rtol", options->rtol, "of --verify: relative to the right value")->capture_default_str();
  command->add_option("--atol", options->atol, "of --verify: added to it")->capture_default_str();
  command->add_option("--threads", options->threads, "threads to run with (default: what it was tuned for)");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(Examples(
      {"hone run resnet18.hone --input x=x.npy --output y=y.npy", "hone run resnet18.hone --random",
       "hone run resnet18.hone --random --seed 7 --verify resnet18.onnx", "hone run bert.hone --random --dim seq=17"}));
  command->callback([options, chosen] { *chosen = [options] { return Run(*options); }; });
}

}  // namespace hone
