// A world for the dispatcher in virtual time: a daemon that may be killed and starts again from its store, a store
// that fails, a network that drops, delays, repeats and reorders, workers that crash, hang, lie and vanish, searches
// that die, clients that insist. Everything follows from one seed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/support/random.h"
#include "tests/database/memory_store.h"
#include "tuner/dispatch/dispatcher.h"
#include "tuner/dispatch/state/lease_table.h"

namespace hone {

class WorkQueue;
struct SaySync;

struct SimOptions {
  int workers = 3;
  int measure_only = 0;  // of the workers, the first ones
  int builders = 0;      // workers beside them that only build
  // Of the workers, the last ones, which are names of one principal: all that they measure takes 0.5 to 0.9 of the
  // truth, they say.
  int liars = 0;
  // Of the others, each is a principal of its own, all of them share a token, or nothing tells anybody apart.
  enum class Principals { kOwn, kShared, kNone } principals = Principals::kOwn;
  int kinds = 1;      // of machines, 3 at most: jobs ask for one, or for several, or take any
  int tenants = 1;    // that jobs are of in turn: with several all workers serve every one
  double weight = 1;  // of the second tenant
  int credits = 6;
  int space = 60;      // candidates of each task
  double drop = 0.05;  // of each message
  double repeat = 0.03;
  double slow = 0.03;            // delayed by seconds
  double worker_crash = 0.01;    // of each candidate worked on
  double worker_vanish = 0.003;  // of each candidate: silent for minutes, then back as if nothing was
  double give_back = 0.01;       // of each call: the candidates that only wait go back
  double lie = 0.03;             // of each result
  double lucky = 0.3;  // of each challenger's trial: samples some per cent too short, as a duel is to find out
  double infra = 0.02;
  double search_crash = 0.1;
  double daemon_crash = 0.002;  // of each message that reaches it
  double full_disk = 0.005;     // of each transaction: from then on nothing can be written, for up to half a minute
  double lost_answer = 0.005;   // of each transaction: it is durable, and the daemon is told that it failed
  double broken_store = 0.001;  // of each transaction or read: the daemon cannot go on, and is started again
  double prune = 0.005;         // of each commit: a quota takes some trials or records
  double poison = 0.01;         // of the candidates kill every worker that touches them
  double build_poison = 0;      // of the candidates kill every worker that builds them for others
  double wrong = 0.1;           // of the candidates fail in one of the honest ways
};

// The same candidates where everybody works and every message arrives.
SimOptions WithoutFaults(SimOptions options);

class SimWorld {
 public:
  // The invariants take the time of all workers times all that they hold: they are checked after every `check_every`th
  // event alone.
  SimWorld(uint64_t seed, const SimOptions& faults, int64_t check_every = 1);
  ~SimWorld();

  // Submits a job of `tasks` tasks taken from a pool of `workloads`; the client repeats itself until it is told the
  // job.
  void Submit(int tasks, int64_t max_trials, double max_seconds = 0, int priority = 0);
  void StopSomeJobAt(Micros at);
  void PauseSomeJobAt(Micros at, Micros time);  // then it goes on
  void DrainSomeWorkerAt(Micros at);            // which is started again when it has ended
  // Runs until `until` holds or the time is over; false: it is over. Checks the invariants after every event.
  bool RunFor(Micros time, const std::function<bool()>& until = nullptr);
  void StopFaults();  // from now on everybody works and every message arrives

  bool AllJobsEnded() const;  // every job a client was told of, and every request was answered
  void CheckEnd() const;      // what must hold when all has ended
  const MemoryStore& store() const { return store_; }
  struct Best {
    double us = 0;
    double of_truth = 1;  // of what its kernel takes
  };
  const std::map<TuningKey, Best>& bests() const { return best_seen_; }
  std::string Describe() const;
  uint64_t fingerprint() const { return fingerprint_; }  // of everything that happened
  int64_t events() const { return events_; }
  int daemon_starts() const { return starts_; }
  int workers_lost() const { return worker_crashes_; }
  int64_t built_for_others() const { return built_; }
  Micros now() const { return now_; }

 private:
  struct Worker;
  struct Client;

  const Worker& Named(const std::string& name) const;
  std::string PrincipalOf(const Worker& worker) const;
  uint64_t WorkersTenant() const { return faults_.tenants > 1 ? kAllTenants : kLocalTenant; }

  void At(Micros when, std::function<void()> what);
  // By the network: not at all, once or twice, now or later. Where it does not arrive, its sender may hear that it is
  // `lost`.
  void Send(std::function<void()> arrive, std::function<void()> lost = nullptr);

