// Many seeds, one check: each run in a child process, so that a crash is a failure with a seed like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::testing {

struct Campaign {
  int64_t wrong = 0, crashed = 0;
  std::vector<std::string> reports;  // one for each failure: the seed and what the check said
  // Sums over all seeds of what Count was told, by name.
  std::vector<std::pair<std::string, int64_t>> counts;
};

// "" when all is well, else what is wrong. Also wrong: an expectation of GoogleTest's that fails in it.
using Check = std::function<std::string(uint64_t seed)>;

// Seeds [first, first + count). Stops after 20 failures.
Campaign RunCampaign(uint64_t first, int64_t count, const Check& check);
// Inside a check: adds to a figure of the campaign; at most 128 names.
void Count(const std::string& name, int64_t n = 1);
// What was counted under that name.
int64_t TimesCounted(const Campaign& campaign, std::string_view name);
// Prints the counts; each report is a failure of the test.
void ExpectAllRight(const Campaign& campaign);

// The environment variable as a number, or the other number where it is not set.
int64_t FromEnvironment(const char* name, int64_t otherwise);

// Whether the function returns true, or does not return at all, in a child process.
bool FailsInChild(const std::function<bool()>& fails);

}  // namespace hone::testing
