// The dispatcher's state, and its rules by topic: dispatcher.cc (events in, effects out), hello_rules.cc (workers that
// come, and their names), sync_rules.cc (their calls), lease_rules.cc (what is lent to whom), worker_ends.cc (drained
// and lost workers), result_rules.cc (what an outcome changes), build_rules.cc (builds for workers that only measure),
// record_checks.cc (records of earlier builds), search_rules.cc (asking for candidates), job_rules.cc (jobs that come,
// are stopped, paused and bound), job_ends.cc (budgets and ends), hold_ups.cc (what a job waits for), settle.cc (which
// rules are applied to whom after an event), views.cc (what is shown of it). Everything whose order steers a decision
// is an ordered container.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tuner/dispatch/dispatcher.h"
#include "tuner/dispatch/record_checks.h"
#include "tuner/dispatch/state/build_table.h"
#include "tuner/dispatch/state/deadlines.h"
#include "tuner/dispatch/state/fleet_index.h"
#include "tuner/dispatch/state/id_containers.h"
#include "tuner/dispatch/state/job_requests.h"
#include "tuner/dispatch/state/job_state.h"
#include "tuner/dispatch/state/key_state.h"
#include "tuner/dispatch/state/lease_table.h"
#include "tuner/dispatch/state/lost_names.h"
#include "tuner/dispatch/state/tenant_accounts.h"
#include "tuner/dispatch/state/touched.h"

namespace hone {

inline constexpr size_t kUsualWrites = 32;  // of an event with results, and leases in their place
// Of a job's row, which repeats the whole request, for its accounts alone: a crash loses what they gained since.
inline constexpr Micros kSaveAccountsEvery = 1'000'000;
inline constexpr double kUsualSeconds = 0.3;  // of device time, that a lease counts for until its result is charged

using BuildIds = google::protobuf::RepeatedPtrField<v1::BuildId>;

// A worker's Sync that is held until there is something to answer it with, and what of it is needed by then: the
// request itself would lie in memory for as long, which no cache holds when the answer is due.
struct OpenCall {
  ReplyTo to = 0;
  Micros answer_by = 0;
  std::vector<LeaseToken> held, reported;  // that it named, each sorted
  BuildIds building;
  bool draining = false, gave_back = false, built = false;  // as it says; it named leases or builds that are over
  std::vector<v1::TrialResult> unjudged;                    // their histories are on the way

  bool Named(const LeaseToken& lease) const;
};

// A worker's session, from its Hello until it has been silent for a lease.
struct Worker {
  uint64_t id = 0;
  uint64_t tenant = kLocalTenant;  // whose jobs alone it is lent; kAllTenants: every one's
  SharedReporter reporter;         // its name, and who speaks for it
  v1::HelloRequest hello;
  uint64_t seq = 0;  // of the latest Sync
  Micros last_seen = 0;
  Micros silent_until = 0;  // it counts as lost when nothing was heard by then
  int credits = 0;          // trials it wants beyond those it holds or was given,
  int build_credits = 0;    // and builds
  bool draining = false;    // it says so, or was asked to
  bool drain_asked = false, drain_told = false;
  std::optional<OpenCall> waiting;
  Micros stuck_at = Deadlines::kNever;  // when the first of the trials it has under work has been so for too long
  Micros quiet_until = 0;               // it takes timings: its call is not answered, and it is lent nothing
  Micros silent_since = 0;              // no call of it has been open since then; 0: one is, or it never called
  std::string waiting_for;              // as it last said: what keeps it from work,
  bool not_quiet = false;               // and whether that is the state of its machine
  // What became of reports, to be said in the next answer; REPORT_REFUSAL_UNSPECIFIED: the result is durable.
  std::map<ReportedLease, v1::ReportRefusal> verdicts;
  double build_seconds = 0, verify_seconds = 0, measure_seconds = 0;  // as it last reported
  bool reports_wall_time = false;
  int64_t trials = 0;           // or builds, that it reported
  int64_t refused_reports = 0;  // of leases it was not given
  uint64_t last_key = 0;        // stays on one workload where it can: inputs and reference are loaded
  uint64_t last_job = 0;        // whose trial it was lent last
  int faults = 0;               // of its own (OUTCOME_INFRA), in a row: after faulty_after it rests
  Micros rests_until = 0;

  WorkerKind kind;  // as its Hello says: MakeKind

  WorkerRole role() const;
  WorkerKind MakeKind() const;
};

class Dispatcher::Impl {
 public:
  Impl(const DispatchOptions& options, uint64_t epoch, StoredState state);

