#include "worker/agent/builds/build_reply.h"

#include <limits>

#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/builder/build.h"

namespace hone {
namespace {

v1::BuildReply Whole() {
  v1::BuildReply reply;
  reply.set_id(7);
  reply.set_object_digest(std::string(32, 'd'));
  reply.set_program_hash(std::string(8, 'h'));
  reply.set_generator("hone-1 llvm-19");
  reply.set_seconds(0.5);
  return reply;
}
bool IsRead(const v1::BuildReply& reply) {
  v1::BuildReply read;
  return ReadBuildReply(reply.SerializeAsString(), 7, &read).ok();
}

TEST(BuildReply, IsReadWhereItsPartsHaveTheirSizes) {
  EXPECT_TRUE(IsRead(Whole()));
  v1::BuildReply failure;
  failure.set_id(7);
  failure.set_error("no such loop");
  EXPECT_TRUE(IsRead(failure));

  const auto refused = [](const char* what, void (*change)(v1::BuildReply&)) {
    v1::BuildReply reply = Whole();
    change(reply);
    EXPECT_FALSE(IsRead(reply)) << what;
  };
  refused("of another request", [](v1::BuildReply& r) { r.set_id(8); });
  refused("a digest", [](v1::BuildReply& r) { r.set_object_digest(std::string(1 << 20, 'd')); });
  refused("a hash", [](v1::BuildReply& r) { r.set_program_hash("h"); });
  // With it in a result, no message of the worker would be short enough for the daemon.
  refused("a generator", [](v1::BuildReply& r) { r.set_generator(std::string(5 << 20, 'g')); });
  refused("a time", [](v1::BuildReply& r) { r.set_seconds(std::numeric_limits<double>::quiet_NaN()); });
  refused("time before", [](v1::BuildReply& r) { r.set_seconds(-1); });
  v1::BuildReply read;
  EXPECT_FALSE(ReadBuildReply("\xff\xff", 7, &read).ok());
}

TEST(BuildReply, SaysWhichVectorisedLoopsAreSerial) {
  v1::BuildRequest request;
  request.set_workload(R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    with T.block("root"):
        for i in T.vectorized(8):
            B[i] = T.float32(0)
            for j in range(i + 1):
                B[i] = B[i] + A[j, i]
)");
  request.set_trace("");
  request.set_target(HostTarget().text);
  request.set_symbol("kernel");
  request.set_threads(1);
  v1::BuildOutcome built;
  *built.mutable_reply() = Build(request);
  EXPECT_EQ(built.reply().error(), "");
  EXPECT_THAT(OutcomeOfBuild(built).detail(),
              testing::HasSubstr("loop i is not vectorised: the bounds of loop j inside depend on it"));
}

// What the daemon cannot read it never acknowledges, and the worker would say it for ever.
TEST(BuildReply, AReasonThatIsCutStaysText) {
  v1::BuildOutcome built;
  built.mutable_reply()->set_error(std::string(399, 'e') + "\u00e9");
  const v1::Outcome outcome = OutcomeOfBuild(built);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_BUILD_ERROR);
  EXPECT_EQ(outcome.detail(), std::string(399, 'e'));
  EXPECT_TRUE(v1::Outcome().ParseFromString(outcome.SerializeAsString()));
}

}  // namespace
}  // namespace hone
