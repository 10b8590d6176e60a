#include "worker/runner/cache_flush.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "gtest/gtest.h"

namespace hone {
namespace {

double Seconds(std::span<const char> memory) {
  const auto start = std::chrono::steady_clock::now();
  unsigned sum = 0;
  for (size_t i = 0; i < memory.size(); i += 64) sum += static_cast<unsigned char>(memory[i]);
  volatile unsigned kept = sum;
  (void)kept;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(FlushFromCaches, LeavesTheBytesAndTakesTheLines) {
  std::vector<char> memory(16 << 10, 7);  // a part of a first cache
  std::vector<double> warm, cold;
  for (int round = 0; round < 51; ++round) {
    Seconds(memory);
    warm.push_back(Seconds(memory));
    memory[static_cast<size_t>(round)] = static_cast<char>(round);  // a changed line is written back
    FlushFromCaches(memory);
    cold.push_back(Seconds(memory));
  }
  for (size_t i = 0; i < memory.size(); ++i) EXPECT_EQ(memory[i], i < 51 ? static_cast<char>(i) : 7);
  EXPECT_GT(*std::min_element(cold.begin(), cold.end()), *std::min_element(warm.begin(), warm.end()));
  FlushFromCaches({});
}

}  // namespace
}  // namespace hone
