// The sub-commands of `hone`. Each file adds one to the application and says what runs when it is chosen.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

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
void AddStatusCommand(CLI::App& app, Action* chosen);
void AddReplayCommand(CLI::App& app, Action* chosen);
void AddDoctorCommand(CLI::App& app, Action* chosen);
void AddCaCommand(CLI::App& app, Action* chosen);

// The footer of a command's --help: its examples, one a line.
std::string Examples(std::initializer_list<const char*> lines);

// ---- for all commands at once, once they are added ----
// The exit codes in every --help; the numbers that no command takes, refused in words: --threads 0, --seconds -1.
void AddCommonRules(CLI::App& app);
// A word where a command's name has to be that is none: the message, with the nearest name. Empty when all is well.
std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv);

}  // namespace hone
