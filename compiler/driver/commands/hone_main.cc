// `hone`: the compile client.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/commands/completion.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/hints.h"
#include "compiler/support/version.h"

int main(int argc, char** argv) {
  // Large blocks (weights, packed constants) go back to the system when they are freed. Left to itself glibc raises the
  // bound with every one, up to 32 MiB, and what it keeps comes to half a model.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);

  CLI::App app("hone: tunes, compiles and runs tensor programs.");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("hone ") + hone::kVersion);
  app.footer(hone::Examples({"hone tune resnet18.onnx --budget 5m", "hone compile resnet18.onnx -o resnet18.hone",
                             "hone run resnet18.hone --input x=x.npy --output y=y.npy"}));

  hone::Action chosen;
  hone::AddTuneCommand(app, &chosen);
  hone::AddCompileCommand(app, &chosen);
  hone::AddRunCommand(app, &chosen);
  hone::AddBenchCommand(app, &chosen);
  hone::AddInspectCommand(app, &chosen);
  hone::AddOptCommand(app, &chosen);
  hone::AddRecordsCommand(app, &chosen);
  hone::AddJobsCommand(app, &chosen);
  hone::AddWorkersCommand(app, &chosen);
  hone::AddStatusCommand(app, &chosen);
  hone::AddReplayCommand(app, &chosen);
  hone::AddDoctorCommand(app, &chosen);
  hone::AddCaCommand(app, &chosen);

  if (argc >= 2 && std::string(argv[1]) == "__complete") {  // asked by deploy/completion
    for (const std::string& word : hone::Completions(app, {argv + 2, argv + argc})) std::printf("%s\n", word.c_str());
    return 0;
  }
  hone::AddCommonRules(app);
  hone::KeepCommandLine(argc, argv);
  if (const std::string unknown = hone::UnknownCommand(app, argc, argv); !unknown.empty()) {
    std::fprintf(stderr, "hone: %s\n", unknown.c_str());
    return static_cast<int>(hone::ExitCode::kUsage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11's way to say --help, --version and bad usage
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(hone::ExitCode::kUsage);
  }
  const absl::Status status = chosen();
  if (!status.ok()) std::fprintf(stderr, "hone: %s\n", std::string(status.message()).c_str());
  return hone::ExitCodeOf(status);
}
