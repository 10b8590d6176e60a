// `hone replay`: searches recorded spaces without a device. hone-search does it, which has the search.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/command.h"
#include "compiler/support/file.h"

namespace hone {
namespace {

absl::Status RunHoneSearch(const std::vector<std::string>& rest) {
  std::vector<std::string> words = {ProgramFolder() + "/hone-search"};
  const bool records = !rest.empty() && rest[0] == "record";
  words.push_back(records ? "record" : "replay");
  words.insert(words.end(), rest.begin() + (records ? 1 : 0), rest.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return absl::NotFoundError(
      absl::StrCat("cannot start ", words[0], ": ", std::strerror(errno), "; it is installed beside hone"));
}

}  // namespace

void AddReplayCommand(CLI::App& app, Action* chosen) {
  CLI::App* command = app.add_subcommand("replay", "search recorded spaces without a device, to compare strategies");
  command->set_help_flag();  // hone-search has the options and their help
  command->prefix_command();
  command->footer(Examples({"hone replay tests/bench/search/spaces/*.space --seeds 20",
                            "hone replay record records.jsonl --workload '^dense' -o spaces"}));
  command->callback([command, chosen] { *chosen = [command] { return RunHoneSearch(command->remaining()); }; });
}

}  // namespace hone
