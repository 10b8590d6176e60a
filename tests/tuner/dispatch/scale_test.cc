// The work after an event does not grow with the fleet: counted in jobs, workers and keys that a rule was applied to.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

// A fleet of that many workers and jobs, each job with a task of its own, all with work under way.
class Fleet {
 public:
  explicit Fleet(int size) : size_(size), desk_(DispatchOptions{.max_jobs = 10'000, .searches = 4}) {
    desk_.checks = false;
    for (int i = 0; i < size; ++i) desk_.Hello(Name(i));
    for (int i = 0; i < size; ++i) desk_.Submit({absl::StrCat("dense_", i)});
    for (int i = 0; i < size; ++i) Sync(i);
  }

  // The most that one call of a worker, one answer of a search, one submitted job and one moment of time cost, over a
  // while in which some workers report and ask for more.
  int64_t MostLookedAt() {
    int64_t most = 0;
    const auto count = [&](const auto& step) {
      const int64_t before = desk_.dispatcher->counters().looked_at;
      step();
      most = std::max(most, desk_.dispatcher->counters().looked_at - before);
    };
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < std::min(size_, 10); ++i) count([&] { Sync(i); });
      while (!desk_.searches.empty()) {
        const std::string name = absl::StrCat("candidate ", ++candidates_);
        count([&] { desk_.AnswerSearch({name, name + " a", name + " b", name + " c"}); });
      }
      count([&] { desk_.Wait(kSecond / 100); });
    }
    count([&] { desk_.Submit({"conv2d_1"}); });
    count([&] { desk_.dispatcher->Snapshot(1); });
    return most;
  }
  int64_t done() const { return done_; }

 private:
  static std::string Name(int i) { return absl::StrCat("worker ", i); }

  // Reports what it was lent by its last call and asks for two more.
  void Sync(int i) {
    v1::SyncRequest request = desk_.SyncOf(Name(i), 2);
    const auto call = calls_.find(i);
    if (call != calls_.end() && desk_.Answered(call->second)) {
      for (const v1::Lease& lease : desk_.SyncReplyTo(call->second).want()) {
        v1::TrialResult& result = *request.add_results();
        *result.mutable_id() = lease.id();
        *result.mutable_outcome() = Desk::Good(10 + static_cast<double>(lease.id().trial() % 7));
        ++done_;
      }
    }
    calls_[i] = desk_.Sync(request);
  }

  const int size_;
  Desk desk_;
  std::map<int, ReplyTo> calls_;
  int candidates_ = 0;
  int64_t done_ = 0;
};

TEST(Scale, TheWorkAfterAnEventDoesNotGrowWithTheFleet) {
  Fleet small(10), large(1000);
  const int64_t of_small = small.MostLookedAt(), of_large = large.MostLookedAt();
  EXPECT_GT(small.done(), 100) << "something went on";
  EXPECT_GT(large.done(), 100);
  RecordProperty("looked_at_10", static_cast<int>(of_small));
  RecordProperty("looked_at_1000", static_cast<int>(of_large));
  // Beyond what it touched an event looks at 16 jobs at most that may want candidates: see search_rules.cc.
  EXPECT_LE(of_large, of_small + 5 * 16) << "10 jobs and workers: " << of_small;
}

}  // namespace
}  // namespace hone
