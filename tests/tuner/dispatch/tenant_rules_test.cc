// What tenants share, and how: workers that serve every one, by weight.
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const Tenant kAir = TenantOf("air"), kWater = TenantOf("water");

// A worker of everybody's, and jobs of two tenants that never run out of candidates.
class Shared {
 public:
  explicit Shared(std::map<uint64_t, double> weights = {})
      : desk_(DispatchOptions{.tenant_weights = std::move(weights), .searches = 8, .confirm_first = false}) {
    desk_.worker_tenant = kAllTenants;
    desk_.Hello("w");
  }
  uint64_t Submit(const Tenant& tenant) {
    desk_.tenant = tenant;
    const uint64_t job = desk_.Submit({absl::StrCat("conv2d_", ++names_)});
    tenant_of_[job] = tenant.id;
    return job;
  }
  // Device seconds of each tenant over so many trials, a tenth of a second each.
  std::map<uint64_t, int> Measure(int trials) {
    std::map<uint64_t, int> of_tenant;
    for (int i = 0; i < trials; ++i) {
      while (!desk_.searches.empty()) desk_.AnswerSearch(Candidates());
      const std::vector<v1::Lease> leases = desk_.Take("w", 1);
      if (leases.empty()) continue;
      ++of_tenant[tenant_of_.at(desk_.dispatcher->JobOfTask(leases[0].task()))];
      EXPECT_TRUE(desk_.Report("w", leases[0], Desk::Good(10)));
    }
    return of_tenant;
  }
  Desk& desk() { return desk_; }

 private:
  std::vector<std::string> Candidates() {
    std::vector<std::string> traces;
    for (int i = 0; i < 16; ++i) traces.push_back(absl::StrCat("candidate ", ++candidates_));
    return traces;
  }

  Desk desk_;
  int names_ = 0, candidates_ = 0;
  std::map<uint64_t, uint64_t> tenant_of_;  // by job
};

TEST(Tenants, ShareByWeight) {
  Shared shared({{kAir.id, 3}});
  shared.Submit(kAir);
  shared.Submit(kWater);
  std::map<uint64_t, int> trials = shared.Measure(80);
  EXPECT_NEAR(trials[kAir.id], 60, 3);
  EXPECT_NEAR(trials[kWater.id], 20, 3);
}

TEST(Tenants, GetNoMoreForMoreJobs) {
  Shared shared;
  shared.Submit(kAir);
  for (int i = 0; i < 5; ++i) shared.Submit(kWater);
  std::map<uint64_t, int> trials = shared.Measure(60);
  EXPECT_NEAR(trials[kAir.id], 30, 3);
  EXPECT_NEAR(trials[kWater.id], 30, 3);
}

TEST(Tenants, ThatComeLateStartLevel) {
  Shared shared;
  shared.Submit(kAir);
  shared.Measure(60);
  shared.Submit(kWater);
  std::map<uint64_t, int> trials = shared.Measure(40);
  EXPECT_NEAR(trials[kAir.id], 20, 3);
}

TEST(Tenants, SeeWorkersThatServeEveryOne) {
  Shared shared;
  EXPECT_THAT(shared.desk().dispatcher->Workers(kAir.id, 0), SizeIs(1));
  const uint64_t job = shared.Submit(kAir);
  EXPECT_EQ(shared.desk().Job(job).state(), v1::JOB_RUNNING);
  EXPECT_EQ(shared.desk().Job(job).workers(), 1);
  EXPECT_EQ(shared.desk().dispatcher->Explain(job).workers(0).misfit(), "");
}

TEST(Tenants, ThatHaveTheDatabaseAloneDrainThem) {
  Shared shared;
  Desk& desk = shared.desk();
  const auto drained = [&](uint64_t tenant) {
    const ReplyTo to = desk.NewCall();
    desk.Do(DrainWorkers{to, "*", tenant});
    return std::get<v1::ListWorkersReply>(desk.replies.at(to)).workers_size();
  };
  EXPECT_EQ(drained(kAir.id), 0);
  EXPECT_EQ(drained(kLocalTenant), 1);
}

TEST(Tenants, HaveWorkersOfTheirOwn) {
  Desk desk;
  desk.worker_tenant = kWater.id;
  desk.Hello("w");
  desk.tenant = kAir;
  const uint64_t job = desk.Submit({"conv2d_1"});
  EXPECT_THAT(desk.Take("w", 4), IsEmpty());
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NO_WORKER);
}

}  // namespace
}  // namespace hone
