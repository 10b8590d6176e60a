// The sub-commands of `hone`. Each file adds one to the application and says what runs when it is chosen.
#pragma once

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace hone {

// What the chosen command does; its status becomes the exit code (exit_code.h).
using Action = std::function<absl::Status()>;

void AddTuneCommand(CLI::App& app, Action* chosen);
void AddCompileCommand(CLI::App& app, Action* chosen);
void AddRunCommand(CLI::App& app, Action* chosen);
void AddBenchCommand(CLI::App& app, Action* chosen);
void AddInspectCommand(CLI::App& app, Action* chosen);
void AddOptCommand(CLI::App& app, Action* chosen);
void AddRecordsCommand(CLI::App& app, Action* chosen);
void AddJobsCommand(CLI::App& app, Action* chosen);
void AddWorkersCommand(CLI::App& app, Action* chosen);
void AddDoctorCommand(CLI::App& app, Action* chosen);

// The footer of a command's --help: its examples, one a line.
std::string Examples(std::initializer_list<const char*> lines);

}  // namespace hone