  // ---- events (one each) ----
  void On(const Start& event);
  void On(const Submit& event);
  void On(const StopJob& event);
  void On(const PauseJob& event);
  void On(const DrainWorkers& event);
  void On(const Hello& event);
  void On(Sync& event);
  void On(const AskBuild& event);
  void On(const CallGone& event);
  void On(const SearchDone& event);
  void On(const SearchFailed& event);
  void On(const HistoryLoaded& event);
  void On(const OutdatedFound& event);
  void On(const Committed& event);
  void On(const ImportLines& event);
  void On(const KeepChoices& event);
  void On(const ShutDown& event);
  void On(const Tick& event);

  // ---- settle.cc ----
  // What an event may have made possible: expire, end jobs, ask for candidates, lend, answer. Each rule is applied to
  // what was touched, and again to what that touches, until nothing is left.
  void Settle();
  Touched& TakeTouched();  // sorted, until it is taken the next time
  void MeetDeadlines();
  void MeetDeadline(Trial& trial);
  void MeetDeadline(Build& build);
  Micros StuckAt(const Trial& trial) const;  // kNever: it is not under work
  void NoteStuckAt(Worker& worker);
  void TakeBackStuck(Worker& worker);
  void File(const Touched& batch);
  void FileWorker(const Worker& worker);
  void FileJob(const Job& job);
  void FileTrial(uint64_t id);
  void FileBuild(uint64_t id);
  WorkerStanding StandingOf(const Worker& worker) const;
  JobStanding StandingOf(const Job& job) const;
  Micros DeadlineOf(const Worker& worker) const;
  Micros DeadlineOf(const Trial& trial) const;
  Micros DeadlineOf(const Build& build) const;
  Micros DeadlineOf(const Job& job) const;
  void CheckInvariants() const;
  void CheckNothingIsLeft() const;  // to be done by any rule

  // ---- hello_rules.cc ----
  // Makes the name free for a new session of the tenant's. Who shows the name's key is the same host: the worker was
  // restarted and its old session is over, unless that one still has a call open and lives beside it. Nobody else gets
  // the name of a worker that was heard of within its lease, and no other principal that of one that was lost within
  // kLostNameStays: AlreadyExists.
  std::optional<Refusal> TakeName(const Hello& event);
  Worker* FindSession(uint64_t tenant, const std::string& session);

  // ---- sync_rules.cc ----
  void PrefetchFor(const v1::SyncRequest& request);  // what taking its results reads
  // What the worker says it holds of what it was lent, with the phases it is in; an orphan that it shows is its again.
  SortedIds TakeHeld(Worker& worker, const v1::SyncRequest& request);
  // How much it may be lent: what it asks for, less what it holds and has not `said`.
  void NoteCredits(Worker& worker, const v1::SyncRequest& request, const SortedIds& said);
  void ChargeWallTime(Worker& worker, const v1::SyncRequest& request);
  v1::SyncReply DesiredState(Worker& worker, const OpenCall& call);
  bool HasNews(const Worker& worker) const;
  void AnswerSync(Worker& worker);
  bool IsQuiet(const Worker& worker) const { return now < worker.quiet_until; }
  void EndWait(Worker& worker);  // its call is over, answered or cut off

  // ---- lease_rules.cc ----
  Fit FitOf(const Worker& worker, const Job& job) const { return hone::FitOf(worker.kind, job.kind); }
  int HeldBy(const Worker& worker) const;  // leases, of trials or of builds
  // Too many of its trials failed for no fault of theirs: for a while it has none, then one at a time.
  bool Rests(const Worker& worker) const;
  bool MayTake(const Worker& worker) const;  // another trial
  TenantCharge ChargeOf(uint64_t tenant) const;
  // What is next for the worker; 0: nothing. `kept_away`: something is ready that another worker is to have first.
  uint64_t NextTrialFor(const Worker& worker, bool* kept_away);
  uint64_t NextTrialOfTenant(const TenantInPool& tenant, const Worker& worker, bool* kept_away);
  uint64_t NextTrialOf(uint64_t job, const Worker& worker, bool* kept_away);
  void LendTrials(const Touched& batch);
  void Lend(Trial& trial, Worker& worker);
  std::string SecretOf(std::string_view what, uint64_t id, uint32_t attempt, const Worker& worker) const;
  v1::Lease MakeLease(const Trial& trial);
  void GiveBack(Worker& worker, const v1::LeaseId& id);
  void TakeBack(Trial& trial, bool worker_was_lost);  // a lease that ended without a result

