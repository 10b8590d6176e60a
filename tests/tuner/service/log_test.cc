// What the daemon says of trials without being asked to say more: failures, losses and what is tried again, each with
// the job, the task and the attempt that it is about.
#include <signal.h>

#include <atomic>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/tuner/fake_task.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<nlohmann::json> LinesAboutTrials(const std::string& log) {
  std::vector<nlohmann::json> lines;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(log, '\n', absl::SkipEmpty()))) {
    nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(line.is_object()) << text;
    const std::string message = line.is_object() ? line.value("message", "") : "";
    if (absl::StartsWith(message, "trial ") || absl::StartsWith(message, "lease ")) lines.push_back(std::move(line));
  }
  return lines;
}

// A worker that is lent a candidate and never heard of again.
void TakeOneAndVanish(DaemonClient& client) {
  v1::HelloRequest hello;
  hello.set_worker_name("vanishes");
  hello.set_session("vanishes");
  hello.set_threads(2);
  hello.mutable_profile()->set_device_class("fake/c2");
  hello.mutable_profile()->set_target("cpu:fake");
  hello.mutable_profile()->set_cores(2);
  v1::HelloReply welcome;
  ASSERT_TRUE(client.fleet().Hello(client.Context().get(), hello, &welcome).ok());
  v1::SyncRequest sync;
  sync.set_session("vanishes");
  sync.set_credits(1);
  v1::SyncReply lent;
  for (const absl::Time end = absl::Now() + absl::Seconds(20); lent.want().empty() && absl::Now() < end;) {
    sync.set_seq(sync.seq() + 1);
    ASSERT_TRUE(client.fleet().Sync(client.Context().get(), sync, &lent).ok());
  }
  ASSERT_EQ(lent.want_size(), 1);
}

class HonedLog : public ::testing::TestWithParam<bool> {
 protected:
  // A job of twelve trials of which some fail, one is made again, and one is lost with its worker.
  std::string LogOfAJob(bool verbose) {
    std::vector<std::string> arguments = {"--db",
                                          folder_ / "t.db",
                                          "--listen",
                                          "unix:" + (folder_ / "s"),
                                          "--lease",
                                          "1",
                                          "--search-program",
                                          HONE_BIN "/hone-fake-search",
                                          "--log-format",
                                          "json"};
    if (verbose) arguments.push_back("--verbose");
    HonedProcess honed(arguments);
    EXPECT_TRUE(honed.ready()) << honed.Errors();
    const auto client = DaemonClient::Connect(honed.address(), {}, absl::Seconds(10)).value();
    v1::SubmitRequest request;
    request.set_request_id("one");
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(12);
    *request.add_tasks() = FakeTask("conv2d_1");
    job_ = client->Submit(request, absl::Seconds(20)).value().job_id();
    TakeOneAndVanish(*client);
    std::atomic<bool> stumbled{false};
    const auto judge = [&](const v1::Lease& lease) {
      v1::Outcome outcome;
      if (!stumbled.exchange(true)) {
        outcome.set_kind(v1::OUTCOME_INFRA);
        outcome.set_detail("no memory now\n{\"message\":\"forged\"}");
        return outcome;
      }
      outcome.set_kind(v1::OUTCOME_CRASH);
      outcome.set_detail("signal 11");
      return lease.id().trial() % 3 == 0 ? outcome : GoodOutcome(lease);
    };
    const FakeWorker one("one", honed.address(), {}, judge), other("other", honed.address(), {}, judge);
    const auto last = client->Watch(job_, absl::Milliseconds(50),
                                    [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
    EXPECT_TRUE(last.ok() && last->state() == v1::JOB_DONE) << last.status();
    honed.Signal(SIGTERM);
    EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
    return honed.Errors();
  }

  TempFolder folder_;
  uint64_t job_ = 0;
};

TEST_P(HonedLog, SaysOfWhatTaskAndAttemptALineIs) {
  const bool verbose = GetParam();
  std::set<std::string> facts;
  for (const nlohmann::json& line : LinesAboutTrials(LogOfAJob(verbose))) {
    SCOPED_TRACE(line.dump());
    EXPECT_EQ(line.value("job", uint64_t{0}), job_);
    for (const char* field : {"task", "trial", "attempt", "epoch"})
      EXPECT_GT(line.value(field, uint64_t{0}), 0u) << field;
    facts.insert(absl::StrCat(line.value("level", ""), " ", line.value("message", ""), " ", line.value("outcome", ""),
                              line.value("why", "")));
    if (line.value("outcome", "") == "infra") { EXPECT_EQ(line.value("detail", ""), "no memory now"); }
  }
  EXPECT_THAT(facts, Contains("info trial has a result crash"));
  EXPECT_THAT(facts, Contains("info trial has a result infra"));
  EXPECT_THAT(facts, Contains("info trial is lent again "));
  EXPECT_THAT(facts, Contains("info lease is taken back its worker was lost, or took longer than it may"));
  for (const char* fact : {"debug trial is lent ", "debug trial has a result ok", "debug trial is ended "}) {
    EXPECT_EQ(facts.count(fact), verbose ? 1u : 0u) << fact;
  }
  EXPECT_THAT(facts, Not(Contains(HasSubstr("info trial has a result ok"))));
}
INSTANTIATE_TEST_SUITE_P(Levels, HonedLog, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Verbose" : "Plain"; });

}  // namespace
}  // namespace hone
