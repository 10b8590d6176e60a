#include "compiler/package/memory_plan.h"

#include <algorithm>

#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

bool LiveTogether(const TensorLife& a, const TensorLife& b) { return a.first <= b.last && b.first <= a.last; }

// What lives at the busiest step: no plan needs less.
int64_t Peak(const std::vector<TensorLife>& tensors) {
  int64_t peak = 0;
  for (const TensorLife& at : tensors) {
    int64_t sum = 0;
    for (const TensorLife& t : tensors) {
      if (t.first <= at.first && at.first <= t.last) sum += (t.bytes + 63) / 64 * 64;
    }
    peak = std::max(peak, sum);
  }
  return peak;
}

void ExpectSound(const std::vector<TensorLife>& tensors, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!LiveTogether(tensors[i], tensors[j])) continue;
      const bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + tensors[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart || tensors[i].bytes == 0 || tensors[j].bytes == 0) << i << " and " << j;
    }
  }
  EXPECT_GE(plan.arena_bytes, Peak(tensors));
}

TEST(PlanMemory, ChainNeedsTwoPlaces) {
  std::vector<TensorLife> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({1000, i, i + 1});
  const MemoryPlan plan = PlanMemory(chain);
  ExpectSound(chain, plan);
  EXPECT_EQ(plan.arena_bytes, 2 * 1024);
}

TEST(PlanMemory, ResidualStaysWhileTheBranchRuns) {
  const std::vector<TensorLife> tensors = {{640, 0, 3}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};
  const MemoryPlan plan = PlanMemory(tensors);
  ExpectSound(tensors, plan);
  EXPECT_EQ(plan.arena_bytes, 3 * 640);
}

TEST(PlanMemory, EmptyAndZeroBytes) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0);
  const std::vector<TensorLife> tensors = {{0, 0, 5}, {1, 0, 5}, {0, 0, 5}};
  EXPECT_EQ(PlanMemory(tensors).arena_bytes, 64);
}

TEST(PlanMemory, RandomLivesAreSoundAndTight) {
  double waste = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<TensorLife> tensors;
    for (uint64_t n = 1 + random.Below(40); n > 0; --n) {
      const int first = static_cast<int>(random.Below(30));
      tensors.push_back({static_cast<int64_t>(random.Below(5000)), first, first + static_cast<int>(random.Below(6))});
    }
    const MemoryPlan plan = PlanMemory(tensors);
    ExpectSound(tensors, plan);
    waste += static_cast<double>(plan.arena_bytes) / static_cast<double>(std::max<int64_t>(64, Peak(tensors))) - 1;
  }
  EXPECT_LT(waste / 200, 0.1);  // on average within a tenth of what is needed at least
}

}  // namespace
}  // namespace hone
