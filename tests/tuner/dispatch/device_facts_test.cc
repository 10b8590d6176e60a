#include "tuner/dispatch/state/device_facts.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"
#include "tuner/dispatch/events/reporter.h"

namespace hone {
namespace {

// With four cores and as many threads, whose all reach thrice what one does.
v1::DeviceProbe ProbeOf(const std::string& worker, double gflops_1, double gbps_1 = 10) {
  v1::DeviceProbe probe;
  probe.set_tenant(kLocalTenant);
  probe.set_worker(worker);
  probe.set_threads(4);
  v1::DeviceProfile& profile = *probe.mutable_profile();
  profile.set_device_class("fake/c4");
  profile.set_target("cpu:fake");
  profile.set_machine("as " + worker + " has it");
  profile.set_cores(4);
  profile.set_l1d_bytes(32768);
  profile.set_peak_gflops_1(gflops_1);
  profile.set_peak_gflops_all(3 * gflops_1);
  for (const double times : {8, 4, 2, 1}) {
    profile.add_moved_gbps_1(times * gbps_1);
    profile.add_moved_gbps_all(3 * times * gbps_1);
  }
  return probe;
}

v1::DeviceProfile After(const std::vector<v1::DeviceProbe>& probes) {
  v1::DeviceProfile facts;
  for (const v1::DeviceProbe& probe : probes) facts = AfterProbe(facts, probe);
  return facts;
}

TEST(DeviceFacts, ALoneWorkersOwnAreItsBest) {
  v1::DeviceProbe busy = ProbeOf("a", 60, 12);
  busy.mutable_profile()->set_machine("when busy");
  busy.mutable_profile()->set_target("cpu:fake,new");
  for (const auto& probes : {std::vector{ProbeOf("a", 100), busy}, std::vector{busy, ProbeOf("a", 100)}}) {
    const v1::DeviceProfile facts = After(probes);
    EXPECT_EQ(facts.agreed_by(), 1);
    EXPECT_EQ(facts.probes_size(), 1);
    EXPECT_EQ(facts.peak_gflops_1(), 100);
    EXPECT_EQ(facts.peak_gflops_all(), 300);
    EXPECT_EQ(facts.moved_gbps_1(0), 96);
    EXPECT_EQ(facts.memory_gbps(), 36);
    EXPECT_EQ(facts.machine(), "as a has it") << "of the quieter probe";
    EXPECT_EQ(facts.target(), probes.back().profile().target()) << "of the latest";
  }
}

TEST(DeviceFacts, AreTheHighestThatASecondWorkerBearsOut) {
  v1::DeviceProfile facts = After({ProbeOf("a", 60), ProbeOf("b", 100)});
  EXPECT_EQ(facts.peak_gflops_1(), 60) << "nobody bears the other out: who came first";
  EXPECT_EQ(facts.agreed_by(), 1);
  facts = AfterProbe(facts, ProbeOf("c", 90));
  EXPECT_EQ(facts.peak_gflops_1(), 100);
  EXPECT_EQ(facts.peak_gflops_all(), 300);
  EXPECT_EQ(facts.machine(), "as b has it") << "the first that is as fast";
  EXPECT_EQ(facts.agreed_by(), 2);
  EXPECT_EQ(AfterProbe(facts, ProbeOf("d", 80)).agreed_by(), 3);
}

// Claims too high make every time plausible, claims too low make true ones implausible, and caches beyond measure hold
// all bytes.
TEST(DeviceFacts, OneLiarChangesNothing) {
  const v1::DeviceProfile honest = After({ProbeOf("a", 100), ProbeOf("b", 95)});
  for (const double claim : {1e6, 140.0, 1.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    v1::DeviceProbe liar = ProbeOf("liar", claim, claim);
    liar.mutable_profile()->set_l1d_bytes(int64_t{1} << 40);
    liar.set_threads(1 << 20);
    for (const char* name : {"liar", "a"}) {  // beside them, or in the place of one
      liar.set_worker(name);
      const v1::DeviceProfile facts = AfterProbe(honest, liar);
      EXPECT_EQ(facts.peak_gflops_1(), 100) << claim << name;
      EXPECT_LE(facts.peak_gflops_all(), 400) << claim << name;
      EXPECT_LE(facts.moved_gbps_all(3), 40) << claim << name;
      EXPECT_EQ(facts.l1d_bytes(), 32768) << claim << name;
      EXPECT_NE(facts.machine(), "as liar has it") << claim << name;
    }
  }
}

v1::DeviceProbe ProbeOfPrincipal(const std::string& principal, const std::string& worker, double gflops_1) {
  v1::DeviceProbe probe = ProbeOf(worker, gflops_1);
  probe.set_worker(ToText(Reporter{.principal = principal, .worker = worker}));
  return probe;
}

TEST(DeviceFacts, SeveralNamesOfOnePrincipalAreOneWitness) {
  std::vector<v1::DeviceProbe> probes = {ProbeOfPrincipal("honest", "a", 100)};
  for (const char* name : {"b", "c", "d"}) {
    probes.push_back(ProbeOfPrincipal("liar", name, 1e6));
    probes.back().mutable_profile()->set_l1d_bytes(int64_t{1} << 40);
  }
  v1::DeviceProfile facts = After(probes);
  EXPECT_EQ(facts.peak_gflops_1(), 100);
  EXPECT_EQ(facts.l1d_bytes(), 32768);
  EXPECT_EQ(facts.agreed_by(), 1);
  // The liar was there first.
  facts = After({probes[1], probes[2], probes[0]});
  EXPECT_EQ(facts.agreed_by(), 1) << "nobody else bears it out any more";
  facts = AfterProbe(facts, ProbeOfPrincipal("honest too", "e", 95));
  EXPECT_EQ(facts.peak_gflops_1(), 100);
  EXPECT_EQ(facts.agreed_by(), 2);
}

TEST(DeviceFacts, OfAFleetThatSharesATokenAreAgreedByItsWorkers) {
  const v1::DeviceProfile facts = After(
      {ProbeOfPrincipal("fleet", "a", 60), ProbeOfPrincipal("fleet", "b", 100), ProbeOfPrincipal("fleet", "c", 95)});
  EXPECT_EQ(facts.peak_gflops_1(), 100);
  EXPECT_EQ(facts.agreed_by(), 2);
}

TEST(DeviceFacts, AWorkerDoesNotAgreeWithWhatAnEarlierReleaseStoredOfIt) {
  const v1::DeviceProfile facts = After({ProbeOf("a", 60), ProbeOfPrincipal("token", "a", 100)});
  EXPECT_EQ(facts.agreed_by(), 1);
  ASSERT_EQ(facts.probes_size(), 1);
  EXPECT_EQ(facts.probes(0).worker(), "token\na");
  EXPECT_EQ(facts.peak_gflops_1(), 100) << "its best";
}

TEST(DeviceFacts, AReputationIsNotInherited) {
  v1::DeviceProbe namesake = ProbeOf("a", 1e6);
  namesake.set_tenant(kLocalTenant + 1);
  EXPECT_EQ(After({ProbeOf("a", 100), namesake}).peak_gflops_1(), 100) << "another tenant's of the same name";
}

// What four threads reach is no limit for sixteen, and what one of sixteen says is no fact.
TEST(DeviceFacts, MoreThreadsThanAnybodyElseHasAreHeldAgainstOneCore) {
  v1::DeviceProbe few = ProbeOf("a", 100), few_too = ProbeOf("b", 95), wide = ProbeOf("c", 98);
  for (v1::DeviceProbe* probe : {&few, &few_too, &wide}) probe->mutable_profile()->set_cores(16);
  wide.set_threads(16);
  wide.mutable_profile()->set_peak_gflops_all(1e6);
  const v1::DeviceProfile facts = After({few, few_too, wide});
  EXPECT_EQ(facts.peak_gflops_all(), 16 * 100);
  v1::DeviceProbe wide_too = wide;
  wide_too.set_worker("d");
  wide_too.mutable_profile()->set_peak_gflops_all(1500);
  EXPECT_EQ(AfterProbe(facts, wide_too).peak_gflops_all(), 16 * 100);
  wide.set_worker("e");
  wide.mutable_profile()->set_peak_gflops_all(1400);
  EXPECT_EQ(AfterProbe(AfterProbe(facts, wide_too), wide).peak_gflops_all(), 1500) << "two bear each other out";
}

TEST(DeviceFacts, ManyWorkersNeverPushOutWhatTheyStandOn) {
  v1::DeviceProfile facts = After({ProbeOf("a", 100), ProbeOf("b", 95)});
  for (int i = 0; i < 100; ++i) {
    const double claim = i % 2 == 0 ? std::pow(0.5, i + 1) : 1000 * std::pow(2, i);  // no two bear each other out
    facts = AfterProbe(facts, ProbeOf(absl::StrCat("n", i), claim));
    ASSERT_EQ(facts.peak_gflops_1(), 100) << i;
    ASSERT_LE(facts.probes_size(), kMostProbes);
  }
  EXPECT_EQ(facts.probes(0).worker(), "a");
  EXPECT_EQ(facts.probes(1).worker(), "b");
  // Nor do those that agree keep faster ones out for ever.
  facts = {};
  for (int i = 0; i < 2 * kMostProbes; ++i) facts = AfterProbe(facts, ProbeOf(absl::StrCat("old", i), 100));
  for (const char* name : {"new", "new too"}) facts = AfterProbe(facts, ProbeOf(name, 200));
  EXPECT_EQ(facts.peak_gflops_1(), 200);
}

TEST(DeviceFacts, HoldLiarsOffThePlausibleAndOutliveTheDaemon) {
  Desk desk;
  desk.Hello("a", 2, "", /*gflops=*/100);
  desk.Hello("b", 2, "", 90);
  desk.Hello("liar", 2, "", 1e9);
  desk.Restart();
  desk.Hello("late liar", 2, "", 1e7);
  desk.Hello("c", 2, "", 95);
  const uint64_t job = desk.Submit({"conv2d_1"});  // a million operations
  EXPECT_EQ(desk.Job(job).tasks(0).lower_bound_us(), 10);
  const auto leases = desk.Take("c", 1);
  desk.Report("c", leases[0], Desk::Good(0.001));
  EXPECT_EQ(desk.store.trials().begin()->second.kind, v1::OUTCOME_INVALID_TIMING);
}

TEST(DeviceFacts, AreAgreedByWhoeverSpeaksForTheWorkers) {
  Desk desk;
  desk.principal = "liar";
  for (const char* name : {"a", "b"}) desk.Hello(name, 2, "", 1e9);
  desk.principal = "honest";
  desk.Hello("c", 2, "", /*gflops=*/100);
  desk.principal = "honest too";
  desk.Hello("d", 2, "", 95);
  const uint64_t job = desk.Submit({"conv2d_1"});  // a million operations
  EXPECT_EQ(desk.Job(job).tasks(0).lower_bound_us(), 10);
}

TEST(DeviceFacts, AreShownWithTheirStanding) {
  Desk desk;
  const auto shown = [&] {
    std::string text;
    for (const v1::WorkerInfo& worker : desk.dispatcher->Workers(kLocalTenant, desk.now)) {
      absl::StrAppend(&text, worker.name(), " ", worker.probe(), ";");
    }
    return text;
  };
  v1::HelloRequest hello;
  const auto greet = [&](const std::string& name, double gflops) {
    hello.set_worker_name(name);
    hello.set_session(name);
    hello.set_threads(2);
    *hello.mutable_profile() = ProbeOf(name, gflops).profile();
    desk.Do(Hello{desk.NewCall(), hello});
  };
  greet("a", 60);
  EXPECT_EQ(shown(), "a alone;");
  greet("b", 100);
  EXPECT_EQ(shown(), "a alone;b differs;");
  greet("c", 95);
  EXPECT_EQ(shown(), "a differs;b agreed;c agreed;");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("c", 1);
  ASSERT_EQ(leases.size(), 1u);
  desk.Report("c", leases[0], Desk::Good(50));
  ASSERT_FALSE(desk.searches.empty());
  EXPECT_EQ(desk.searches.front().device().peak_gflops_1(), 100);
  EXPECT_EQ(desk.searches.front().device().probes_size(), 0) << "what other tenants' workers are called";
}

TEST(DeviceFacts, AProfileHasItsLimits) {
  Desk desk;
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("w");
  *hello.mutable_profile() = ProbeOf("w", 1).profile();
  hello.mutable_profile()->set_machine(std::string(20 << 10, 'x'));
  const ReplyTo to = desk.NewCall();
  desk.Do(Hello{to, hello});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(to)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone
