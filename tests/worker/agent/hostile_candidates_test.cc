// Every hostile candidate, three times, through what a worker does to verify one; and what stays behind of it.
#include "tests/worker/agent/hostile_candidates.h"

#include <dirent.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "compiler/support/sanitized.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/worker/agent/children.h"
#include "worker/agent/builder_pool.h"
#include "worker/agent/verify_candidate.h"

namespace hone::testing {
namespace {

constexpr int kRuns = 3;

int CountIn(const char* folder) {
  int count = 0;
  DIR* entries = ::opendir(folder);
  while (::readdir(entries) != nullptr) ++count;
  ::closedir(entries);
  return count;
}

std::string OutcomeName(v1::OutcomeKind kind) {
  switch (kind) {
    case v1::OUTCOME_CRASH: return "crash";
    case v1::OUTCOME_TIMEOUT: return "timeout";
    case v1::OUTCOME_WRONG_RESULT: return "wrong_result";
    case v1::OUTCOME_UNSPECIFIED: return "right";
    default: return v1::OutcomeKind_Name(kind);
  }
}

#if defined(__x86_64__)
TEST(HostileCandidates, AreFoundOutAndLeaveNothingBehind) {
  if (kSanitized) GTEST_SKIP() << "a program with a sanitizer has no filter of system calls";
  BuilderPool builders(1);
  v1::Workload workload;
  workload.set_text(ToText(Matmul(8, 8, 8)));
  absl::StatusOr<std::unique_ptr<TaskContext>> task =
      TaskContext::Create(workload, HostTarget().text, builders, absl::Seconds(60));
  ASSERT_TRUE(task.ok()) << task.status();
  v1::BuildRequest request;
  request.set_workload(workload.text());
  request.set_trace("");
  request.set_target(HostTarget().text);
  request.set_threads(1);
  request.set_symbol("k");
  const v1::BuildReply honest = builders.Build({request}, absl::Seconds(60))[0].reply();
  ASSERT_EQ(honest.error(), "");
  const VerifyLimits patient = {.threads = 1, .run = absl::Seconds(60)};
  const Verified right = VerifyCandidate(**task, honest.image(), honest.kernel_set(), NumericLevel::kDefault, patient);
  ASSERT_EQ(OutcomeName(right.kind), "right") << right.detail;

  const std::set<std::string> children = Children();
  const int descriptors = CountIn("/proc/self/fd");
  EXPECT_GE(HostileCandidates().size(), 60u);
  for (const HostileCandidate& candidate : HostileCandidates()) {
    ImageParts parts;
    parts.symbols.push_back({"k", 0});
    parts.code = candidate.code;
    const std::string image = WriteImage(parts);
    const bool hangs = candidate.outcome == std::string("timeout");
    for (int run = 0; run < kRuns; ++run) {
      const Verified verified =
          VerifyCandidate(**task, image, honest.kernel_set(), NumericLevel::kDefault,
                          hangs ? VerifyLimits{.threads = 1, .run = absl::Milliseconds(200)} : patient);
      const std::string outcome = OutcomeName(verified.kind);
      EXPECT_NE(outcome, "right") << candidate.name;
      EXPECT_NE(outcome, "OUTCOME_INFRA") << candidate.name << ": " << verified.detail;
      EXPECT_TRUE(candidate.outcome[0] == '\0' || outcome == candidate.outcome)
          << candidate.name << ": " << outcome << ", " << verified.detail;
    }
    EXPECT_EQ(Children(), children) << candidate.name;
    EXPECT_EQ(CountIn("/proc/self/fd"), descriptors) << candidate.name;
  }
}
#endif

// What a builder that was taken over may hand on: a kernel set that is another task's.
TEST(HostileCandidates, KernelSetsOfOtherTasksAreRefused) {
  BuilderPool builders(1);
  v1::Workload workload;
  workload.set_text(ToText(Matmul(8, 8, 8)));
  absl::StatusOr<std::unique_ptr<TaskContext>> task =
      TaskContext::Create(workload, HostTarget().text, builders, absl::Seconds(60));
  ASSERT_TRUE(task.ok()) << task.status();
  KernelSet set;
  set.symbol = "k";
  for (const TaskParam& param : (*task)->params().inputs) set.params.push_back({"float32", param.shape, param.bytes()});
  set.num_outputs = 0;
  const auto outcome = [&] {
    return OutcomeName(VerifyCandidate(**task, "", Serialize(set), NumericLevel::kDefault, {}).kind);
  };
  EXPECT_EQ(outcome(), "OUTCOME_BUILD_ERROR") << "no output";
  set.num_outputs = 1;
  EXPECT_EQ(outcome(), "OUTCOME_BUILD_ERROR") << "an input too few";
  set.params.push_back({"float32", {8, 8}, 255});
  EXPECT_EQ(outcome(), "OUTCOME_BUILD_ERROR") << "an output too short";
}

}  // namespace
}  // namespace hone::testing
