#include "compiler/driver/models/hints.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hone {
namespace {

std::vector<std::string>& Kept() {
  static std::vector<std::string> words{"hone"};
  return words;
}

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void KeepCommandLine(int argc, char** argv) { Kept().assign(argv, argv + argc); }

std::string CommandLine() {
  return absl::StrJoin(Kept(), " ", [](std::string* out, const std::string& word) { out->append(ShellWord(word)); });
}

std::string HoneProgram() { return ShellWord(Kept().front()); }

std::string ServiceFlags(const ServiceOptions& options) {
  std::string flags;
  if (!options.server.empty()) {
    absl::StrAppend(&flags, " --server ", ShellWord(options.server));
    for (const auto& [flag, file] : options.connection.Given())
      absl::StrAppend(&flags, " ", flag, " ", ShellWord(file));
  } else if (!options.db.empty() || std::getenv("HONE_DATA") != nullptr) {  // another shell has other variables
    absl::StrAppend(&flags, " --db ", ShellWord(options.database()));
  }
  return flags;
}

std::string BuildFlags(const BuildSettings& settings) {
  const BuildSettings usual;
  std::string flags;
  if (settings.target_text != usual.target_text) absl::StrAppend(&flags, " --target ", ShellWord(settings.target_text));
  if (settings.threads != usual.threads) absl::StrAppend(&flags, " --threads ", settings.threads);
  if (settings.numeric_text != usual.numeric_text) {
    absl::StrAppend(&flags, " --numeric ", ShellWord(settings.numeric_text));
  }
  return flags + settings.import.AsFlags();
}

std::string WorkerCommand(const ServiceOptions& options, int threads) {
  const std::string hone = Kept().front();
  const size_t slash = hone.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : hone.substr(0, slash + 1);
  std::string command = absl::StrCat(ShellWord(folder + "hone-worker"), ServiceFlags(options));
  if (threads > 0) absl::StrAppend(&command, " --threads ", threads);
  return command;
}

}  // namespace hone
