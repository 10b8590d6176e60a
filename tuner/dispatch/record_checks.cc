#include "tuner/dispatch/record_checks.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/printable.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

constexpr size_t kLongestDriver = 100;  // bytes of it that records state

bool InOneJob(const TuningKey& a, const TuningKey& b) {
  return a.tenant == b.tenant && a.threads == b.threads && a.numeric == b.numeric;
}

}  // namespace

std::string DriverOf(const v1::DeviceProfile& profile) {
  const auto found = profile.facts().find("driver");
  return found == profile.facts().end() ? "" : std::string(Utf8Prefix(found->second, kLongestDriver));
}

// Only what is built where it is measured is known to come from that generator.
void Dispatcher::Impl::NoteGenerator(const Worker& worker, bool connected) {
  if (worker.hello.generator().empty() || worker.kind.role != WorkerRole::kBoth) return;
  RecordChecks::OfKind& kind = checks.kinds[worker.kind];
  const CodeMaker maker{worker.hello.generator(), DriverOf(worker.hello.profile())};
  std::set<uint64_t>& workers_of = kind.workers[maker];
  if (connected) workers_of.insert(worker.id);
  if (!connected) workers_of.erase(worker.id);
  if (workers_of.empty()) kind.workers.erase(maker);
  checks.due = true;
}

// While workers of a kind are of several builds, none of these is the present one.
void Dispatcher::Impl::BeginChecks() {
  if (!checks.due || checks.reads || checks.job != 0 || open_jobs > 0 || shutting_down) return;
  for (auto& [kind, of] : checks.kinds) {
    ++counters.looked_at;
    if (of.workers.size() != 1) continue;
    const auto& [maker, workers_of] = *of.workers.begin();
    if (of.maker != maker) {
      of.maker = maker;
      of.after = 0;
      of.read = false;
      of.found.clear();
    }
    if (!of.found.empty()) return AddCheckJob(workers.at(*workers_of.begin()), of);
    if (of.read) continue;
    checks.reads = true;
    checks.reading = kind;
    effects.emplace_back(FindOutdated{{.tenant = kind.tenant,
                                       .device_class = kind.device_class,
                                       .protocol = kind.protocol,
                                       .most_threads = kind.threads,
                                       .generator = maker.generator,
                                       .driver = maker.driver,
                                       .after = of.after}});
    return;
  }
  checks.due = false;
}

void Dispatcher::Impl::On(const OutdatedFound& event) {
  if (!checks.reads) return;
  RecordChecks::OfKind& kind = checks.kinds.at(checks.reading);
  kind.found.assign(event.page.records.begin(), event.page.records.end());
  kind.after = event.page.last;
  kind.read = event.page.last == 0;
  utc = event.utc;
  checks.reads = false;
  checks.due = true;
}

// Of the records found, those that lead and are alike.
void Dispatcher::Impl::AddCheckJob(const Worker& worker, RecordChecks::OfKind& kind) {
  const TuningKey first = kind.found.front().key;
  Submit event{.created = utc, .tenant = {first.tenant, ""}};
  v1::SubmitRequest& request = event.request;
  request.set_request_id(absl::StrCat("\ncheck\n", next_job));  // as no client may call a job
  request.set_model_name("records of an earlier build");
  request.set_target(worker.hello.profile().target());
  request.set_threads(first.threads);
  request.set_numeric(first.numeric);
  for (; !kind.found.empty() && InOneJob(first, kind.found.front().key); kind.found.pop_front()) {
    *request.add_tasks()->mutable_workload() = std::move(kind.found.front().workload);
  }
  std::vector<Write> writes;
  Job& job = TakeIn(event, request, 0, writes);
  job.row.request.set_checked_against(kind.maker.generator);
  job.row.request.set_checked_driver(kind.maker.driver);
  checks.job = job.row.id;
  CommitThen(std::move(writes), nullptr);
  Bind(job, worker);
}

bool Dispatcher::Impl::Yields(const Job& job) const { return job.checks_records() && open_jobs > 1; }

// The first job of a user's has come: what nobody works on yet is taken back, so that it stands in nobody's way.
void Dispatcher::Impl::YieldToJobs() {
  const auto job = jobs.find(checks.job);
  if (job == jobs.end() || job->second.ended) return;
  std::vector<Write> writes;
  for (const uint64_t id : IdleTrials(job->second)) DropTrial(id, writes);
  if (!writes.empty()) CommitThen(std::move(writes), nullptr);
  touched.jobs.insert(checks.job);
}

