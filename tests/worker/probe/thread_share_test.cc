#include "worker/probe/thread_share.h"

#include <algorithm>

#include "deploy/runtime/run/thread_pool.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(ShareOfThreads, IsOneForOneThread) { EXPECT_EQ(ShareOfThreads(HostTarget(), 1), 1); }

TEST(ShareOfThreads, IsAboutOneForThoseThatMayRunAtOnce) {
  const int cpus = static_cast<int>(AllowedCpus().size());
  double best = 0;  // others may have them now and then
  for (int i = 0; i < 20; ++i) best = std::max(best, ShareOfThreads(HostTarget(), std::min(cpus, 2)));
  EXPECT_GT(best, 0.4) << "two threads of a core have half of it each";
  EXPECT_LT(best, 1.5);
}

// One works while another waits for the processor.
TEST(ShareOfThreads, IsLessForThoseThatMayNot) {
  const int cpus = static_cast<int>(AllowedCpus().size());
  if (cpus > 8) GTEST_SKIP() << "so many threads for " << cpus << " processors take long to come together";
  double worst = 1;
  for (int i = 0; i < 5; ++i) worst = std::min(worst, ShareOfThreads(HostTarget(), 4 * cpus));
  EXPECT_LT(worst, 0.75);
}

}  // namespace
}  // namespace hone
