#include "compiler/driver/commands/command.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/option_checks.h"

namespace hone {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done, 1 a bug of Hone's, 2 usage, 3 the model cannot be imported, 4 no valid schedule,\n"
    "5 no daemon or worker, or nothing went on, 6 results or a locked bundle differ, 7 the program given to hone opt "
    "is at fault,\n"
    "8 not allowed, 9 a file is unreadable or corrupt, 10 this machine cannot run the bundle, 130 and 143 interrupted, "
    "or the job was stopped.";

// Levenshtein's distance: letters put in, taken out or exchanged.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Examples(std::initializer_list<const char*> lines) {
  std::string text = "Examples:";
  for (const char* line : lines) text += std::string("\n  ") + line;
  return text;
}

void AddCommonRules(CLI::App& app) {
  const std::string footer = app.get_footer();
  if (footer.find("Exit codes:") == std::string::npos) {
    app.footer(absl::StrCat(footer, footer.empty() ? "" : "\n\n", kExitCodes));
  }
  if (CLI::Option* threads = app.get_option_no_throw("--threads")) threads->check(FromTo(1, 1024, "threads"));
  if (CLI::Option* seconds = app.get_option_no_throw("--seconds")) seconds->check(AboveZero("seconds"));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) AddCommonRules(*command);
}

std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* level = &app;
  std::string path = app.get_name().empty() ? "hone" : app.get_name();
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<std::string> names;
    for (const CLI::App* command : level->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    if (names.empty()) return "";  // the word is an argument
    const std::string word = argv[i];
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      const auto nearer = [&](const std::string& a, const std::string& b) {
        return Distance(word, a) < Distance(word, b);
      };
      const std::string nearest = *std::min_element(names.begin(), names.end(), nearer);
      const bool near = Distance(word, nearest) <= std::max<size_t>(2, word.size() / 3);
      return absl::StrCat("there is no command '", word, "' in ", path, near ? "; did you mean '" + nearest + "'?" : "",
                          " It has: ", absl::StrJoin(names, ", "));
    }
    level = level->get_subcommand(word);
    path += " " + word;
  }
  return "";
}

}  // namespace hone
