// Machines that lack what the target of their worker has.
#include "worker/agent/claimed_target.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/sandbox/layers.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/builds/builder_pool.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClaimedTargetTest : public ::testing::Test {
 protected:
  BuilderPool builders_{1, "", LayersSomeSystemsLack()};
};

TEST_F(ClaimedTargetTest, OfThisMachineHolds) {
  TurnLock turn = *TurnLock::Open();
  ClaimedTarget claimed(HostTarget().text, builders_, {LayersSomeSystemsLack()});
  EXPECT_EQ(claimed.Lacks(absl::InfiniteFuture(), turn), "") << "nothing is suspect yet";
  EXPECT_TRUE(claimed.Holds()) << claimed.why();
}

#if defined(__x86_64__)
TEST_F(ClaimedTargetTest, OfAMachineWithMoreInstructionsDoesNot) {
  const char* const beyond = HostTarget().has("avx512f") ? "avx512fp16" : "avx512f";
  if (HostTarget().has(beyond)) GTEST_SKIP() << "this machine has " << beyond;
  const Target more = *ParseTarget("cpu:" + HostTarget().cpu + "+" + beyond);
  ClaimedTarget claimed(more.text, builders_, {LayersSomeSystemsLack()});
  EXPECT_FALSE(claimed.Holds());
  EXPECT_THAT(claimed.why(),
              AllOf(HasSubstr("a machine that runs code for cpu:"), HasSubstr("lacks"), HasSubstr(beyond)));
}
#endif

// As a machine that is moved to another host, and back.
TEST_F(ClaimedTargetTest, IsTriedAgainOnceAMinute) {
  const std::string lacks = ::testing::TempDir() + "/lacks";
  ::setenv("HONE_LYING_RUNNER_LACKS", lacks.c_str(), 1);
  TurnLock turn = *TurnLock::Open();
  ClaimedTarget claimed(HostTarget().text, builders_, {~uint32_t{0}, HONE_BIN "/hone-lying-runner"});
  EXPECT_TRUE(claimed.Holds()) << claimed.why();
  std::fclose(std::fopen(lacks.c_str(), "w"));
  EXPECT_EQ(claimed.Lacks(absl::InfiniteFuture(), turn), "") << "it is tried when something is suspect";
  EXPECT_FALSE(claimed.Holds());
  const absl::Time looked = MonotonicNow();
  EXPECT_THAT(claimed.why(), HasSubstr("the oracle: the runner killed by signal"));
  std::remove(lacks.c_str());
  EXPECT_EQ(claimed.Lacks(looked + absl::Seconds(50), turn), claimed.why());
  EXPECT_NE(claimed.why(), "");
  EXPECT_EQ(claimed.Lacks(looked + absl::Seconds(61), turn), "");
  ::unsetenv("HONE_LYING_RUNNER_LACKS");
}

// Who cannot be started tells nothing about the CPU.
TEST_F(ClaimedTargetTest, IsNotDoubtedForWantOfAProgram) {
  BuilderPool none(1, "/nonexistent", LayersSomeSystemsLack());
  ClaimedTarget claimed(HostTarget().text, none, {LayersSomeSystemsLack()});
  EXPECT_TRUE(claimed.Holds()) << claimed.why();
}

}  // namespace
}  // namespace hone
