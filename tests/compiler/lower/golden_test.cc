// Golden files: a comment saying which case it is, a program, a line of dashes, what one pass makes of it, or why it
// refuses it. The pass is the name of the folder. HONE_UPDATE_GOLDEN=1 rewrites the second half.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/lower/threads/lower_threads.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> files;
  const fs::path root = fs::path(HONE_TEST_DATA) / "compiler/lower/golden";
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".txt") files.push_back(fs::relative(entry.path(), root).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "lower_threads" is all of LowerThreads: only then do barriers order what threads do.
absl::StatusOr<PrimFunc> RunPass(const std::string& name, const PrimFunc& before) {
  if (name == "lower_threads") return LowerThreads(before);
  LowerOptions options;
  options.plain = name == "order_plain";
  for (const LoweringPass& pass : LoweringPasses()) {
    if (name == pass.name) return pass.run(before, options);
  }
  HONE_UNREACHABLE() << "no pass is called " << name;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, Matches) {
  const fs::path path = fs::path(HONE_TEST_DATA) / "compiler/lower/golden" / GetParam();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string whole = text.str();
  const size_t line = whole.find("----\n");
  ASSERT_NE(line, std::string::npos) << path << " has no line of dashes";
  const PrimFunc before = ParseOrDie(whole.substr(0, line));
  const std::string name = fs::path(GetParam()).parent_path().string();
  const absl::StatusOr<PrimFunc> after = RunPass(name, before);
  const std::string printed = after.ok() ? ToText(*after) : after.status().ToString() + "\n";
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << whole.substr(0, line) << "----\n" << printed;
    return;
  }
  EXPECT_EQ(printed, whole.substr(line + 5));
  if (!after.ok()) return;
  const std::vector<NdArray> inputs = RandomArguments(before, 3, InputKind::kInteger);
  std::vector<NdArray> want = inputs;
  // Some files are parts of programs, which read what another part would have written.
  const bool complete = Interpret(before, want).ok();
  want = inputs;
  ASSERT_TRUE(Interpret(before, want, {.check_uninitialised = complete}).ok());
  ExpectSameNumbers(inputs, want, *after, name, {.check_uninitialised = complete});
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(GoldenFiles()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.size() - 4);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace hone
