// Random schedules for GPUs, lowered to launches: with threads side by side the interpreter finds no race, no barrier
// that a thread misses, and what the workload computes.
//   HONE_SEEDS=500 HONE_FIRST_SEED=0 compiler_lower_tests --gtest_filter=ThreadSchedules.*
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

// The program without its n-th barrier; nullopt when it has fewer.
std::optional<PrimFunc> WithoutBarrier(PrimFunc f, int n) {
  int seen = 0;
  f.body = RewriteBottomUp(f.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Evaluate* evaluate = s.As<Evaluate>();
    if (evaluate == nullptr || !IsBarrier(*evaluate) || seen++ != n) return std::nullopt;
    return Stmt::Make(Seq{});
  });
  return seen > n ? std::optional(f) : std::nullopt;
}

std::string CheckThreads(uint64_t seed) {
  Random random(seed);
  const ThreadSchedule drawn = DrawThreadSchedule(random);
  ExpectReplays(drawn.schedule, drawn.workload.func);
  const Reference reference(drawn.workload);
  const std::string shown =
      absl::StrCat(drawn.workload.name, "\n", ToText(drawn.schedule.trace()), ToText(drawn.schedule.func()));
  const ScheduledProgram program = drawn.schedule.Program();
  if (const std::string wrong = reference.CheckInterpreted(program); !wrong.empty())
    return absl::StrCat("scheduled: ", wrong, "\n", shown);
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(program.main);
  if (!lowered.ok()) return absl::StrCat("lowering: ", lowered.status().ToString(), "\n", shown);
  if (const std::string wrong = reference.CheckInterpreted({*lowered, {}}); !wrong.empty())
    return absl::StrCat("lowered: ", wrong, "\n", shown, ToText(*lowered));
  Count(drawn.shape);
  // Each barrier is there for a reason: without it there is a race, unless sizes are so small that no threads meet.
  for (int n = 0;; ++n) {
    const std::optional<PrimFunc> less = WithoutBarrier(*lowered, n);
    if (!less.has_value()) break;
    const std::string found = reference.CheckInterpreted({*less, {}});
    const bool expected =
        found.find("data race") != std::string::npos || found.find("before it is written") != std::string::npos;
    if (!found.empty() && !expected) return absl::StrCat("without barrier ", n, ": ", found, "\n", ToText(*less));
    Count(found.empty() ? "barriers not needed" : "barriers needed");
  }
  return "";
}

TEST(ThreadSchedules, HaveNoRacesAndTheRightResult) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 100), CheckThreads);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  std::map<std::string, int64_t> counts(campaign.counts.begin(), campaign.counts.end());
  for (const auto& [name, count] : counts) std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  for (const char* shape : {"product", "reduction", "softmax"}) EXPECT_GT(counts[shape], 0) << shape;
  EXPECT_GT(counts["barriers needed"], counts["barriers not needed"]);
}

}  // namespace
}  // namespace hone::testing
