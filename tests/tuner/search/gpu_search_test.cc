// The search for a task of a GPU: proposes what the device can run, never the same twice, and learns from what comes
// back.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler/lower/threads/device_program.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/search/candidates/generated_space.h"
#include "tuner/search/candidates/gpu_lens.h"
#include "tuner/search/strategies/task_search.h"

namespace hone {
namespace {

GpuTarget Small() { return *ParseGpuTarget("opencl:generic,threads=128,shared=8K,processors=4"); }

TEST(GpuSearch, ProposesWhatFitsAndNothingTwice) {
  const PrimFunc workload = testing::DenseRelu(64, 96, 48);
  SearchTuning tuning;
  tuning.pool = 128;
  auto search = TaskSearch::CreateForGpu(workload, Small(), 3, tuning, v1::SEARCH_MODEL, nullptr);
  ASSERT_TRUE(search.ok()) << search.status();
  std::set<std::string> traces;
  for (int round = 0; round < 3; ++round) {
    const absl::StatusOr<std::vector<v1::Candidate>> batch = (*search)->Propose(8);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_FALSE(batch->empty());
    for (const v1::Candidate& candidate : *batch) {
      EXPECT_TRUE(traces.insert(candidate.trace()).second) << candidate.trace();
      const absl::StatusOr<Schedule> schedule = Replay(*ParseTrace(candidate.trace()), workload);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      EXPECT_TRUE(LowerToLoops(schedule->Program().main, Small()).ok());
      v1::Observation seen;
      seen.set_trace(candidate.trace());
      seen.set_kind(v1::OUTCOME_OK);
      seen.set_median_us(10.0 + static_cast<double>(traces.size()));
      (*search)->Observe(seen);
    }
  }
  EXPECT_GE(traces.size(), 20u);
  EXPECT_EQ((*search)->refused(), 0) << (*search)->last_refusal();
}

TEST(GpuSearch, FindsItsTracesAgain) {
  const PrimFunc workload = testing::Softmax(24, 200);
  const auto space = MakeGpuSpace(workload, Small());
  ASSERT_TRUE(space.ok()) << space.status();
  size_t found = 0;
  for (const std::optional<Point>& favourite : (*space)->Favourites()) {
    if (!favourite.has_value()) continue;
    const absl::StatusOr<Built> built = (*space)->Build(*favourite);
    ASSERT_TRUE(built.ok()) << built.status();
    for (const float value : built->program.features.rows) EXPECT_TRUE(std::isfinite(value));
    const absl::StatusOr<Identified> again = (*space)->Identify(built->trace);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->point, favourite);
    EXPECT_EQ(again->program.hash, built->program.hash);
    ++found;
  }
  EXPECT_GE(found, 2u);
}

// Blocks are the parallel loops; threads and what each does are inside, with the block's own memory.
TEST(GpuLens, SeesLaunchesAsLoops) {
  const auto space = MakeGpuSpace(testing::Matmul(64, 64, 64), Small());
  ASSERT_TRUE(space.ok()) << space.status();
  const std::optional<Point>& favourite = (*space)->Favourites()[0];
  ASSERT_TRUE(favourite.has_value());
  const absl::StatusOr<Built> built = (*space)->Build(*favourite);
  ASSERT_TRUE(built.ok()) << built.status();
  const absl::StatusOr<Schedule> schedule = Replay(*ParseTrace(built->trace), testing::Matmul(64, 64, 64));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<LoweredFunc> loops = LowerToLoops(schedule->Program().main, Small());
  ASSERT_TRUE(loops.ok()) << loops.status();
  const For* outermost = loops->func.body.As<For>();
  ASSERT_NE(outermost, nullptr);
  EXPECT_EQ(outermost->kind, ForKind::kParallel);
  EXPECT_EQ(LowerToLoops(schedule->Program().main, *ParseGpuTarget("opencl:generic,threads=1")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hone
