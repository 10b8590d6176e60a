#include "compiler/driver/commands/completion.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hone {
namespace {

const CLI::Option* FindOption(CLI::App& command, const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return nullptr;
  return command.get_option_no_throw(word);
}

// The values of an option that has a list of them: CLI11 writes it into the type's name, "TEXT:{interp,llvm}".
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

}  // namespace

std::vector<std::string> Completions(CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  CLI::App* command = &app;
  const CLI::Option* before = nullptr;  // the option that the last word is the value of
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (before != nullptr) {
      before = nullptr;
      continue;
    }
    before = FindOption(*command, words[i]);
    if (before != nullptr && before->get_items_expected_max() == 0) before = nullptr;  // a flag
    const std::vector<CLI::App*> inner =
        command->get_subcommands([&](CLI::App* app) { return app->check_name(words[i]); });
    if (!inner.empty()) command = inner.front();
  }
  const std::string& last = words.back();
  std::vector<std::string> offered;
  const auto offer = [&](const std::string& text) {
    if (text.compare(0, last.size(), last) == 0) offered.push_back(text);
  };
  if (before != nullptr) {
    for (const std::string& value : ValuesOf(*before)) offer(value);
  } else if (!last.empty() && last[0] == '-') {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;  // hidden
      for (const std::string& name : option->get_lnames()) offer(absl::StrCat("--", name));
    }
  } else {
    for (const CLI::App* inner : command->get_subcommands([](CLI::App*) { return true; })) offer(inner->get_name());
  }
  return offered;
}

}  // namespace hone
