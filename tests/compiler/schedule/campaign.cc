#include "tests/compiler/schedule/campaign.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"

namespace hone::testing {
namespace {

constexpr int kNames = 128, kNameBytes = 48, kMessageBytes = 16000;
constexpr size_t kMostReports = 20;

// What parent and child share.
struct Board {
  uint64_t seed;  // the child is at
  bool failed;    // and its check said so
  char message[kMessageBytes];
  struct {
    char name[kNameBytes];
    int64_t n;
  } counts[kNames];
};
Board* board = nullptr;

Board* NewBoard() {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HONE_CHECK(memory != MAP_FAILED);
  return static_cast<Board*>(memory);
}

}  // namespace

void Count(const std::string& name, int64_t n) {
  HONE_CHECK(board != nullptr) << "outside a campaign";
  for (auto& entry : board->counts) {
    if (entry.name[0] == '\0') std::strncpy(entry.name, name.c_str(), kNameBytes - 1);
    if (name.compare(0, kNameBytes - 1, entry.name) != 0) continue;
    entry.n += n;
    return;
  }
  HONE_CHECK(false) << "more names are counted than there is room for: " << name;
}

int64_t TimesCounted(const Campaign& campaign, std::string_view name) {
  const auto count = std::ranges::find(campaign.counts, name, [](const auto& entry) { return entry.first; });
  return count == campaign.counts.end() ? 0 : count->second;
}

void ExpectAllRight(const Campaign& campaign) {
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  }
}

Campaign RunCampaign(uint64_t first, int64_t count, const Check& check) {
  Campaign result;
  board = NewBoard();
  const uint64_t end = first + static_cast<uint64_t>(count);
  for (uint64_t seed = first; seed < end && result.reports.size() < kMostReports;) {
    board->seed = seed;
    board->failed = false;
    std::fflush(nullptr);
    const pid_t child = fork();
    HONE_CHECK(child >= 0) << "fork failed";
    if (child == 0) {
      for (; board->seed < end; ++board->seed) {
        std::string said = check(board->seed);
        if (said.empty() && ::testing::Test::HasFailure()) said = "an expectation failed: see above";
        if (said.empty()) continue;
        std::strncpy(board->message, said.c_str(), kMessageBytes - 1);
        board->failed = true;
        break;
      }
      std::fflush(nullptr);
      _exit(0);
    }
    int status = 0;
    HONE_CHECK(waitpid(child, &status, 0) == child);
    if (board->failed) {
      ++result.wrong;
      result.reports.push_back(absl::StrCat("seed ", board->seed, ": ", board->message));
    } else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
      ++result.crashed;
      result.reports.push_back(absl::StrCat("seed ", board->seed, ": the process died, status ", status));
    }
    seed = board->seed + 1;
  }
  for (const auto& entry : board->counts) {
    if (entry.name[0] != '\0') result.counts.emplace_back(entry.name, entry.n);
  }
  std::sort(result.counts.begin(), result.counts.end());
  munmap(board, sizeof(Board));
  board = nullptr;
  return result;
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

bool FailsInChild(const std::function<bool()>& fails) {
  std::fflush(nullptr);
  const pid_t child = fork();
  HONE_CHECK(child >= 0) << "fork failed";
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    _exit(fails() ? 1 : 0);
  }
  int status = 0;
  HONE_CHECK(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace hone::testing
