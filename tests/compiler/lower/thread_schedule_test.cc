// Random schedules for GPUs, lowered to launches: with threads side by side the interpreter finds no race, no barrier
// that a thread misses, and what the workload computes.
//   HONE_SEEDS=500 HONE_FIRST_SEED=0 compiler_lower_tests --gtest_filter=ThreadSchedules.*
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

using IsIt = std::function<bool(const Evaluate&)>;
bool IsWait(const Evaluate& evaluate) { return WaitGroup(evaluate).has_value(); }

// The program without its n-th statement of a kind, or with another in its place; nullopt when it has fewer.
std::optional<PrimFunc> Without(PrimFunc f, const IsIt& is_it, int n,
                                const std::function<Stmt(const Evaluate&)>& instead) {
  int seen = 0;
  f.body = RewriteBottomUp(f.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Evaluate* evaluate = s.As<Evaluate>();
    if (evaluate == nullptr || !is_it(*evaluate) || seen++ != n) return std::nullopt;
    return instead(*evaluate);
  });
  return seen > n ? std::optional(f) : std::nullopt;
}
Stmt Nothing(const Evaluate&) { return Stmt::Make(Seq{}); }
Stmt OneGroupMore(const Evaluate& wait) { return MakeWaitGroup(*WaitGroup(wait) + 1); }

// "" when the launches compute what they should, whenever copies land.
std::string CheckLaunches(const Reference& reference, const PrimFunc& lowered, uint64_t seed) {
  if (std::string wrong = reference.CheckInterpreted({lowered, {}}); !wrong.empty()) return wrong;
  for (const Landing landing : {Landing::kEarliest, Landing::kRandom}) {
    std::vector<NdArray> actual = reference.arguments();
    const absl::Status ran = Interpret(lowered, actual, {.landing = landing, .seed = seed});
    if (!ran.ok()) return absl::StrCat("the interpreter, copies landing otherwise: ", ran.ToString());
    if (std::string wrong = reference.Compare(actual); !wrong.empty()) return wrong;
  }
  return "";
}

// Each barrier and each wait is there for a reason: without it something is found, unless sizes are so small that no
// threads meet.
std::string CheckEachIsNeeded(const Reference& reference, const PrimFunc& lowered) {
  struct Kind {
    const char* name;
    IsIt is_it;
    std::function<Stmt(const Evaluate&)> instead;
  };
  for (const Kind& kind :
       {Kind{"barriers", IsBarrier, Nothing}, Kind{"waits", IsWait, Nothing}, Kind{"counts", IsWait, OneGroupMore}}) {
    for (int n = 0;; ++n) {
      const std::optional<PrimFunc> less = Without(lowered, kind.is_it, n, kind.instead);
      if (!less.has_value()) break;
      const std::string found = reference.CheckInterpreted({*less, {}});
      bool expected = false;
      for (const char* fault : {"data race", "before it is written", "has landed", "has not landed"})
        expected |= found.find(fault) != std::string::npos;
      if (!found.empty() && !expected)
        return absl::StrCat("without ", n, " of ", kind.name, ": ", found, "\n", ToText(*less));
      Count(absl::StrCat(kind.name, found.empty() ? " not needed" : " needed"));
    }
  }
  return "";
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
  if (const std::string wrong = CheckLaunches(reference, *lowered, seed); !wrong.empty())
    return absl::StrCat("lowered: ", wrong, "\n", shown, ToText(*lowered));
  Count(drawn.shape);
  return CheckEachIsNeeded(reference, *lowered);
}

std::string CheckWarps(uint64_t seed) {
  Random random(seed);
  const WarpProgram drawn = DrawWarpProduct(random);
  const Reference reference(drawn.workload);
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(drawn.program);
  if (!lowered.ok()) return absl::StrCat("lowering: ", lowered.status().ToString(), "\n", ToText(drawn.program));
  if (const std::string wrong = CheckLaunches(reference, *lowered, seed); !wrong.empty())
    return absl::StrCat("lowered: ", wrong, "\n", ToText(*lowered));
  return CheckEachIsNeeded(reference, *lowered);
}

std::map<std::string, int64_t> RunAll(std::string (*check)(uint64_t), int64_t seeds) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", seeds), check);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  std::map<std::string, int64_t> counts(campaign.counts.begin(), campaign.counts.end());
  for (const auto& [name, count] : counts) std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  return counts;
}

TEST(ThreadSchedules, HaveNoRacesAndTheRightResult) {
  std::map<std::string, int64_t> counts = RunAll(CheckThreads, 500);
  for (const char* shape : {"product", "pipelined product", "asynchronous product", "reduction", "softmax"})
    EXPECT_GT(counts[shape], 0) << shape;
  for (const char* kind : {"barriers", "waits", "counts"})
    EXPECT_GT(counts[absl::StrCat(kind, " needed")], counts[absl::StrCat(kind, " not needed")]) << kind;
}

TEST(ThreadSchedules, OfWarpsHaveNoRacesAndTheRightResult) {
  std::map<std::string, int64_t> counts = RunAll(CheckWarps, 10);
  for (const char* kind : {"waits", "counts"})
    EXPECT_GT(counts[absl::StrCat(kind, " needed")], counts[absl::StrCat(kind, " not needed")]) << kind;
}

}  // namespace
}  // namespace hone::testing
