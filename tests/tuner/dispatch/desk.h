// The dispatcher with a store that answers at once: for tests that state one rule each.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tests/database/memory_store.h"
#include "tests/tuner/fake_task.h"
#include "tuner/dispatch/dispatcher.h"
#include "tuner/dispatch/state/fleet_index.h"

namespace hone {

class Desk {
 public:
  // Tests of other rules do without the confirmation of first results.
  explicit Desk(const DispatchOptions& options = {.confirm_first = false}) : options_(options) { Restart(); }

  // As after a kill of the daemon: what was committed is there.
  void Restart() {
    const uint64_t epoch = *store.BeginEpoch();
    dispatcher = std::make_unique<Dispatcher>(options_, epoch, *store.LoadState());
    epoch_ = epoch;
    Do(Start{});
  }
  void Do(const Event& event) {
    std::vector<Effect> effects = Step(event);
    for (size_t i = 0; i < effects.size(); ++i) {
      std::vector<Effect> more;
      const auto add = [&](const Event& next) {
        for (Effect& effect : Step(next)) more.push_back(std::move(effect));
      };
      if (const Commit* commit = std::get_if<Commit>(&effects[i])) {
        HONE_CHECK(store.Commit(epoch_, commit->writes).ok());
        add(Committed{commit->id});
      } else if (const LoadHistory* load = std::get_if<LoadHistory>(&effects[i])) {
        add(HistoryLoaded{load->key, *store.LoadHistory(load->key)});
      } else if (const FindOutdated* find = std::get_if<FindOutdated>(&effects[i])) {
        ++pages_read;
        add(OutdatedFound{*store.Outdated(find->filter), "2026-01-01T00:00:02Z"});
      } else if (const AskSearch* ask = std::get_if<AskSearch>(&effects[i])) {
        searches.push_back(ask->request);
        ask->log->AddTo(&searches.back(), 0, ask->observed);
      } else if (const Reply* reply = std::get_if<Reply>(&effects[i])) {
        HONE_CHECK(replies.emplace(reply->to, reply->message).second);
      }
      for (Effect& effect : more) effects.push_back(std::move(effect));
    }
    if (checks) dispatcher->CheckInvariants();
  }
  void Wait(Micros time) {
    now += time;
    Do(Tick{});
  }