  // ---- worker_ends.cc ----
  bool IsLost(const Worker& worker) const;  // as far as one can see: it may still come back to its leases
  void ExpireWorker(uint64_t id);
  // What a worker had under work when it was lost.
  struct HadUnderWork {
    std::vector<uint64_t> trials;
    std::vector<std::string> builds;  // by their digests
  };
  HadUnderWork LoseWorker(uint64_t worker);  // its leases go to others
  void Forgive(uint64_t tenant, const std::string& session);

  // ---- build_rules.cc ----
  void LendBuilds(const Touched& batch);
  bool Builds(const Worker& worker) const;    // for others, now: it only builds, or offers it while it may not measure
  bool MayBuild(const Worker& worker) const;  // another one, now
  void TakeBuilt(Worker& worker, const v1::BuildResult& result);
  void NoteMissingLayersOfBuilder(const Worker& builder, const Build& build);
  void TakeBackBuild(Build& build);  // a lease that ended without a result
  bool IsQuarantined(const Build& build) const;
  void AnswerBuild(uint64_t id, Message answer);
  const Build* FindBuild(const v1::BuildId& id) const;  // whose latest lease has that token
  v1::BuildId BuildIdOf(const Build& build) const;
  bool HasBuild(const Worker& worker, const v1::BuildId& id) const;
  std::set<uint64_t> BuildsSaid(const Worker& worker, const BuildIds& building) const;  // of those it has
  void AddBuilds(const Worker& worker, const BuildIds& building, v1::SyncReply* reply);
  bool HasBuildNews(const Worker& worker) const;

  // ---- result_rules.cc ----
  // False, and counted, when the lease of that token was lent to somebody else: the secret is missing or another.
  static bool Holds(Worker& worker, const v1::LeaseId& id, const TrialRow& row);
  // False: it cannot be judged before its key's history is there. Else it is taken over where it counts.
  bool TakeResult(Worker& worker, v1::TrialResult& result);
  void TryAgain(Trial& trial, const Worker& failed, v1::OutcomeKind kind);  // later, and by another worker
  void NoteMissingLayers(const Worker& worker, Job& job);                   // what worked for the job without them
  void NoteFault(Worker& worker, v1::OutcomeKind kind);
  void Refuse(Worker& worker, ReportedLease report, v1::ReportRefusal why);
  // What tells the verdict to whoever has the worker's session by then.
  std::function<void()> Tell(const Worker& worker, ReportedLease report, v1::ReportRefusal verdict);
  // `worker` is nullptr when the dispatcher itself gives the trial up. Appends to `writes`, where the outcome's object
  // goes; removes the trial.
  void EndTrial(Trial& trial, v1::Outcome& outcome, const Worker* worker, std::vector<Write>& writes);
  void EndDuel(Trial& trial, v1::Outcome& outcome, const Worker* worker, std::vector<Write>& writes);
  // The trace is the default of a task whose sibling's default is known to take much less.
  bool SiblingIsFaster(const KeyState& key, const std::string& trace, double us) const;
  RecordRow RecordOf(const TrialRow& row, const v1::Outcome& outcome, double us, const Worker* worker) const;
  void Gained(const KeyState& key);  // its champion is new
  void KeepObject(uint64_t record, const TuningKey& key, v1::Outcome& outcome, std::vector<Write>& writes);
  bool AnotherPrincipalFits(const std::string& principal, const Job& job) const;  // has a worker that lives and fits
  bool AnotherWorkerFits(const std::string& worker, const Job& job) const;
  // The rows of all tasks of that key. `write`: the store is to have them.
  void RefreshTasks(KeyState& key, bool write = false);
  // The duel that is due for the key, and the job on whose account it is; nullopt: none.
  struct DueDuel {
    const Job* job = nullptr;
    const std::string* challenger = nullptr;  // its trace
    const char* source = nullptr;             // of the trial
  };
  // The best schedule of the key is the default one of the job's task.
  static bool DefaultIsBest(const Job& job, const KeyState& key);
  // Whom the job wants to fight the key's best one: against the default, whoever might replace it if the time holds.
  const std::string* ChallengerFor(const Job& job, const KeyState& key) const;
  std::optional<DueDuel> NextDuel(const KeyState& key) const;
  void QueueDuel(KeyState& key);
  // For as long as options say a duel is lent to another principal than that of the worker which measured the
  // challenger, and where no other lives whose worker fits, to another worker.
  void KeepFromWhoMeasured(Trial& trial, const KeyState& key, const Job& job) const;
  bool IsKeptFrom(const Trial& trial, const Worker& worker) const {
    return trial.kept_from.until > now && trial.kept_from.Covers(*worker.reporter);
  }
  Micros AllAreBack() const { return began + Micros{options.lost_after_ms} * 1000; }  // whoever lives, after a start

