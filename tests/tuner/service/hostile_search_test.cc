// hone-search with requests as a tenant or a worker may make them mean harm: it answers, or it dies and says so; it
// never keeps whoever asks waiting, and the next process does its work.
#include <signal.h>

#include <climits>
#include <cmath>
#include <string>

#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "gtest/gtest.h"
#include "hone/v1/search.pb.h"
#include "tests/compiler/schedule/campaign.h"

namespace hone {
namespace {

constexpr absl::Duration kShort = absl::Seconds(5), kLong = absl::Seconds(60);
constexpr size_t kLimit = 256 << 20;

constexpr char kWorkload[] = R"(@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, 64):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)";

v1::SearchRequest Honest() {
  v1::SearchRequest request;
  request.set_request_id(1);
  request.set_task_id(1);
  request.mutable_workload()->set_text(kWorkload);
  request.mutable_device()->set_target("cpu:znver4");
  request.mutable_device()->set_device_class("x");
  request.set_threads(1);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_batch(4);
  return request;
}

std::unique_ptr<SandboxedProcess> Start() {
  absl::StatusOr<std::unique_ptr<SandboxedProcess>> started =
      SandboxedProcess::Start({.path = HONE_BIN "/hone-search", .allowed_missing = LayersSomeSystemsLack()});
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

absl::StatusOr<v1::SearchReply> Ask(SandboxedProcess& search, const std::string& bytes, absl::Duration limit) {
  if (absl::Status sent = search.Send(bytes, limit); !sent.ok()) return sent;
  absl::StatusOr<std::string> answer = search.Receive(kLimit, limit);
  if (!answer.ok()) return answer.status();
  v1::SearchReply reply;
  EXPECT_TRUE(reply.ParseFromString(*answer));
  return reply;
}

TEST(HostileSearch, AnHonestRequestIsAnsweredFromTheSandbox) {
  const std::unique_ptr<SandboxedProcess> search = Start();
  ASSERT_NE(search, nullptr);
  EXPECT_EQ(LayerNames(MissingLayers(search->layers()) & ~LayersSomeSystemsLack()), "");
  const absl::StatusOr<v1::SearchReply> reply = Ask(*search, Honest().SerializeAsString(), kLong);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->error(), "");
  EXPECT_GT(reply->candidates_size(), 0);
}

struct Hostile {
  const char* name;
  std::string (*bytes)();
};
template <class Change>
std::string With(Change change) {
  v1::SearchRequest request = Honest();
  change(request);
  return request.SerializeAsString();
}
std::string Repeated(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

using Request = v1::SearchRequest;
// clang-format off
const Hostile kHostile[] = {
    {"NotAMessage", [] { return std::string(1000, '\xff'); }},
    {"Nothing", [] { return std::string(); }},
    {"WorkloadOfBytes", [] { return With([](Request& r) { r.mutable_workload()->set_text("\x01\x02\xc3"); }); }},
    {"ManyParentheses", [] { return With([](Request& r) { r.mutable_workload()->set_text(
                                 "@T.prim_func\ndef main(" + Repeated("(", 1 << 20)); }); }},
    {"HugeWorkload", [] { std::string text = kWorkload; 
                          for (size_t at; (at = text.find("64")) != std::string::npos;) text.replace(at, 2, "1000000007");
                          return With([&](Request& r) { r.mutable_workload()->set_text(text); }); }},
    {"NoTarget", [] { return With([](Request& r) { r.mutable_device()->set_target(""); }); }},
    {"TargetOfBytes", [] { return With([](Request& r) { r.mutable_device()->set_target(Repeated("+x", 1 << 19)); }); }},
    {"MachineOfBytes", [] { return With([](Request& r) { r.mutable_device()->set_machine(Repeated("ghz=0,", 1 << 18)); }); }},
    {"BatchOfAll", [] { return With([](Request& r) { r.set_batch(INT_MAX); }); }},
    {"LessThanNoBatch", [] { return With([](Request& r) { r.set_batch(-1); r.set_threads(-1); }); }},
    {"ModelOfBytes", [] { return With([](Request& r) { r.set_cost_model(std::string(1 << 20, '\x7f')); }); }},
    {"SeedsOfBytes", [] { return With([](Request& r) { for (int i = 0; i < 1000; ++i) r.add_seeds(std::string(1000, '\xee')); }); }},
    {"PendingOfBytes", [] { return With([](Request& r) { for (int i = 0; i < 1000; ++i) r.add_pending("sch.(" + std::to_string(i)); }); }},
    {"SeedOfManySteps", [] { return With([](Request& r) { r.add_seeds(
                                 "b0 = sch.get_block(\"B\", func_name=\"main\")\nl1, l2 = sch.get_loops(b0)\n" +
                                 Repeated("sch.parallel(l1)\n", 100000)); }); }},
    {"TimesThatAreNone", [] { return With([](Request& r) {
        for (const double us : {0.0, -1.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1e-300}) {
          v1::Observation& o = *r.add_observations();
          o.set_trace("b0 = sch.get_block(\"B\", func_name=\"main\")\n# " + std::to_string(us));
          o.set_kind(v1::OUTCOME_OK);
          o.set_median_us(us);
        } }); }},
    {"ObservationsFromNowhere", [] { return With([](Request& r) { r.set_observations_before(UINT32_MAX); }); }},
    {"StrategyThatIsNone", [] { return With([](Request& r) { r.set_strategy(static_cast<v1::SearchStrategy>(77)); }); }},
};
// clang-format on

class HostileSearches : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileSearches, AreAnsweredOrEndTheProcess) {
  ::signal(SIGPIPE, SIG_IGN);  // as the daemon does
  for (int64_t run = 0; run < testing::FromEnvironment("HONE_RUNS", 3); ++run) {
    const std::unique_ptr<SandboxedProcess> search = Start();
    ASSERT_NE(search, nullptr);
    const absl::Time start = absl::Now();
    const absl::StatusOr<v1::SearchReply> reply = Ask(*search, GetParam().bytes(), kShort);
    EXPECT_LT(absl::Now() - start, kLong);
    EXPECT_TRUE(reply.ok() || absl::IsUnavailable(reply.status()) || absl::IsDeadlineExceeded(reply.status()))
        << reply.status();
    if (!reply.ok()) continue;
    for (const v1::Candidate& candidate : reply->candidates()) EXPECT_FALSE(candidate.trace().empty());
    const absl::StatusOr<v1::SearchReply> next = Ask(*search, With([](Request& r) { r.set_task_id(2); }), kLong);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_GT(next->candidates_size(), 0) << next->error();
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, HostileSearches, ::testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
