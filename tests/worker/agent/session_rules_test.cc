// What a session says, when, and what it makes of the answers: a call at a time. Hours of it, over a network that
// fails, are played by the dispatcher's simulation.
#include "worker/agent/session/session_rules.h"

#include "gtest/gtest.h"
#include "worker/agent/session/work_queue.h"

namespace hone {
namespace {

v1::SyncReply Wanting(uint64_t trial) {
  v1::SyncReply reply;
  v1::LeaseId& id = *reply.add_want()->mutable_id();
  id.set_trial(trial);
  id.set_attempt(1);
  return reply;
}

class SessionRulesTest : public ::testing::Test {
 protected:
  explicit SessionRulesTest(SessionOptions options = {.name = "w", .name_key = "key"})
      : rules_(std::move(options), std::string(16, '\x0a'), queue_, now_) {}

  template <class Step>
  std::optional<Step> Next() {
    const SessionStep step = rules_.Next(now_, stop_);
    const Step* wanted = std::get_if<Step>(&step);
    EXPECT_NE(wanted, nullptr) << "step " << step.index();
    return wanted == nullptr ? std::nullopt : std::optional<Step>(*wanted);
  }
  void Greet() {
    ASSERT_TRUE(Next<SayHello>());
    v1::HelloReply reply;
    reply.set_sync_hold_ms(10'000);
    rules_.HelloAnswered(now_, reply);
  }
  uint64_t Sync() {
    const std::optional<SaySync> sync = Next<SaySync>();
    return sync.has_value() ? sync->call : 0;
  }
  void Answer(uint64_t call, absl::StatusOr<v1::SyncReply> reply) { rules_.SyncAnswered(now_, call, std::move(reply)); }
  void FinishATrial() {
    const std::vector<v1::Lease> leases = queue_.Take(1);
    ASSERT_EQ(leases.size(), 1u);
    queue_.Finish(leases[0].id(), {});
  }
  // The pause between two results of one batch.
  void Coalesce() {
    const std::optional<Pause> pause = Next<Pause>();
    if (pause.has_value()) now_ += pause->time;
  }

  absl::Time now_ = absl::UnixEpoch();
  bool stop_ = false;
  WorkQueue queue_;
  SessionRules rules_;
};

TEST_F(SessionRulesTest, HelloIsSaidAgainAfterLongerAndLongerPauses) {
  for (const int ms : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    ASSERT_TRUE(Next<SayHello>());
    rules_.HelloAnswered(now_, absl::UnavailableError("nobody is there"));
    const std::optional<Pause> pause = Next<Pause>();
    ASSERT_TRUE(pause);
    EXPECT_EQ(pause->time, absl::Milliseconds(ms));
    now_ += pause->time;
  }
  Greet();
  Answer(Sync(), absl::UnavailableError("it is gone"));
  ASSERT_TRUE(Next<SayHello>()) << "at once";
  rules_.HelloAnswered(now_, absl::UnavailableError("it is gone"));
  EXPECT_EQ(Next<Pause>()->time, absl::Milliseconds(100));
}

TEST_F(SessionRulesTest, ARefusalEndsIt) {
  ASSERT_TRUE(Next<SayHello>());
  rules_.HelloAnswered(now_, absl::PermissionDeniedError("not with this token"));
  EXPECT_TRUE(absl::IsPermissionDenied(Next<EndSession>()->status));
}

TEST_F(SessionRulesTest, ANameThatIsTakenIsMadeAnother) {
  EXPECT_EQ(Next<SayHello>()->request.worker_name(), "w");
  rules_.HelloAnswered(now_, absl::AlreadyExistsError("another worker has the name w"));
  now_ += absl::Seconds(1);
  EXPECT_EQ(Next<SayHello>()->request.worker_name(), "w-0a");
}

TEST_F(SessionRulesTest, AResultIsToldWhileACallIsHeldAndByOneMoreCallAlone) {
  Greet();
  Answer(Sync(), Wanting(1));
  const uint64_t held = Sync();
  EXPECT_EQ(Next<WaitForNews>()->at_most, absl::Seconds(1));
  FinishATrial();
  Coalesce();
  const std::optional<SaySync> second = Next<SaySync>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->request->results_size(), 1);
  v1::SyncReply more = Wanting(2);
  Answer(held, more);
  FinishATrial();
  Coalesce();
  const uint64_t third = Sync();
  EXPECT_NE(third, 0u);
  queue_.Apply({}, Wanting(3));
  FinishATrial();
  EXPECT_TRUE(Next<WaitForNews>()) << "two calls are out";
  Answer(second->call, v1::SyncReply());
  Coalesce();
  EXPECT_TRUE(Next<SaySync>());
}

TEST_F(SessionRulesTest, AnswersAreFollowedInTheOrderOfTheCalls) {
  Greet();
  Answer(Sync(), Wanting(1));
  const uint64_t first = Sync();
  FinishATrial();
  Coalesce();
  const uint64_t second = Sync();
  Answer(second, Wanting(3));
  EXPECT_FALSE(queue_.HasLeases()) << "the first answer is still on its way";
  Answer(first, Wanting(2));
  const std::vector<v1::Lease> leases = queue_.Take(2);
  ASSERT_EQ(leases.size(), 2u);
  EXPECT_EQ(leases[0].id().trial(), 2u);
}

TEST_F(SessionRulesTest, TheSecondAnswerOfACallCountsForNothing) {
  Greet();
  const uint64_t call = Sync();
  Answer(call, Wanting(1));
  Answer(call, absl::UnavailableError("too late"));
  EXPECT_NE(Sync(), 0u) << "it is greeted still";
}

TEST_F(SessionRulesTest, AnUnknownSessionIsGreetedAgainAndTellsItsResults) {
  Greet();
  Answer(Sync(), Wanting(1));
  const uint64_t call = Sync();
  FinishATrial();
  queue_.Apply({}, Wanting(2));
  v1::SyncReply unknown;
  unknown.set_unknown_session(true);
  Answer(call, unknown);
  Greet();
  const std::optional<SaySync> sync = Next<SaySync>();
  ASSERT_TRUE(sync);
  EXPECT_EQ(sync->request->results_size(), 1);
  EXPECT_EQ(sync->request->held_size(), 0) << "nobody worked on it";
}

TEST_F(SessionRulesTest, ADrainEndsWhenNothingIsLeftAndTheDaemonWasTold) {
  Greet();
  Answer(Sync(), Wanting(1));
  const uint64_t held = Sync();
  const std::vector<v1::Lease> leases = queue_.Take(1);
  ASSERT_EQ(leases.size(), 1u);
  stop_ = true;
  const std::optional<SaySync> draining = Next<SaySync>();
  ASSERT_TRUE(draining);
  EXPECT_TRUE(draining->request->draining());
  EXPECT_EQ(draining->request->credits(), 0u);
  Answer(held, v1::SyncReply());
  Answer(draining->call, v1::SyncReply());
  queue_.Finish(leases[0].id(), {});
  const std::optional<SaySync> last = Next<SaySync>();
  ASSERT_TRUE(last);
  ASSERT_EQ(last->request->results_size(), 1);
  v1::SyncReply taken;
  *taken.add_acked() = last->request->results(0).id();
  Answer(last->call, taken);
  EXPECT_TRUE(Next<EndSession>()->status.ok());
}

TEST_F(SessionRulesTest, WhatIsUnderWorkAfterTheDrainLimitGoesBack) {
  Greet();
  Answer(Sync(), Wanting(1));
  ASSERT_EQ(queue_.Take(1).size(), 1u);
  stop_ = true;
  EXPECT_EQ(Next<SaySync>()->request->given_back_size(), 0);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Next<SaySync>()->request->given_back_size(), 1);
  now_ += absl::Seconds(10);
  EXPECT_TRUE(Next<EndSession>()->status.ok()) << "a daemon that hangs is not waited for";
}

class SessionOfAPrivateDaemon : public SessionRulesTest {
 protected:
  SessionOfAPrivateDaemon() : SessionRulesTest({.name = "w", .exit_with_daemon = true}) {}
};

TEST_F(SessionOfAPrivateDaemon, EndsTenSecondsAfterIt) {
  Greet();
  Answer(Sync(), absl::UnavailableError("it is gone"));
  const absl::Time gone = now_;
  for (;;) {
    const SessionStep step = rules_.Next(now_, stop_);
    if (std::holds_alternative<SayHello>(step)) {
      rules_.HelloAnswered(now_, absl::UnavailableError("it is gone"));
    } else if (const Pause* pause = std::get_if<Pause>(&step)) {
      now_ += pause->time;
    } else {
      ASSERT_TRUE(std::holds_alternative<EndSession>(step));
      EXPECT_TRUE(absl::IsUnavailable(std::get<EndSession>(step).status));
      break;
    }
  }
  EXPECT_GT(now_ - gone, absl::Seconds(10));
  EXPECT_LT(now_ - gone, absl::Seconds(20));
}

}  // namespace
}  // namespace hone
