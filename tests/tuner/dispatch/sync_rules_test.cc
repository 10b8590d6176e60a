// Workers' calls: when they are answered, and what an answer says again. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using ::testing::SizeIs;

TEST(Leases, AQuietWindowIsGranted) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  v1::SyncRequest request = desk.SyncOf("a");
  *request.add_held()->mutable_id() = leases[0].id();
  request.set_quiet_ms(60'000);
  desk.Sync(request);
  desk.Wait(80 * kSecond);
  EXPECT_FALSE(desk.SyncReplyTo(desk.Sync(desk.SyncOf("a"))).unknown_session());
}

// Timings are taken meanwhile: an answer, and what it makes the worker do, would be in them.
TEST(Leases, NothingIsSaidInAQuietWindow) {
  for (const bool ends_early : {false, true}) {
    Desk desk({.sync_hold_ms = 5'000, .confirm_first = false});
    desk.Hello("a");
    desk.Submit({"conv2d_1"});
    const auto leases = desk.Take("a", 1);
    v1::SyncRequest request = desk.SyncOf("a", 4);
    *request.add_held()->mutable_id() = leases[0].id();
    request.set_quiet_ms(20'000);
    const ReplyTo measuring = desk.Sync(request);
    desk.AnswerSearch({"t1"});
    desk.Wait(15 * kSecond);
    EXPECT_FALSE(desk.Answered(measuring)) << "neither with news nor when it was held for long";
    EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "busy");
    EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].leases(), 1) << "others may have what waits";
    if (ends_early) {
      request.set_seq(desk.SyncOf("a").seq());
      request.set_quiet_ms(0);
      const ReplyTo done = desk.Sync(request);
      EXPECT_TRUE(desk.Answered(measuring));
      ASSERT_TRUE(desk.Answered(done));
      EXPECT_EQ(desk.SyncReplyTo(done).want_size(), 1);
    } else {
      desk.Wait(5 * kSecond);
      ASSERT_TRUE(desk.Answered(measuring));
      EXPECT_LE(desk.SyncReplyTo(measuring).want_size(), 1);
      EXPECT_THAT(desk.Take("a", 4, leases), SizeIs(1)) << "what waited for it";
    }
  }
}

TEST(Leases, AQuietWindowHoldsUpADrainAndNotTheEnd) {
  Desk desk;
  desk.Hello("a");
  v1::SyncRequest request = desk.SyncOf("a");
  request.set_quiet_ms(20'000);
  const ReplyTo measuring = desk.Sync(request);
  desk.Do(DrainWorkers{.to = desk.NewCall(), .name = "a"});
  EXPECT_FALSE(desk.Answered(measuring));
  desk.Do(ShutDown{});
  EXPECT_TRUE(desk.Answered(measuring));
}

TEST(Leases, ALostAnswerIsSaidAgain) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1", "dense_2"});
  const auto lost = desk.Take("a", 2);
  const auto again = desk.Take("a", 2);
  ASSERT_THAT(again, SizeIs(2)) << "and no others beside them";
  EXPECT_EQ(again[0].id().trial(), lost[0].id().trial());
  EXPECT_EQ(again[0].id().attempt(), 1u);
}

TEST(Leases, ANewerSyncReleasesTheOlder) {
  Desk desk;
  desk.Hello("a");
  const v1::SyncRequest older = desk.SyncOf("a");
  const ReplyTo first = desk.Sync(older);
  EXPECT_FALSE(desk.Answered(first));
  const ReplyTo second = desk.Sync(desk.SyncOf("a"));
  EXPECT_TRUE(desk.Answered(first));
  EXPECT_FALSE(desk.Answered(second));
  EXPECT_TRUE(desk.Answered(desk.Sync(older))) << "one that arrives late is answered at once";
  EXPECT_FALSE(desk.Answered(second));
  desk.Wait(10 * kSecond);
  EXPECT_TRUE(desk.Answered(second)) << "no Sync is held longer than promised";
}

TEST(ShuttingDown, TellsTheWorkers) {
  Desk desk;
  desk.Hello("w");
  const ReplyTo held = desk.Sync(desk.SyncOf("w"));
  desk.Do(ShutDown{});
  ASSERT_TRUE(desk.Answered(held));
  EXPECT_TRUE(desk.SyncReplyTo(held).shut_down());
}

}  // namespace
}  // namespace hone
