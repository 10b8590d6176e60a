#include "tests/crash/crash_points.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
    : point_(std::move(point)), visit_(visit) {
  // A file of its own: processes that the hosts of earlier triggers start later still have theirs in their environment.
  static int triggers = 0;
  file_ = folder / absl::StrCat(".run/visits", triggers++);
  system_test::WriteAll(file_, std::string(sizeof(*count_), '\0'));
  const int file = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  void* shared = ::mmap(nullptr, sizeof(*count_), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT_NE(shared, MAP_FAILED);
  ::close(file);
  count_ = static_cast<std::atomic<int64_t>*>(shared);
}

Trigger::~Trigger() {
  ::munmap(count_, sizeof(*count_));
  fs::remove(file_);
}

std::map<std::string, std::string> Trigger::environment() const {
  return {{"HONE_CRASH_AT", absl::StrCat(point_, ":", visit_, ":", file_)}};
}

void Trigger::FireAtNextVisit() {
  int64_t seen = visits();
  while (seen < visit_ && !count_->compare_exchange_weak(seen, visit_ - 1)) {}
  if (seen < visit_) skipped_ = visit_ - 1 - seen;
}

}  // namespace hone::crash_test