  // ---- the daemon ----
  void StartDaemon();
  void KillDaemon();
  void ToDaemon(const Event& event);  // an event that arrived
  void CarryOut(std::vector<Effect> effects);
  void WakeWriter(Micros delay);
  void WriterTurn();
  absl::Status WriteGroup();
  void CheckAttempts(const Commit& commit) const;
  void WriteDown(const Commit& commit);
  std::vector<uint64_t> NewlyLent(const Commit& commit) const;  // trials
  void CheckBest(const SetBest& best);
  void CheckParts(const JobRow& whole) const;
  void PruneSome();
  void Answer(ReplyTo to, const Message& message);
  void SearchTurn(const v1::SearchRequest& request);
  ReplyTo Expect(std::function<void(const Message&)> then);

  // ---- the others ----
  void StartWorker(int index);
  void Drive(int index);
  // A call of a worker: `then` is given the answer, or the Refusal that says why there is none. More than once, where
  // the network repeats it or the answer comes after the time that it is waited for.
  void Call(int index, Micros timeout, std::function<Event(ReplyTo)> ask, std::function<void(const Message&)> then);
  void CarryHello(int index, const v1::HelloRequest& request);
  void CarrySync(int index, const SaySync& sync);
  void TakeReply(int index, uint64_t call, const absl::StatusOr<v1::SyncReply>& reply);
  void CheckVerdicts(const v1::SyncReply& reply) const;
  void CheckForgotten(const v1::LeaseId& id) const;  // a result that a worker tells no more
  void Forge(int index, const v1::TrialResult& result);
  static v1::SyncRequest SaidBy(const Worker& worker);  // what it holds and has not told
  static std::unique_ptr<WorkQueue> WithResultsOf(const v1::SyncRequest& said);
  void WorkOn(int index);
  void Measure(int index, const v1::Lease& lease);
  void Crash(int index);
  void EndWorker(int index);  // and starts it again
  void Vanish(int index);     // for a while
  void Finish(int index, const v1::Lease& lease, const v1::Outcome& outcome);
  // What a worker that only measures has built, and what one that only builds does.
  void AskToBuild(int index, const v1::Lease& lease, Micros give_up);
  void TakeBuilt(int index, const v1::Lease& lease, const v1::BuildOutcome& outcome);
  void BuildNext(int index);
  // What measuring a candidate gives, in a duel with `champion` where there is one.
  v1::Outcome Judge(const std::string& trace, const std::string& champion);
  void Lie(v1::Outcome& outcome);
  void Insist(int index);
  void InsistOnPause(int index);
  void CheckInvariants();

  // What a candidate is like, by its text: the same for everybody who tries it.
  bool IsPoison(const std::string& trace) const;
  bool IsBuildPoison(const std::string& trace) const;
  double TrueTime(const std::string& trace) const;

  SimOptions faults_;
  const int64_t check_every_;
  Random random_;
  Micros now_ = 0;
  uint64_t next_event_ = 1;
  std::map<std::pair<Micros, uint64_t>, std::function<void()>> queue_;
  uint64_t fingerprint_ = 0;
  int64_t events_ = 0;

  MemoryStore store_;
  std::unique_ptr<Dispatcher> dispatcher_;  // nullptr while the daemon is down
  uint64_t incarnation_ = 0;                // of the daemon: what was under way in an earlier one is void
  uint64_t epoch_ = 0;
  int starts_ = 0;
  Micros wake_at_ = 0;
  std::deque<std::variant<Commit, LoadHistory>> to_write_;
  std::vector<Commit> writing_;  // the transaction under way, with its retries
  bool written_ = false;         // it is durable, though the daemon was told that it failed
  bool writer_busy_ = false;
  Micros disk_full_until_ = 0;
  std::map<ReplyTo, std::function<void(const Message&)>> replies_;
  ReplyTo next_reply_ = 1;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::set<ReportedLease> lent_;  // every lease that a worker was told of
  std::vector<std::unique_ptr<Client>> clients_;
  int worker_crashes_ = 0;
  int64_t built_ = 0;
  std::map<std::string, int> build_deaths_;
  std::map<uint64_t, int> poison_deaths_;  // of workers, by the trial that they worked on
  std::map<TuningKey, Best> best_seen_;
  // Candidates that one who does not lie has measured since a trial, and not a duel, began to.
  std::set<std::pair<TuningKey, std::string>> honest_words_;
  std::map<uint64_t, std::pair<int64_t, int64_t>> pruned_;  // verified, failed; by task
};

}  // namespace hone
