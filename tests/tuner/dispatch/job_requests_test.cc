#include "tuner/dispatch/state/job_requests.h"

#include <optional>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(JobRequests, AreKnownForAWhileAfterTheEndOfTheirJobs) {
  JobRequests requests;
  requests.Add(1, "a", 7);
  requests.Add(2, "a", 8);
  requests.Add(1, "open", 9);
  EXPECT_EQ(requests.Find(1, "a"), 7u);
  EXPECT_EQ(requests.Find(2, "a"), 8u);
  EXPECT_EQ(requests.Find(3, "a"), std::nullopt);
  requests.End(0, 1, "a");
  requests.End(kRequestStays - 1, 2, "a");
  EXPECT_EQ(requests.Find(1, "a"), 7u);
  requests.Add(1, "b", 10);
  requests.End(kRequestStays, 1, "b");
  EXPECT_EQ(requests.Find(1, "a"), std::nullopt);
  EXPECT_EQ(requests.Find(2, "a"), 8u);
  EXPECT_EQ(requests.Find(1, "open"), 9u);
  EXPECT_EQ(requests.size(), 3);
}

}  // namespace
}  // namespace hone
