// `hone compile`: a model and what is known about its kernels become a bundle.
#include <cstdio>
#include <memory>

#include "compiler/driver/command.h"
#include "compiler/driver/hints.h"
#include "compiler/driver/model.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct CompileCommand {
  std::string model, output;
  ServiceOptions service;
  BuildSettings settings;
  bool untuned = false;
};

absl::Status Compile(const CompileCommand& command) {
  HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, Resolve(command.settings));
  HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(command.model));
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary,
                        CompileModel(model, settings, command.untuned ? nullptr : &command.service, command.output));
  std::fprintf(stderr,
               "%s: %zu kernels: %d from records, %d from stale records, %d from near records, %d from defaults\n",
               command.output.c_str(), model.plan.tasks.size(), summary.from_records, summary.from_stale_records,
               summary.from_near_records, summary.from_defaults);
  if (summary.from_stale_records > 0) {
    std::fprintf(stderr,
                 "stale records: this Hone makes other code of their schedules than was measured, so that their times "
                 "may not hold; hone bench %s shows what the kernels take\n",
                 command.output.c_str());
  }
  if (summary.from_defaults > 0 && !command.untuned) {
    std::fprintf(stderr, "kernels without a record use default schedules; to find better ones: %s tune %s%s%s\n",
                 HoneProgram().c_str(), ShellWord(command.model).c_str(), ServiceFlags(command.service).c_str(),
                 BuildFlags(command.settings).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddCompileCommand(CLI::App& app, Action* chosen) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App* sub = app.add_subcommand("compile", "Compile a model into a bundle.");
  sub->add_option("model", command->model, "an ONNX file")->required();
  sub->add_option("-o,--output", command->output, "the bundle to write")->required();
  command->service.AddTo(*sub);
  command->settings.AddTo(*sub);
  sub->add_flag("--untuned", command->untuned, "use default schedules, whatever is recorded");
  sub->footer(Examples({"hone compile resnet18.onnx -o resnet18.hone",
                        "hone compile resnet18.onnx -o r.hone --db tuned.db --threads 2",
                        "hone compile resnet18.onnx -o r.hone --untuned"}));
  sub->callback([command, chosen] { *chosen = [command] { return Compile(*command); }; });
}

}  // namespace hone