  // ---- record_checks.cc ----
  void NoteGenerator(const Worker& worker, bool connected);
  void BeginChecks();  // of records, where it is time: has a page read, or makes a job of what was read
  void AddCheckJob(const Worker& worker, RecordChecks::OfKind& kind);
  bool Yields(const Job& job) const;  // it checks records, and another job is open
  void YieldToJobs();
  void ResumeChecks();
  void ChecksEnded(const Job& job);
  void NoteWhatToCheck(Job& job);
  bool IsOfDriver(const Job& job, const KeyState& key) const;  // the best record of a key that the job checks
  const Job* JobToCheck(const KeyState& key) const;  // that is to check the key's best record now; nullptr: none
  std::string StateOf(const Job& job, const TaskRow& task) const;  // as TaskRow::state has it
  bool IsSameCode(const Trial& trial, const v1::Outcome& outcome) const;
  void EndCheck(const Trial& trial, v1::Outcome& outcome, const Worker* worker, std::vector<Write>& writes);

  // ---- search_rules.cc ----
  void AskForCandidates();
  void NoteWhetherItAsks(Job& job);
  void TakeFromAsking(Job& job);
  uint64_t NextToAsk() const;  // of the least charged tenant the least charged job that may want candidates; 0: none
  void AskOneFor(const WorkerPool& pool);  // its workers are hungry: the least charged job that they fit may ask
  int64_t WantedOf(const Job& job) const;  // leases that its workers would take, shared with their other jobs
  // Whether so many candidates of its tasks are queued, that no worker has yet, or asked for.
  bool AreQueuedOrAsked(const Job& job, int64_t enough) const;
  int TaskToSearch(const Job& job) const;  // its index; -1: none can be asked for now
  bool AskFor(Job& job);
  AskSearch MakeRequest(const Job& job, const TaskRow& task, KeyState& key, int batch);
  bool SiblingTeaches(const Job& job, const TaskRow& task, const KeyState& key) const;
  double ShareSpent(const Job& job) const;
  void SearchAnswered(KeyState& key, bool failed);
  Trial& QueueCandidate(Job& job, const TaskRow& task, KeyState& key, const std::string& trace,
                        const std::string& source);

  // ---- job_rules.cc ----
  // Why the tenant may not have that job with its parts now; empty when it may.
  std::string OverLimits(const Tenant& tenant, const v1::SubmitRequest& request) const;
  // Appends what is to be written of it. `part_of`: the job it is a part of; 0: of none.
  Job& TakeIn(const Submit& event, const v1::SubmitRequest& request, uint64_t part_of, std::vector<Write>& writes);
  // The tenant's job. nullptr where it has none of that number, and whoever asked was told.
  Job* JobOrRefuse(ReplyTo to, uint64_t tenant, uint64_t id);
  std::vector<Job*> WithParts(Job& job);  // the job, and its parts that are open
  void SetPaused(Job& job, bool paused, std::vector<Write>& writes);
  Job& AddJob(Job job);
  TaskRow& AddTask(Job& job, TaskRow row);
  void BindJob(Job& job);  // to the first worker that fits, if there is one
  void Bind(Job& job, const Worker& worker);
  KeyState& UseKey(Job& job, const TaskRow& task);
  void QueueDefaults(Job& job);
  const v1::DeviceProfile* ProfileOf(const std::string& device_class) const;

  // ---- job_ends.cc ----
  int64_t Coming(const Job& job) const;      // candidates of it that live, or that a search was asked for
  int64_t TrialsLeft(const Job& job) const;  // by its budget, after those that come
  // Why the job should not go on; nullopt: it should.
  std::optional<std::string> EndReason(const Job& job) const;
  bool WaitsForTrials(const Job& job) const;               // an ending job, for those under work and for duels
  void EndJob(Job& job);                                   // if it is time
  void StopJobNow(Job& job, const std::string& reason);    // takes back what nobody works on yet
  std::vector<uint64_t> IdleTrials(const Job& job) const;  // queued here, or in a worker's queue
  void FinishJob(Job& job);
  void ForgetJob(uint64_t id);  // its end is durable
  void DropTrial(uint64_t id, std::vector<Write>& writes);

