#include "tests/crash/crash_points.h"

#include <cstring>
#include <filesystem>
#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hone::crash_test {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<std::string> CrashPoints() {
  std::set<std::string> points;
  const fs::path root = fs::path(HONE_TEST_DATA).parent_path();
  const std::regex call("CrashPoint\\(\"([a-z_.]+)\"\\)");
  for (const char* top : {"compiler", "database", "tuner", "worker"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string text = system_test::ReadAll(entry.path().string());
      for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
        EXPECT_TRUE(points.insert((*match)[1]).second) << (*match)[1] << " is the name of two points";
      }
    }
  }
  return {points.begin(), points.end()};
}

Trigger::Trigger(const system_test::TempFolder& folder, std::string point, int64_t visit)
    : point_(std::move(point)), file_(folder / ".run/visits"), visit_(visit) {
  fs::remove(file_);  // processes of the trigger before this one keep counting in their own
  system_test::WriteAll(file_, std::string(sizeof(int64_t), '\0'));
}

std::map<std::string, std::string> Trigger::environment() const {
  return {{"HONE_CRASH_AT", absl::StrCat(point_, ":", visit_, ":", file_)}};
}

int64_t Trigger::visits() const {
  const std::string bytes = system_test::ReadAll(file_);
  int64_t visits = 0;
  if (bytes.size() == sizeof(visits)) std::memcpy(&visits, bytes.data(), sizeof(visits));
  return visits;
}

void Trigger::FireAtNextVisit() {
  if (fired()) return;
  const int64_t before = visit_ - 1;
  std::FILE* file = std::fopen(file_.c_str(), "r+");  // the mapped file itself, not a new one
  std::fwrite(&before, sizeof(before), 1, file);
  std::fclose(file);
}

}  // namespace hone::crash_test