  uint64_t Submit(const std::vector<std::string>& tasks, int64_t max_trials = 0, double max_seconds = 0,
                  const std::string& target = "cpu:native", int threads = 2) {
    v1::SubmitRequest request;
    request.set_request_id(absl::StrCat("request ", ++requests_));
    request.set_target(target);
    request.set_threads(threads);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(max_trials);
    request.set_max_seconds(max_seconds);
    for (const std::string& name : tasks) {
      *request.add_tasks() = FakeTask(name);
      if (!anchor_of.empty()) request.add_anchors(anchor_of[name]);
    }
    request.set_strategy(strategy);
    request.set_priority(priority);
    for (const std::string& further : further_targets) {
      v1::SubmitPart& part = *request.add_parts();
      part.set_target(further);
      part.set_threads(threads);
      *part.mutable_tasks() = request.tasks();
    }
    const ReplyTo to = ++tokens_;
    Do(hone::Submit{to, request, "2026-01-01T00:00:00Z", tenant});
    return std::get<v1::SubmitReply>(replies.at(to)).job_id();
  }
  ReplyTo Hello(const std::string& name, int threads = 2, const std::string& session = "", double gflops = 0,
                const std::string& name_key = "its host's", WorkerRole role = WorkerRole::kBoth) {
    const ReplyTo to = ++tokens_;
    v1::HelloRequest request;
    request.set_worker_name(name);
    request.set_name_key(name_key);
    request.set_session(session.empty() ? name : session);
    request.set_threads(threads);
    request.set_can_build(role != WorkerRole::kMeasure);
    request.set_can_measure(role != WorkerRole::kBuild);
    request.set_generator(generator);
    request.mutable_profile()->set_device_class(device_class);
    request.mutable_profile()->set_target("cpu:fake");
    request.mutable_profile()->set_cores(2);
    request.mutable_profile()->set_peak_gflops_all(gflops);
    if (!driver.empty()) (*request.mutable_profile()->mutable_facts())["driver"] = driver;
    request.mutable_missing_layers()->Assign(missing_layers.begin(), missing_layers.end());
    Do(hone::Hello{to, request, worker_tenant, principal});
    return to;
  }
  v1::SyncRequest SyncOf(const std::string& session, uint32_t credits = 0) {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_seq(++seq_);
    request.set_credits(credits);
    return request;
  }
  ReplyTo Sync(const v1::SyncRequest& request) {
    const ReplyTo to = ++tokens_;
    Do(hone::Sync{to, request, "2026-01-01T00:00:01Z", worker_tenant});
    return to;
  }
  ReplyTo NewCall() { return ++tokens_; }
  bool Answered(ReplyTo to) const { return replies.count(to) != 0; }
  const v1::SyncReply& SyncReplyTo(ReplyTo to) const { return std::get<v1::SyncReply>(replies.at(to)); }
  // Leases for a worker that says what it holds.
  std::vector<v1::Lease> Take(const std::string& session, uint32_t credits, const std::vector<v1::Lease>& held = {},
                              v1::Phase phase = v1::PHASE_QUEUED) {
    v1::SyncRequest request = SyncOf(session, credits);
    for (const v1::Lease& lease : held) {
      v1::LeaseState& state = *request.add_held();
      *state.mutable_id() = lease.id();
      state.set_phase(phase);
    }
    const ReplyTo to = Sync(request);
    if (!Answered(to)) return {};
    const v1::SyncReply& reply = SyncReplyTo(to);
    return {reply.want().begin(), reply.want().end()};
  }
  static v1::Outcome Good(double us) {
    v1::Outcome outcome;
    outcome.set_kind(v1::OUTCOME_OK);
    outcome.mutable_timing()->set_median_us(us);
    for (int i = 0; i < 5; ++i) outcome.mutable_timing()->add_samples_us(static_cast<float>(us));
    outcome.set_measure_seconds(0.1);
    return outcome;
  }
  static v1::Outcome Bad(v1::OutcomeKind kind) {
    v1::Outcome outcome;
    outcome.set_kind(kind);
    return outcome;
  }
  // Reports until it is acknowledged.
  bool Report(const std::string& session, const v1::Lease& lease, const v1::Outcome& outcome) {
    return Verdict(session, lease, outcome) == v1::REPORT_REFUSAL_UNSPECIFIED;
  }
  // Reports until it is acknowledged (REPORT_REFUSAL_UNSPECIFIED) or refused: an answer that lends something may leave
  // before the result is durable. nullopt: neither.
  std::optional<v1::ReportRefusal> Verdict(const std::string& session, const v1::Lease& lease,
                                           const v1::Outcome& outcome) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      v1::SyncRequest request = SyncOf(session);
      v1::TrialResult& result = *request.add_results();
      *result.mutable_id() = lease.id();
      *result.mutable_outcome() = outcome;
      const ReplyTo to = Sync(request);
      if (!Answered(to)) continue;
      const auto is_it = [&](const v1::LeaseId& id) {
        return id.SerializeAsString() == lease.id().SerializeAsString();
      };
      const v1::SyncReply& reply = SyncReplyTo(to);
      if (std::ranges::any_of(reply.acked(), is_it)) return v1::REPORT_REFUSAL_UNSPECIFIED;
      const auto refused = std::ranges::find_if(reply.refused(), is_it, &v1::RefusedReport::id);
      if (refused != reply.refused().end()) return refused->why();
    }
    return std::nullopt;
  }
  // Answers the oldest search that is out.
  void AnswerSearch(const std::vector<std::string>& traces, bool exhausted = false) {
    HONE_CHECK(!searches.empty());
    v1::SearchReply reply;
    reply.set_request_id(searches.front().request_id());
    reply.set_exhausted(exhausted);
    for (const std::string& trace : traces) reply.add_candidates()->set_trace(trace);
    searches.erase(searches.begin());
    Do(SearchDone{reply});
  }
  v1::JobSnapshot Job(uint64_t id) {
    if (dispatcher->HasJob(id)) return dispatcher->Snapshot(id);
    v1::JobSnapshot snapshot;
    const JobRow row = *store.GetJob(kLocalTenant, id);
    snapshot.set_state(row.state);
    snapshot.set_reason(row.reason);
    const std::vector<TaskRow> tasks = *store.GetTasks(kLocalTenant, id);
    for (const TaskRow& task : tasks) {
      v1::TaskSnapshot& t = *snapshot.add_tasks();
      t.set_best_us(task.best_us);
      t.set_state(task.state);
      t.set_trials(task.trials);
      snapshot.set_trials(snapshot.trials() + task.trials);
    }
    return snapshot;
  }

  std::map<std::string, std::string> anchor_of;  // by the task's name, for jobs to come
  v1::SearchStrategy strategy = v1::SEARCH_STRATEGY_UNSPECIFIED;
  int priority = 0;                          // of jobs to come
  std::vector<std::string> further_targets;  // that jobs to come name beside their own
  std::string device_class = "fake/c2";      // of workers that say hello
  Tenant tenant = TenantOf("local");         // whose the jobs to come are,
  uint64_t worker_tenant = kLocalTenant;     // and the workers that call
  std::string principal;                     // of workers that say hello
  std::string generator;                     // of workers that say hello; "": they do not say it
  std::string driver;                        // of their device; "": the host's processor
  int pages_read = 0;                        // of outdated records
  std::vector<std::string> missing_layers;   // of the sandboxes of workers that say hello
  bool checks = true;  // the invariants after every event: in the time of all jobs times all workers
  Micros now = 0;
  MemoryStore store;
  std::unique_ptr<Dispatcher> dispatcher;
  std::vector<v1::SearchRequest> searches;
  int64_t most_asked_at_once = 0;  // of searches, by one event
  std::map<ReplyTo, Message> replies;

 private:
  std::vector<Effect> Step(const Event& event) {
    std::vector<Effect> effects = dispatcher->Step(now, event);
    const auto asks = [](const Effect& effect) { return std::holds_alternative<AskSearch>(effect); };
    most_asked_at_once = std::max(most_asked_at_once, int64_t{std::ranges::count_if(effects, asks)});
    return effects;
  }

  DispatchOptions options_;
  uint64_t epoch_ = 0;
  uint64_t tokens_ = 0, seq_ = 0;
  int requests_ = 0;
};

}  // namespace hone
