// Workers that say hello: what is taken, and whose a name is. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"
#include "tuner/dispatch/state/lost_names.h"

namespace hone {
namespace {

using ::testing::SizeIs;

TEST(Leases, TwoLivingWorkersMayHaveOneName) {
  Desk desk;
  desk.Hello("a", 2, "one");
  desk.Sync(desk.SyncOf("one"));
  desk.Hello("a", 2, "two");
  desk.Sync(desk.SyncOf("two"));
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(2));
}

TEST(Workers, ANameIsNotTakenFromWhoLives) {
  Desk desk;
  desk.Hello("a", 2, "true");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("true", 1);
  for (const char* key : {"", "a guess"}) {
    const ReplyTo refused = desk.Hello("a", 2, "false", 0, key);
    const Refusal* refusal = std::get_if<Refusal>(&desk.replies.at(refused));
    ASSERT_NE(refusal, nullptr) << key;
    EXPECT_EQ(refusal->code, static_cast<int>(absl::StatusCode::kAlreadyExists));
    EXPECT_THAT(refusal->message, testing::HasSubstr("another worker has the name a and was heard of 0 s ago"));
  }
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1));
  EXPECT_TRUE(desk.Report("true", leases[0], Desk::Good(7))) << "its leases stayed its own";
  desk.Hello("a", 2, "restarted");
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1)) << "who has the key takes its own name over";
  desk.Wait(31 * kSecond);
  EXPECT_TRUE(std::holds_alternative<v1::HelloReply>(desk.replies.at(desk.Hello("a", 2, "false", 0, "a guess"))))
      << "a lost worker's name is free for all of its principal";
}

TEST(Workers, ALostNameStaysItsPrincipals) {
  Desk desk;
  const auto may_be_a = [&](const std::string& principal, const std::string& name_key) {
    desk.principal = principal;
    const ReplyTo to = desk.Hello("a", 2, absl::StrCat("session ", desk.NewCall()), 0, name_key);
    return std::holds_alternative<v1::HelloReply>(desk.replies.at(to));
  };
  const Micros lost = Micros{DispatchOptions().lease_ms} * 1000 + kSecond;
  ASSERT_TRUE(may_be_a("its own", "its host's"));
  desk.Wait(lost);
  EXPECT_FALSE(may_be_a("somebody else", ""));
  EXPECT_FALSE(may_be_a("somebody else", "a guess"));
  EXPECT_TRUE(may_be_a("its own", "another host's"));
  desk.Wait(lost);
  EXPECT_TRUE(may_be_a("its own of tomorrow", "another host's")) << "a host whose token is a new one";
  desk.Wait(lost);
  EXPECT_FALSE(may_be_a("its own", "its host's"));
  desk.Wait(kLostNameStays - 2 * kSecond);
  EXPECT_FALSE(may_be_a("its own", "its host's"));
  desk.Wait(2 * kSecond);
  EXPECT_TRUE(may_be_a("its own", "its host's"));
}

TEST(Workers, OfAnotherVersionAreRefused) {
  Desk desk;
  v1::HelloRequest request;
  request.set_worker_name("w");
  request.set_session("s");
  request.mutable_profile()->set_device_class("fake/c2");
  request.mutable_version()->set_min(3);
  request.mutable_version()->set_max(4);
  desk.Do(Hello{1, request});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(1)).code, static_cast<int>(absl::StatusCode::kUnimplemented));
  request.clear_version();
  request.clear_session();
  desk.Do(Hello{2, request});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(2)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

// What a store could not index would end the daemon.
TEST(Names, ThatNoIndexTakesAreRefused) {
  Desk desk;
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("s");
  hello.mutable_profile()->set_device_class(std::string(kLongestName + 1, 'x'));
  desk.Do(Hello{1, hello});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(1)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  hello.mutable_profile()->set_device_class("fake/c2");
  hello.set_worker_name("w\nx");  // what is stored of a worker has lines
  desk.Do(Hello{3, hello});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(3)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  v1::KeepChoicesRequest choices;
  choices.set_model_hash(std::string(kLongestName + 1, 'x'));
  desk.Do(KeepChoices{2, choices});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(2)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

// It is shown to others, beside what all workers say.
TEST(Workers, SayNoMoreThanAMessageHolds) {
  Desk desk;
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("s");
  hello.mutable_profile()->set_device_class("fake/c2");
  for (int i = 0; i < 1000; ++i) hello.add_missing_layers("a layer that nobody knows");
  const ReplyTo to = desk.NewCall();
  desk.Do(Hello{to, hello});
  EXPECT_THAT(std::get<Refusal>(desk.replies.at(to)).message, testing::HasSubstr("and 24576 are allowed"));
  desk.Hello("w");
  v1::SyncRequest request = desk.SyncOf("w");
  request.set_waiting_for(std::string(1023, 'w') + "\u20ac" + std::string(1 << 20, 'w'));
  desk.Sync(request);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].waiting_for(), std::string(1023, 'w'));
}

// Its name is in what users are told of jobs that wait.
TEST(Sessions, HaveOneName) {
  Desk desk;
  desk.Hello("w", 2, "session");
  const ReplyTo renamed = desk.Hello("other", 2, "session");
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(renamed)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(std::holds_alternative<v1::HelloReply>(desk.replies.at(desk.Hello("w", 4, "session"))));
  ASSERT_EQ(desk.dispatcher->Workers(kLocalTenant, 0).size(), 1u);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, 0)[0].name(), "w");
}

}  // namespace
}  // namespace hone
