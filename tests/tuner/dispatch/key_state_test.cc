// What plain times of a key are believed. The best takes 100 us; two workers measure the key.
#include "tuner/dispatch/state/key_state.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/search.pb.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::IsNull;
using testing::Pointee;
using testing::SizeIs;

std::string Told(const v1::SearchRequest& request, const std::string& trace) {
  std::string told;
  for (const v1::Observation& o : request.observations()) {
    if (o.trace() == trace) absl::StrAppend(&told, OutcomeName(o.kind()), " ", o.median_us(), ";");
  }
  return told;
}

SharedReporter Who(const std::string& principal, const std::string& worker) {
  return std::make_shared<const Reporter>(Reporter{.principal = principal, .worker = worker});
}

class Doubts : public ::testing::Test {
 protected:
  void SetUp() override {
    key_.Load({}, options_);
    Measure("a", "default", 100);
    key_.Crown("default", 7, 100);
    Measure("b", "slow", 99.8);
  }
  void Measure(const std::string& worker, const std::string& trace, double us) {
    key_.AddKnown(trace);
    key_.ObserveTime(trace, Who("", worker), us, 1, options_);
  }
  // What a search is told of a trace.
  std::string Told(const std::string& trace) { return ToldBy(key_, trace); }
  static std::string ToldBy(KeyState& key, const std::string& trace) {
    v1::SearchRequest request;
    key.log()->AddTo(&request, 0, key.observed());
    return hone::Told(request, trace);
  }

  const DispatchOptions options_;
  KeyState key_{TuningKey{}, 1};
};

TEST_F(Doubts, ATimeFarBelowAllOthersIsNotLearntFromUntilItsDuel) {
  Measure("a", "lie", 1);
  EXPECT_EQ(Told("lie"), "");
  ASSERT_THAT(key_.Challenger(options_.duel_margin), Pointee(std::string("lie")));
  key_.MarkDuelled("lie");
  key_.EndDoubt("lie", options_);
  EXPECT_EQ(Told("lie"), "invalid_timing 0;") << "it lost";
  EXPECT_EQ(key_.TimeOf("lie"), std::nullopt);
  EXPECT_THAT(key_.Challenger(options_.duel_margin), IsNull());
  Measure("b", "better", 90);
  EXPECT_EQ(key_.trials_since_gain(), 0) << "a gain is measured against what was believed";
}

TEST_F(Doubts, ATimeThatItsDuelBoreOutIsLearntFrom) {
  Measure("a", "true", 30);
  EXPECT_EQ(Told("true"), "");
  key_.Crown("true", 8, 31);
  key_.EndDoubt("true", options_);
  EXPECT_EQ(Told("true"), "ok 31;");
}

TEST_F(Doubts, AnotherWorkersTimesEndThem) {
  Measure("a", "fast", 30);
  Measure("a", "lie", 1);
  EXPECT_EQ(Told("fast"), "");
  Measure("b", "fast too", 35);
  EXPECT_EQ(Told("fast too"), "ok 35;") << "the other's bears it out as well";
  EXPECT_EQ(Told("fast"), "ok 30;");
  EXPECT_EQ(Told("lie"), "");
}

TEST_F(Doubts, ASecondNameOfOnePrincipalDoesNotEndThem) {
  const SharedReporter liar = Who("the liar's", "a"), second_name = Who("the liar's", "b");
  const SharedReporter another = Who("another's", "c");
  KeyState key(TuningKey{}, 2);
  key.Load({}, options_);
  key.ObserveTime("default", another, 100, 1, options_);
  key.Crown("default", 7, 100);
  key.ObserveTime("lie", liar, 1, 1, options_);
  key.ObserveTime("lie too", second_name, 1.1, 1, options_);
  EXPECT_EQ(ToldBy(key, "lie") + ToldBy(key, "lie too"), "");
  key.ObserveTime("true", another, 1.2, 1, options_);
  EXPECT_EQ(ToldBy(key, "lie"), "ok 1;") << "it was none";
}

TEST_F(Doubts, OfAFleetThatSharesATokenAreEndedByAnotherWorker) {
  const SharedReporter a = Who("the fleet's", "a"), b = Who("the fleet's", "b");
  KeyState key(TuningKey{}, 2);
  key.Load({}, options_);
  key.ObserveTime("default", a, 100, 1, options_);
  key.Crown("default", 7, 100);
  key.ObserveTime("slow", b, 99, 1, options_);
  key.ObserveTime("fast", a, 30, 1, options_);
  EXPECT_EQ(ToldBy(key, "fast"), "");
  key.ObserveTime("fast too", b, 35, 1, options_);
  EXPECT_EQ(ToldBy(key, "fast"), "ok 30;");
}

TEST_F(Doubts, TheNewChampionEndsThoseOfTimesNearIt) {
  Measure("a", "fast", 30);
  Measure("a", "faster", 25);
  key_.Crown("faster", 8, 25);
  key_.EndDoubt("faster", options_);
  key_.EndDoubts(options_);
  EXPECT_EQ(Told("fast"), "ok 30;");
}

TEST_F(Doubts, ALoneWorkerIsBelieved) {
  KeyState alone(TuningKey{}, 2);
  alone.Load({}, options_);
  alone.ObserveTime("default", Who("", "a"), 100, 1, options_);
  alone.Crown("default", 7, 100);
  alone.ObserveTime("fast", Who("", "a"), 10, 1, options_);
  EXPECT_EQ(ToldBy(alone, "fast"), "ok 10;");
}

TEST_F(Doubts, OutliveTheDaemon) {
  KeyState restored(TuningKey{}, 2);
  restored.Load({.trials = {{.trace = "default", .median_us = 100},
                            {.trace = "near", .median_us = 60},
                            {.trace = "lost its duel", .median_us = 1},
                            {.trace = "had none", .median_us = 2}},
                 .best_record = 7,
                 .best_trace = "default",
                 .best_us = 100,
                 .duelled = {"default", "lost its duel"}},
                options_);
  EXPECT_EQ(ToldBy(restored, "near"), "ok 60;");
  EXPECT_EQ(ToldBy(restored, "lost its duel"), "invalid_timing 0;");
  EXPECT_EQ(ToldBy(restored, "had none"), "");
  EXPECT_THAT(restored.Challenger(options_.duel_margin), Pointee(std::string("had none")));
}

TEST(PlainTimes, ALieMakesNoBestAndMisleadsNoSearch) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(100));
  desk.AnswerSearch({"slow"});
  desk.Report("b", desk.Take("b", 1).at(0), Desk::Good(110));
  desk.AnswerSearch({"lie"});
  const auto lie = desk.Take("a", 1);
  ASSERT_THAT(lie, SizeIs(1));
  desk.Report("a", lie[0], Desk::Good(1));
  EXPECT_EQ(desk.store.best().begin()->second.second, 100);
  EXPECT_EQ(Told(desk.searches.back(), "lie"), "");
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0)) << "it does not judge itself";
  desk.Take("a", 0);
  const auto duel = desk.Take("b", 1);
  ASSERT_THAT(duel, SizeIs(1));
  ASSERT_TRUE(duel[0].duel());
  v1::Outcome outcome = Desk::Good(120);
  outcome.set_duel_ratio(1.2);
  desk.Report("b", duel[0], outcome);
  EXPECT_EQ(desk.store.best().begin()->second.second, 100);
  desk.AnswerSearch({"next"});
  desk.Report("b", desk.Take("b", 1).at(0), Desk::Good(105));
  EXPECT_EQ(Told(desk.searches.back(), "lie"), "invalid_timing 0;");
}

}  // namespace
}  // namespace hone
