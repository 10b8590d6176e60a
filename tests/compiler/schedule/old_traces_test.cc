// Traces as earlier releases wrote them (traces/*.txt): each still makes the program it made then, or is refused by the
// version of a step. A file is a program, its trace, and the structural hash of the outcome, between lines of dashes.
// What is hashed is what a record's time speaks of, with the layouts its constants have there. How constants come to be
// laid out so may get better: that they are is said by the program, which is sound with them and no others.
// A primitive that makes another program of the same step needs a new version of that step (StepInfo::oldest), and its
// files here then say "refused: ..". HONE_UPDATE_GOLDEN=1 fills in the hash of a new file, and of no other.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/ir/structural.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/trace/trace_forms.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(HONE_TEST_DATA) / "compiler/schedule/traces")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string HashText(const Schedule& schedule) {
  uint64_t hash = StructuralHash(schedule.func());
  for (const Prepare& prepare : schedule.prepares()) hash = hash * 31 + static_cast<uint64_t>(prepare.param);
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

class OldTraces : public ::testing::TestWithParam<std::string> {};

TEST_P(OldTraces, GiveTheProgramTheyGave) {
  std::ifstream file(GetParam());
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const std::string line = "----\n";
  const size_t first = text.find(line), second = text.find(line, first + 1);
  ASSERT_TRUE(first != std::string::npos && second != std::string::npos) << "program, trace and hash, between dashes";
  const PrimFunc workload = Get(ParsePrimFunc(text.substr(0, first)));
  const absl::StatusOr<Trace> trace = ParseTrace(text.substr(first + line.size(), second - first - line.size()));
  std::string expected = text.substr(second + line.size());
  while (!expected.empty() && expected.back() == '\n') expected.pop_back();
  if (expected.starts_with("refused: ")) {
    EXPECT_TRUE(Says(trace, expected.substr(9)));
    return;
  }
  ASSERT_TRUE(trace.ok()) << trace.status();
  const absl::StatusOr<Schedule> schedule = Replay(*trace, workload);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ExpectSound(*schedule, workload);
  const std::string hash = HashText(*schedule);
  if (expected.empty() && std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam(), std::ios::app) << hash << "\n";
    return;
  }
  EXPECT_EQ(hash, expected) << ToText(schedule->func());
  // The other forms were stored as well.
  EXPECT_EQ(HashText(Get(Replay(Get(ParseTraceJson(ToJson(*trace))), workload))), expected);
}

INSTANTIATE_TEST_SUITE_P(Files, OldTraces, ::testing::ValuesIn(Files()),
                         [](const auto& info) { return fs::path(info.param).stem().string(); });

}  // namespace
}  // namespace hone::testing