  // ---- hold_ups.cc ----
  void UpdateHoldUps(Touched& batch);  // of pools whose workers stand differently; their jobs are touched
  void UpdateJobState(Job& job);
  std::pair<v1::HoldUp, std::string> WhatHoldsUp(const JobPool& pool) const;  // as far as it is the workers
  std::string NoWorkerText(const std::vector<const WorkerPool*>& all) const;
  std::string MisfitText(const JobKind& job, size_t living, const std::vector<const WorkerPool*>& all) const;
  std::pair<v1::HoldUp, std::string> WhatHoldsUp(const Job& job) const;
  std::pair<v1::HoldUp, std::string> WhatHoldsUpAlone(const Job& job) const;  // without its parts

  // ---- views.cc ----
  v1::JobSnapshot SnapshotOf(const Job& job, bool with_tasks) const;
  v1::JobExplanation Explain(const Job& job) const;
  v1::WorkerInfo InfoOf(const Worker& worker) const;
  std::vector<v1::WorkerInfo> Workers(uint64_t tenant, Micros at) const;
  FleetCounts Counts(std::optional<uint64_t> tenant) const;

  // ---- effects ----
  // `after` runs when the writes are durable. All that one event writes is one commit: a worker that reports and is
  // lent more gets one answer for both.
  void CommitThen(std::vector<Write> writes, std::function<void()> after);
  void CommitStep();
  void ReplyNow(ReplyTo to, Message message);
  void NoteProgress(Job& job);  // its row is to be written, if it was not a moment ago
  void WriteChanged();          // the jobs and tasks that the event has changed: each once, as it stands at the end
  double SecondsSince(Micros then) const { return now > then ? static_cast<double>(now - then) * 1e-6 : 0; }
  KeyState& KeyOf(const Trial& trial) const { return *key_by_number.at(trial.key); }

  const DispatchOptions options;
  const uint64_t epoch;
  StoredState restored;  // consumed by Start
  Micros now = 0;
  Micros began = 0;  // when it started: until then it knew no worker
  std::vector<Effect> effects;
  std::vector<Write> step_writes;  // the commit of the event under way, and what follows it
  std::vector<std::function<void()>> step_after;
  std::set<uint64_t> changed_jobs, changed_tasks;

  uint64_t next_job = 1, next_task = 1, next_trial = 1, next_commit = 1, next_request = 1, next_worker = 1,
           next_key = 1;
  Touched touched, settling;
  Deadlines deadlines;
  FleetIndex fleet{touched};
  MapById<Job> jobs;
  JobRequests job_requests;
  absl::flat_hash_map<uint64_t, uint64_t> job_by_task;
  struct TenantJobs {
    std::set<uint64_t> jobs;
    int open_jobs = 0, open_tasks = 0;  // whose last commit is not on its way
  };
  std::map<uint64_t, TenantJobs> tenant_jobs;
  int open_jobs = 0;  // of all tenants
  RecordChecks checks;
  TenantAccounts accounts{options.tenant_weights};
  std::map<uint64_t, ByCharge> asking;  // by tenant, none empty: jobs that may want candidates, least charged first
  std::map<TuningKey, KeyState> keys;
  absl::flat_hash_map<uint64_t, KeyState*> key_by_number;
  std::map<uint64_t, KeyState*> key_by_search;
  std::map<uint64_t, std::set<uint64_t>> awaiting_history;  // by key: workers with results that cannot be judged yet
  LeaseTable leases{touched};
  BuildTable builds{touched};
  MapById<Worker> workers;
  absl::flat_hash_map<std::string, uint64_t> worker_by_session;
  absl::flat_hash_map<ReplyTo, uint64_t> worker_by_call;
  std::set<std::tuple<uint64_t, std::string, uint64_t>> workers_by_name;  // tenant, name, worker
  struct LostWorker {
    uint64_t tenant = kLocalTenant;
    v1::WorkerInfo info;
    Micros last_seen = 0;
    std::string session;
    HadUnderWork blamed;  // these count it among the workers lost over them
  };
  // For a while: users see them, and who comes back in its session was cut off, not lost.
  std::deque<LostWorker> lost_workers;
  LostNames lost_names;
  std::map<std::string, v1::DeviceProfile> profiles;  // by device class: device_facts.h
  struct UsedWorkload {
    v1::Workload workload;
    std::map<uint64_t, int> tasks_of;  // by tenant: those of its open jobs
  };
  std::map<std::string, UsedWorkload> workloads;  // by hash
  std::map<uint64_t, std::vector<std::function<void()>>> after_commit;
  absl::flat_hash_set<LeaseToken> becoming_durable;  // results accepted, commit under way: not to be acked yet
  std::string utc;                                   // of the latest Sync
  mutable DispatchCounters counters;                 // also of what is looked at and left as it is
  bool shutting_down = false;
};

}  // namespace hone
