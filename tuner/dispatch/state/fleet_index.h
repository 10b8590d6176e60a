// Who may work for whom, without looking at everybody: workers that are alike to the rules share a pool, so do jobs,
// and pools know which fit. What a job needs of the fleet (is anybody there, how much would they take) is then a sum
// over few pools, and a free worker finds the job that is next in the time of a set's begin.
//
// The dispatcher files each worker and job again when it has changed; the index notes which others that concerns.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/node_hash_map.h"
#include "database/store/rows.h"
#include "hone/v1/tune.pb.h"
#include "tuner/dispatch/events/reporter.h"
#include "tuner/dispatch/state/touched.h"

namespace hone {

// Whether a worker builds for those that only measure, is one of these, or builds what it measures.
enum class WorkerRole { kBuild, kMeasure, kBoth };
// Whether a worker of the one tenant runs what is of the other.
inline bool Serves(uint64_t worker, uint64_t tenant) { return worker == tenant || worker == kAllTenants; }
// What of a worker decides which jobs it may run. Those that only build are all of one kind.
struct WorkerKind {
  uint64_t tenant = 0;  // kAllTenants: it serves every one
  WorkerRole role = WorkerRole::kBoth;
  std::string device_class, target;
  uint32_t protocol = 1;
  int threads = 1;
  auto operator<=>(const WorkerKind&) const = default;
};
WorkerKind BuilderKind(uint64_t tenant);  // of those that only build; the first of the tenant's kinds
// What of a job decides which workers may run it. Not bound to a device class yet: the class is empty.
struct JobKind {
  uint64_t tenant = 0;
  std::string device_class;
  uint32_t protocol = 0;
  int threads = 0;
  std::string target;
  auto operator<=>(const JobKind&) const = default;
  bool bound() const { return !device_class.empty(); }
};
// Whether the one may run the other, and what is in the way.
enum class Fit { kFits, kOtherTenant, kBuildsOnly, kOtherDevice, kOtherProtocol, kFewerThreads, kOtherTarget };
Fit FitOf(const WorkerKind& worker, const JobKind& job);

// How a worker stands now.
struct WorkerStanding {
  bool lost = false;      // as far as one can see: it may still come back to its leases
  bool draining = false;  // takes no more
  bool hungry = false;    // its call is open, and it wants another trial
  bool not_quiet = false;
  SharedReporter reporter;  // who speaks for it
  std::string waiting_for;
  int credits = 0, held = 0;  // trials
  bool builds = false;        // for others, now
  bool may_build = false;     // its call is open, and it wants another build

  bool ready() const { return !lost && !draining; }
  bool waits() const { return ready() && !waiting_for.empty(); }  // something keeps it from work:
  bool waits_for_quiet() const { return waits() && not_quiet; }   // the state of its machine
  bool operator==(const WorkerStanding&) const = default;
};
// How a job stands now.
struct JobStanding {
  bool open = false;            // its end is not decided
  bool active = false;          // wants candidates
  bool ready = false;           // has a candidate to lend
  double charged = 0;           // device seconds: the least charged comes first,
  double charged_and_lent = 0;  // where something is lent, with what it has out
  bool operator==(const JobStanding&) const = default;
};
// How a tenant stands now among others, in the same two ways.
struct TenantCharge {
  double charged = 0, charged_and_lent = 0;
  bool operator==(const TenantCharge&) const = default;
};

using ByCharge = absl::btree_set<std::pair<double, uint64_t>>;
struct JobPool;
// Of one tenant, what a pool of workers fits.
struct TenantInPool {
  std::vector<JobPool*> jobs;
  // Where it stands in the pool's orders of tenants; nullopt: it is not there.
  std::optional<double> ready_at, active_at;
};
struct WorkerPool {
  WorkerKind kind;
  std::set<uint64_t> members;
  std::set<uint64_t> alive;             // those that do not drain
  std::map<std::string, int> alive_of;  // of these, by principal
  std::set<uint64_t> lost;
  std::set<uint64_t> ready;    // alive and not lost
  std::set<uint64_t> waiting;  // ready, but something keeps them from work
  std::set<uint64_t> hungry;   // alive and hungry
  int not_quiet = 0;           // of those waiting
  int64_t credits = 0;         // of those alive
  int64_t held = 0;
  std::map<uint64_t, TenantInPool> tenants;  // none without jobs that fit
  ByCharge ready_tenants;                    // those with a candidate to lend, by `charged_and_lent`
  ByCharge active_tenants;                   // those that want candidates, by `charged`
  int64_t active_jobs = 0;                   // that fit and want candidates
};
// Those of a tenant that build for others now: workers that only build, and some that build what they measure.
struct BuilderSet {
  std::set<uint64_t> ready;   // alive and not lost
  std::set<uint64_t> hungry;  // of these, those that want another build
};
struct JobPool {
  JobKind kind;
  std::set<uint64_t> members;
  ByCharge active, idle, ready;      // open jobs that are active or not by `charged`, ready ones by `charged_and_lent`
  std::vector<WorkerPool*> workers;  // that fit
  // What keeps all of them from work, as far as it is the workers: kept by the dispatcher.
  v1::HoldUp hold_up = v1::HOLD_UP_NONE;
  std::string held_up_by;

