// The work after an event does not grow with the fleet: counted in jobs, workers and keys that a rule was applied to.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

struct Size {
  int workers = 10, jobs = 10, tenants = 1;
  int tasks = 1;  // of each job
};

// A fleet whose workers serve every tenant, jobs with tasks of their own, and work under way.
class Fleet {
 public:
  explicit Fleet(const Size& size) : workers_(size.workers), desk_(DispatchOptions{.max_jobs = 10'000, .searches = 4}) {
    desk_.checks = false;
    desk_.worker_tenant = kAllTenants;
    for (int i = 0; i < size.workers; ++i) desk_.Hello(Name(i));
    for (int i = 0; i < size.jobs; ++i) {
      const int whose = i % size.tenants;
      desk_.tenant = TenantOf(whose == 0 ? "local" : absl::StrCat("tenant", whose));
      std::vector<std::string> tasks;
      for (int task = 0; task < size.tasks; ++task) tasks.push_back(absl::StrCat("dense_", i, "_", task));
      desk_.Submit(tasks);
    }
    for (int i = 0; i < size.workers; ++i) Sync(i);
  }

  // The most that one call of a worker, one answer of a search, one submitted job and one moment of time cost, over a
  // while in which some workers report and ask for more; of those that asked a search for candidates, and of others.
  struct Most {
    int64_t asking = 0, others = 0;
  };
  Most MostLookedAt() {
    Most most;
    const auto count = [&](const auto& step) {
      const int64_t before = desk_.dispatcher->counters().looked_at;
      const uint64_t latest = LatestSearch();
      step();
      int64_t& of_kind = LatestSearch() > latest ? most.asking : most.others;
      of_kind = std::max(of_kind, desk_.dispatcher->counters().looked_at - before);
    };
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < std::min(workers_, 10); ++i) count([&] { Sync(i); });
      while (!desk_.searches.empty()) {
        const std::string name = absl::StrCat("candidate ", ++candidates_);
        count([&] { desk_.AnswerSearch({name, name + " a", name + " b", name + " c"}); });
      }
      count([&] { desk_.Wait(kSecond / 100); });
    }
    uint64_t job = 0;
    count([&] { job = desk_.Submit({"conv2d_1"}); });
    count([&] { desk_.dispatcher->Snapshot(job); });
    return most;
  }
  int64_t done() const { return done_; }

 private:
  uint64_t LatestSearch() const { return desk_.searches.empty() ? 0 : desk_.searches.back().request_id(); }

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

  const int workers_;
  Desk desk_;
  std::map<int, ReplyTo> calls_;
  int candidates_ = 0;
  int64_t done_ = 0;
};

// Beyond what it touched an event looks at 16 jobs at most that may want candidates: see search_rules.cc.
constexpr int64_t kLookedAtToAsk = 5 * 16;

TEST(Scale, TheWorkAfterAnEventDoesNotGrowWithTheFleet) {
  Fleet small(Size{});
  const Fleet::Most of_small = small.MostLookedAt();
  EXPECT_GT(small.done(), 100) << "something went on";
  const int64_t most = std::max(of_small.asking, of_small.others) + kLookedAtToAsk;
  for (const Size& size : {Size{.workers = 1000, .jobs = 1000}, Size{.jobs = 1000, .tenants = 1000}}) {
    Fleet large(size);
    const Fleet::Most of_large = large.MostLookedAt();
    EXPECT_GT(large.done(), 100);
    EXPECT_LE(of_large.asking, most) << size.tenants << " tenants";
    EXPECT_LE(of_large.others, most) << size.tenants << " tenants";
  }
}

// Which of a job's tasks is searched next is chosen among all of them, once for each batch of candidates; nothing else
// that happens looks at the others.
TEST(Scale, TheTasksOfAJobAreLookedAtWhereASearchIsAskedForAlone) {
  constexpr int kTasks = 300;
  Fleet small(Size{}), large(Size{.jobs = 1, .tasks = kTasks});
  const Fleet::Most of_small = small.MostLookedAt(), of_large = large.MostLookedAt();
  EXPECT_GT(large.done(), 100);
  EXPECT_LE(of_large.others, of_small.others + kLookedAtToAsk);
  EXPECT_GT(of_large.asking, kTasks);
  // What is queued, what each task has gained, whose champions are told (siblings' and those of the same kind), and
  // which task goes on.
  EXPECT_LE(of_large.asking, of_small.asking + kLookedAtToAsk + 5 * kTasks);
}

}  // namespace
}  // namespace hone
