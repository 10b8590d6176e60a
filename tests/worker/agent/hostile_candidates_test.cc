// Every hostile candidate, HONE_RUNS times (3), through what a worker does to verify one; what stays behind of it; and
// whether a right one is taken for right after it.
#include "tests/worker/agent/hostile_candidates.h"

#include <unistd.h>

#include <set>
#include <sstream>

#include "compiler/sandbox/layers.h"
#include "compiler/support/sanitized.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image/image.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/processes.h"
#include "tests/worker/agent/host_task.h"
#include "worker/agent/builds/build_reply.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/agent/trials/verify_candidate.h"

namespace hone::testing {
namespace {

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
  BuilderPool builders(1, "", LayersSomeSystemsLack());
  const std::string workload = ToText(Matmul(8, 8, 8));
  absl::StatusOr<std::unique_ptr<TaskContext>> task = HostTask(workload, builders, absl::Seconds(60));
  ASSERT_TRUE(task.ok()) << task.status();
  v1::BuildRequest request;
  request.set_workload(workload);
  request.set_trace("");
  request.set_target(HostTarget().text);
  request.set_threads(1);
  request.set_symbol("k");
  const v1::BuildReply honest = builders.Build({request}, absl::Seconds(60))[0].reply();
  ASSERT_EQ(honest.error(), "");
  const VerifyLimits patient = {.threads = 1, .run = absl::Seconds(60)};
  const auto honest_outcome = [&] {  // whose runner has ended
    const Verified done = VerifyCandidate(**task, honest.image(), honest.kernel_set(), NumericLevel::kDefault, patient);
    return OutcomeName(done.kind) + done.detail;
  };
  ASSERT_EQ(honest_outcome(), "right");

  const std::set<pid_t> children = ChildrenOf(::getpid());
  const int descriptors = DescriptorsOf(::getpid());
  EXPECT_GE(HostileCandidates().size(), 60u);
  for (const HostileCandidate& candidate : HostileCandidates()) {
    ImageParts parts;
    parts.symbols.push_back({"k", 0});
    parts.code = candidate.code;
    const std::string image = WriteImage(parts);
    const bool hangs = candidate.outcome == std::string("timeout");
    const VerifyLimits limits = {.threads = candidate.threads,
                                 .run = hangs ? absl::Milliseconds(200) : absl::Seconds(60)};
    for (int64_t run = 0; run < FromEnvironment("HONE_RUNS", 3); ++run) {
      const Verified verified = VerifyCandidate(**task, image, honest.kernel_set(), NumericLevel::kDefault, limits);
      const std::string outcome = OutcomeName(verified.kind);
      EXPECT_NE(outcome, "right") << candidate.name;
      EXPECT_NE(outcome, "OUTCOME_INFRA") << candidate.name << ": " << verified.detail;
      v1::Outcome told;
      SetFailure(&told, verified.kind, verified.detail);
      EXPECT_TRUE(v1::Outcome().ParseFromString(told.SerializeAsString())) << candidate.name << ": " << verified.detail;
      EXPECT_TRUE(candidate.outcome[0] == '\0' || outcome == candidate.outcome)
          << candidate.name << ": " << outcome << ", " << verified.detail;
    }
    EXPECT_EQ(honest_outcome(), "right") << "after " << candidate.name;
    EXPECT_EQ(ChildrenOf(::getpid()), children) << candidate.name;
    EXPECT_EQ(DescriptorsOf(::getpid()), descriptors) << candidate.name;
  }
}
#endif

// What a builder that was taken over may hand on: a kernel set that is another task's.
TEST(HostileCandidates, KernelSetsOfOtherTasksAreRefused) {
  BuilderPool builders(1, "", LayersSomeSystemsLack());
  absl::StatusOr<std::unique_ptr<TaskContext>> task = HostTask(ToText(Matmul(8, 8, 8)), builders, absl::Seconds(60));
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