  bool AnyAlive() const;
};

class FleetIndex {
 public:
  // When the first worker that a job fits comes, or the last one goes, the job is touched.
  explicit FleetIndex(Touched& touched) : touched_(touched) {}

  void FileWorker(uint64_t id, const WorkerKind& kind, const WorkerStanding& standing);
  void DropWorker(uint64_t id);
  void FileJob(uint64_t id, const JobKind& kind, const JobStanding& standing);
  void DropJob(uint64_t id);
  // The device seconds of a tenant, by which its place among the others of each pool of workers goes.
  void FileTenant(uint64_t tenant, const TenantCharge& charge);

  const WorkerPool& PoolOfWorker(uint64_t id) const { return *workers_.at(id).pool; }
  JobPool& PoolOfJob(uint64_t id) { return *jobs_.at(id).pool; }
  const JobPool& PoolOfJob(uint64_t id) const { return *jobs_.at(id).pool; }
  bool HasJob(uint64_t id) const { return jobs_.count(id) != 0; }
  std::vector<const WorkerPool*> WorkersOf(uint64_t tenant) const;  // that serve it
  const BuilderSet& BuildersOf(uint64_t tenant) const;
  // Whether there is a worker that builds for those that only measure. When the first comes or the last goes, these
  // are touched.
  bool HasBuilder(uint64_t tenant) const;
  std::vector<JobPool*> JobsOf(uint64_t tenant) const;  // kAllTenants: of every one
  double LeastCharged(uint64_t tenant) const;           // of its open jobs; 0: it has none

  // Tenants whose workers stand differently, or who have a new kind of job, since this was last called.
  std::set<uint64_t> TakeChangedTenants() { return std::exchange(changed_tenants_, {}); }

  const WorkerStanding& StandingOfWorker(uint64_t id) const { return workers_.at(id).standing; }
  const JobStanding& StandingOfJob(uint64_t id) const { return jobs_.at(id).standing; }
  TenantCharge ChargeOf(uint64_t tenant) const;
  void CheckInvariants() const;

 private:
  struct FiledWorker {
    WorkerPool* pool = nullptr;
    WorkerStanding standing;
  };
  struct FiledJob {
    JobPool* pool = nullptr;
    JobStanding standing;
  };
  WorkerPool& PoolFor(const WorkerKind& kind);
  JobPool& PoolFor(const JobKind& kind);
  // From where one standing puts the worker to where the other does. nullptr: it is not in the pool.
  static void Move(uint64_t id, WorkerPool& pool, const WorkerStanding* before, const WorkerStanding* after);
  void FileBuilder(uint64_t id, uint64_t tenant, const WorkerStanding& standing);
  void Take(uint64_t id, FiledJob& job);
  void Link(WorkerPool& workers, JobPool& jobs);  // which fit each other
  void Unlink(WorkerPool& workers, JobPool& jobs);
  void PlaceTenant(WorkerPool& workers, uint64_t tenant);  // in the orders of the pool
  static void CheckOrders(const WorkerPool& pool);
  void TouchJobsOf(const WorkerPool& pool);
  void TouchMeasurers(uint64_t tenant);

  Touched& touched_;
  std::map<WorkerKind, std::unique_ptr<WorkerPool>> worker_pools_;
  std::map<JobKind, std::unique_ptr<JobPool>> job_pools_;
  std::map<uint64_t, BuilderSet> builders_;             // by tenant: as many as there are tenants
  absl::node_hash_map<uint64_t, FiledWorker> workers_;  // looked up, never gone through
  absl::node_hash_map<uint64_t, FiledJob> jobs_;
  std::map<uint64_t, TenantCharge> charge_of_;  // of every tenant that has had a job: as many as there are
  std::set<uint64_t> changed_tenants_;
};

}  // namespace hone
