#include "worker/agent/builds/known_builds.h"

#include "gtest/gtest.h"

namespace hone::testing {
namespace {

v1::BuildRequest RequestOf(const std::string& trace, uint64_t id = 0) {
  v1::BuildRequest request;
  request.set_id(id);
  request.set_trace(trace);
  return request;
}
v1::BuildOutcome BuiltWith(const std::string& object) {
  v1::BuildOutcome built;
  built.mutable_reply()->set_image("image");
  built.mutable_reply()->set_object(object);
  return built;
}

TEST(KnownBuilds, AreThoseOfTheLastBatches) {
  KnownBuilds known;
  known.NextBatch();
  known.Keep(RequestOf("a", 1), BuiltWith("object"));
  known.Keep(RequestOf("b", 2), BuiltWith("object"));
  for (int batch = 0; batch < 4; ++batch) {
    known.NextBatch();
    EXPECT_NE(known.Find(RequestOf("a", 7)), nullptr) << "it is asked for in every batch";
  }
  EXPECT_EQ(known.Find(RequestOf("b")), nullptr);
  known.Forget(RequestOf("a"));
  EXPECT_EQ(known.Find(RequestOf("a")), nullptr);
}

TEST(KnownBuilds, ServeWhoNeedsNoMoreThanTheyHave) {
  KnownBuilds known;
  v1::BuildRequest image_only = RequestOf("a");
  image_only.set_image_only(true);
  known.Keep(image_only, BuiltWith(""));
  EXPECT_NE(known.Find(image_only), nullptr);
  EXPECT_EQ(known.Find(RequestOf("a")), nullptr);
  known.Keep(RequestOf("a"), BuiltWith("object"));
  EXPECT_NE(known.Find(image_only), nullptr);
  EXPECT_NE(known.Find(RequestOf("a")), nullptr);
}

}  // namespace
}  // namespace hone::testing
