// Programs larger than a message on their way through a build pool: a daemon, a worker that only builds, and a session
// that asks as a worker that only measures does.
#include "worker/agent/builds/build_deposit.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/sandbox/layers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/honed_process.h"
#include "worker/agent/agent.h"
#include "worker/agent/builds/remote_builders.h"
#include "worker/agent/session/work_queue.h"

namespace hone {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class LargeBuilds : public ::testing::Test {
 protected:
  LargeBuilds() {
    AgentOptions pool;
    pool.server = honed_.address();
    pool.role = AgentRole::kBuild;
    pool.threads = 3;
    pool.allowed_missing_layers = LayersSomeSystemsLack();
    pool.builder = HONE_BIN "/hone-large-builder";
    pool_ = std::thread([this, pool] { EXPECT_EQ(RunAgent(pool, stop_), absl::OkStatus()); });
    board_ = std::thread([this] { EXPECT_EQ(session_.Run(stop_), absl::OkStatus()); });
  }
  ~LargeBuilds() override {
    stop_ = true;
    pool_.join();
    board_.join();
  }
  // Programs of that many bytes each, all asked for at once.
  std::vector<v1::BuildOutcome> Build(const std::vector<size_t>& sizes) {
    std::vector<v1::BuildRequest> requests;
    for (const size_t size : sizes) {
      v1::BuildRequest& request = requests.emplace_back();
      request.set_id(requests.size());
      request.set_trace(absl::StrCat(size));
    }
    return RemoteBuilders(session_, absl::Seconds(60)).Build(requests, absl::Seconds(20));
  }
  static void ExpectWhole(const v1::BuildOutcome& outcome, size_t size) {
    EXPECT_EQ(outcome.reply().error(), "");
    EXPECT_TRUE(outcome.reply().image() == std::string(size / 2, 'i')) << outcome.reply().image().size();
    EXPECT_TRUE(outcome.reply().object() == std::string(size - size / 2, 'o')) << outcome.reply().object().size();
    EXPECT_EQ(outcome.deposit(), "");
  }
  static SessionOptions BoardOptions() {
    SessionOptions options;
    options.name = "board";
    options.role = AgentRole::kMeasure;
    options.profile.set_device_class("board/c1");
    options.profile.set_target("cpu:board");
    return options;
  }

  const TempFolder folder_;
  const HonedProcess honed_{{"--db", folder_ / "t.db", "--listen", "unix:" + folder_ / "socket"}};
  std::atomic<bool> stop_{false};
  WorkQueue queue_;
  Session session_{honed_.address(), {}, BoardOptions(), queue_};
  std::thread pool_, board_;
};

TEST_F(LargeBuilds, ArriveWholeBesideSmallOnes) {
  const std::vector<size_t> sizes = {6 * kMiB, 1000, 3 * kMiB, 40 * kMiB};
  const std::vector<v1::BuildOutcome> built = Build(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE(sizes[i]);
    ExpectWhole(built[i], sizes[i]);
    EXPECT_EQ(built[i].reply().id(), i + 1);
  }
}

// A daemon has room for 64 MiB of a tenant's: three of these are made at once, and one of them waits.
TEST_F(LargeBuilds, OfABatchTakeTurnsInTheRoomThereIs) {
  for (const v1::BuildOutcome& outcome : Build(std::vector<size_t>(5, 30 * kMiB))) ExpectWhole(outcome, 30 * kMiB);
}

TEST_F(LargeBuilds, BeyondWhatIsCarriedFailWithOneReason) {
  const std::vector<v1::BuildOutcome> built = Build({64 * kMiB, 1000});
  EXPECT_THAT(
      built[0].reply().error(),
      ::testing::MatchesRegex("what was built has 671089[0-9]+ bytes, and 67108864 is the most that is carried"));
  EXPECT_FALSE(built[0].infrastructure()) << "no other worker can carry it either";
  EXPECT_EQ(built[0].reply().image().size(), 0u);
  ExpectWhole(built[1], 1000);
}

}  // namespace
}  // namespace hone