void Dispatcher::Impl::ResumeChecks() {
  const auto job = jobs.find(checks.job);
  if (job == jobs.end() || job->second.ended) return;
  touched.jobs.insert(checks.job);
  for (const auto& [number, tasks] : job->second.tasks_of_key) touched.keys.insert(number);
}

// Whoever stopped it wants no other in this daemon's life.
void Dispatcher::Impl::ChecksEnded(const Job& job) {
  checks.job = 0;
  checks.due = true;
  if (!job.row.stop_requested) return;
  for (auto& [kind, of] : checks.kinds) {
    of.found.clear();
    of.read = true;
  }
}

void Dispatcher::Impl::NoteWhatToCheck(Job& job) {
  for (const TaskRow& task : job.tasks) {
    const KeyState& key = job.KeyOf(task);
    const bool present = key.best_generator() == job.row.request.checked_against() && IsOfDriver(job, key);
    if (task.default_us > 0 || present || key.best_record() == 0) continue;
    job.to_check.insert(key.number);
    touched.keys.insert(key.number);
  }
}

bool Dispatcher::Impl::IsOfDriver(const Job& job, const KeyState& key) const {
  return key.best_driver() == job.row.request.checked_driver();
}

const Job* Dispatcher::Impl::JobToCheck(const KeyState& key) const {
  const auto found = jobs.find(checks.job);
  if (found == jobs.end()) return nullptr;
  const Job& job = found->second;
  const bool works = !job.ended && !job.row.stop_requested && !job.row.request.paused() && !Yields(job);
  return works && job.to_check.count(key.number) != 0 && key.best_record() != 0 ? &job : nullptr;
}

std::string Dispatcher::Impl::StateOf(const Job& job, const TaskRow& task) const {
  const KeyState& key = job.KeyOf(task);
  std::string state = TaskStateOf(key, task.lower_bound_us, options);
  if (!job.checks_records()) return state;
  if (job.to_check.count(key.number) != 0) return "open";
  const bool slower =
      task.default_us > 0 && (key.best_us() == 0 || key.best_us() > task.default_us * (1 + options.slower_margin));
  return slower ? state : "as_recorded";
}

bool Dispatcher::Impl::IsSameCode(const Trial& trial, const v1::Outcome& outcome) const {
  const std::string& digest = KeyOf(trial).best_digest();
  return trial.row.source == kCheckSource && IsOfDriver(jobs.at(trial.job), KeyOf(trial)) && !digest.empty() &&
         outcome.object_digest() == digest &&
         (outcome.kind() == v1::OUTCOME_CANCELLED || outcome.kind() == v1::OUTCOME_OK);
}

void Dispatcher::Impl::EndCheck(const Trial& trial, v1::Outcome& outcome, const Worker* worker,
                                std::vector<Write>& writes) {
  KeyState& key = KeyOf(trial);
  Job& job = jobs.at(trial.job);
  const std::string& trace = trial.row.trace;
  job.to_check.erase(key.number);
  job.TaskOfId(trial.row.task).default_us = key.best_us();
  if (key.best_trace() != trace) return;  // another has become the best meanwhile
  const uint64_t record = key.best_record();
  CheckRecord checked{.tenant = job.row.tenant, .record = record, .generator = outcome.generator()};
  if (IsSameCode(trial, outcome)) {  // its time holds
    checked.object_digest = outcome.object_digest();
    writes.push_back(std::move(checked));
    return;
  }
  // Nothing is known where it was not for the schedule that nothing was measured: a later daemon looks again.
  if (outcome.kind() == v1::OUTCOME_INFRA || outcome.kind() == v1::OUTCOME_CANCELLED) return;
  writes.push_back(std::move(checked));  // of no code: what was measured counts for nothing now
  const double us = outcome.timing().median_us();
  key.Observe(trace, outcome.kind(), us, 0, options);
  if (outcome.kind() != v1::OUTCOME_OK) return key.Uncrown();
  writes.push_back(PutRecord{RecordOf(trial.row, outcome, us, worker)});
  writes.push_back(SetBest{trial.row.key, record, us});
  KeepObject(record, trial.row.key, outcome, writes);
  key.Crown(trace, record, us);
}

}  // namespace hone
