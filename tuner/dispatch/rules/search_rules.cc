// Asking the search for candidates, and what comes back.
#include <algorithm>
#include <limits>

#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/state/task_scheduler.h"

namespace hone {
namespace {

constexpr int kLeastBatch = 4;  // smaller ones are not worth a search
constexpr size_t kMostSeeds = 12;
constexpr int kMostAskedAtOnce = 16;  // jobs looked at before other events have their turn
// A task that stopped gaining goes on when a sibling has become so much faster than it.
constexpr double kSiblingGain = 0.95;
// What is left of a budget from here on is spent around what is best.
constexpr double kPolishFrom = 0.75;

}  // namespace

// A job is asked about when something of it has changed, and the least charged job of a pool whose workers are hungry:
// one that has enough on its way, or nothing to try, is not asked about again until then.
void Dispatcher::Impl::NoteWhetherItAsks(Job& job) {
  if (!StandingOf(job).active) return TakeFromAsking(job);
  if (job.asks_within == job.virtual_seconds) return;  // where it stands already
  ByCharge& of_tenant = asking[job.row.tenant];
  if (job.asks_within.has_value()) {
    Replace(of_tenant, {*job.asks_within, job.row.id}, {job.virtual_seconds, job.row.id});
  } else {
    of_tenant.emplace(job.virtual_seconds, job.row.id);
    accounts.SetAsking(job.row.tenant, true);
  }
  job.asks_within = job.virtual_seconds;
}

void Dispatcher::Impl::TakeFromAsking(Job& job) {
  if (!job.asks_within.has_value()) return;
  const auto of_tenant = asking.find(job.row.tenant);
  of_tenant->second.erase({*job.asks_within, job.row.id});
  if (of_tenant->second.empty()) {
    asking.erase(of_tenant);
    accounts.SetAsking(job.row.tenant, false);
  }
  job.asks_within.reset();
}

uint64_t Dispatcher::Impl::NextToAsk() const {
  ++counters.looked_at;
  const std::optional<uint64_t> tenant = accounts.LeastChargedAsking();
  return tenant.has_value() ? asking.at(*tenant).begin()->second : 0;
}

void Dispatcher::Impl::AskOneFor(const WorkerPool& pool) {
  if (pool.active_tenants.empty()) return;
  std::pair<double, uint64_t> least{std::numeric_limits<double>::infinity(), 0};
  for (const JobPool* of : pool.tenants.at(pool.active_tenants.begin()->second).jobs) {
    ++counters.looked_at;
    if (!of->active.empty()) least = std::min(least, *of->active.begin());
  }
  NoteWhetherItAsks(jobs.at(least.second));
}

void Dispatcher::Impl::AskForCandidates() {
  if (shutting_down) return;
  const auto may_ask = [&] { return static_cast<int>(key_by_search.size()) < options.searches && !asking.empty(); };
  // A request copies a workload and all that is out of it, which takes longer than the rest of most events: one each.
  const auto asked = [&] {
    return std::ranges::any_of(effects, [](const Effect& effect) { return std::holds_alternative<AskSearch>(effect); });
  };
  for (int i = 0; i < kMostAskedAtOnce && may_ask() && !asked(); ++i) {
    Job& job = jobs.at(NextToAsk());
    ++counters.looked_at;
    if (!AskFor(job)) TakeFromAsking(job);
  }
  deadlines.Set(Deadlines::Of::kAsking, 0, may_ask() ? now : Deadlines::kNever);  // the others in a moment
}

int64_t Dispatcher::Impl::WantedOf(const Job& job) const {
  int64_t wanted = 0;
  for (const WorkerPool* pool : fleet.PoolOfJob(job.row.id).workers) {
    const int64_t sharing = std::max<int64_t>(1, pool->active_jobs);
    wanted += (pool->credits + sharing - 1) / sharing;
  }
  return wanted;
}

bool Dispatcher::Impl::AreQueuedOrAsked(const Job& job, int64_t enough) const {
  // Its own alone are mostly enough, and are known without a look at its tasks.
  const LeaseTable::OfJob& own = leases.OfJobNumber(job.row.id);
  const int64_t queued = static_cast<int64_t>(own.trials.size()) - own.lent, asked = Coming(job) - own.candidates;
  if (queued + asked >= enough) return true;
  int64_t sum = 0;
  for (const KeyState* key : job.keys) {
    ++counters.looked_at;
    sum += leases.OfKeyNumber(key->number).waiting + (key->search_request != 0 ? key->search_batch : 0);
    if (sum >= enough) return true;
  }
  return false;
}

int Dispatcher::Impl::TaskToSearch(const Job& job) const {
  int64_t capacity = 0;
  for (const WorkerPool* of : fleet.PoolOfJob(job.row.id).workers) capacity += of->credits + of->held;
  // A search learns most when the outcomes of its last batch are known: a task is asked for again when no more of it is
  // out than keeps half of the fleet busy.
  const int64_t most_out = std::max<int64_t>(options.batch, capacity) / 2;
  std::vector<TaskProgress> progress;
  std::vector<bool> eligible;
  for (const TaskRow& task : job.tasks) {
    ++counters.looked_at;
    const KeyState& key = job.KeyOf(task);
    const LeaseTable::OfKey& out = leases.OfKeyNumber(key.number);
    TaskProgress& p = progress.emplace_back();
    p.weight = task.weight;
    p.flop = task.flop;
    p.best_us = key.best_us();
    p.lower_bound_us = task.lower_bound_us;
    p.rounds = key.rounds();
    p.searched = key.searched;
    p.seconds_per_trial = key.seconds_per_trial();
    p.kind = KindOfName(task.name);
    // A search that had nothing to offer may have after the outcomes of what is out.
    const bool waits = out.candidates > 0 && key.fruitless_after == key.observed();
    const std::string state = StateOf(job, task);
    const bool goes_on = state == "open" || (state == "stalled" && SiblingTeaches(job, task, key));
    eligible.push_back(goes_on && key.search_request == 0 && !waits && job.to_check.count(key.number) == 0 &&
                       out.candidates <= most_out);
  }
  return PickTask(progress, eligible, options);
}

// One batch for the task of the job that gains most by it, unless enough is queued or on its way.
bool Dispatcher::Impl::AskFor(Job& job) {
  if (!StandingOf(job).active || !fleet.PoolOfJob(job.row.id).AnyAlive()) return false;
  if (AreQueuedOrAsked(job, options.batch / 2 + WantedOf(job))) return false;
  const int64_t left = TrialsLeft(job);
  if (left <= 0) return false;
  const int index = TaskToSearch(job);
  if (index < 0) return false;
  const TaskRow& task = job.tasks[index];
  KeyState& key = job.KeyOf(task);
  int64_t batch = options.batch;
  if (job.row.request.max_trials() > 0) {
    // A small budget still reaches every task: half of it goes round before the gradient takes over.
    const int64_t fair = job.row.request.max_trials() / (2 * static_cast<int64_t>(job.tasks.size()));
    if (!key.searched) batch = std::clamp<int64_t>(fair, kLeastBatch, options.batch);
    batch = std::min(batch, left);
  }
  if (TaskStateOf(key, task.lower_bound_us, options) == "stalled") {
    key.GrantMore(options);
    RefreshTasks(key);
  }
  key.search_request = next_request++;
  key.search_job = job.row.id;
  key.search_batch = static_cast<int>(batch);
  key_by_search[key.search_request] = &key;
  effects.emplace_back(MakeRequest(job, task, key, static_cast<int>(batch)));
  return true;
}

AskSearch Dispatcher::Impl::MakeRequest(const Job& job, const TaskRow& task, KeyState& key, int batch) {
  AskSearch ask{.job = job.row.id, .request = {}, .log = key.log(), .observed = key.observed()};
  v1::SearchRequest& request = ask.request;
  request.set_request_id(key.search_request);
  request.set_task_id(task.id);
  request.set_tenant(job.row.tenant);
  *request.mutable_workload() = workloads.at(task.workload_hash).workload;
  if (const v1::DeviceProfile* profile = ProfileOf(job.row.device_class)) {
    *request.mutable_device() = *profile;
    request.mutable_device()->clear_probes();  // other tenants' workers are in them
  }
  request.set_threads(job.row.threads);
  request.set_numeric(job.row.request.numeric());
  request.set_seed(job.row.request.seed());
  request.set_batch(batch);
  for (const uint64_t id : leases.OfKeyNumber(key.number).trials) {
    const TrialRow& row = leases.Find(id)->row;
    if (!row.duel) request.add_pending(row.trace);
  }
  request.set_strategy(job.row.request.strategy());
  request.set_polish(ShareSpent(job) >= kPolishFrom);
  // Seeds, told again with every request since they change while the others are tuned: the champions of the job's tasks
  // with the same anchor, the same workload elsewhere, then the champions of tasks of the same kind.
  std::set<std::string> seeds;
  const auto add = [&](const std::string& trace) {
    if (!trace.empty() && seeds.size() < kMostSeeds && !key.Knows(trace) && seeds.insert(trace).second) {
      request.add_seeds(trace);
    }
  };
  for (const TaskRow* other : job.SiblingsOf(task)) {
    ++counters.looked_at;
    const KeyState& sibling = job.KeyOf(*other);
    add(sibling.best_trace());
    key.MarkTold(sibling.best_trace());
  }
  for (const std::string& trace : key.seeds) add(trace);
  const std::string kind = KindOfName(task.name);
  for (const TaskRow& other : job.tasks) {
    ++counters.looked_at;
    if (other.id != task.id && KindOfName(other.name) == kind) add(job.KeyOf(other).best_trace());
  }
  return ask;
}

// Its search was not told yet of a sibling that does the same work much faster.
bool Dispatcher::Impl::SiblingTeaches(const Job& job, const TaskRow& task, const KeyState& key) const {
  return std::ranges::any_of(job.SiblingsOf(task), [&](const TaskRow* other) {
    ++counters.looked_at;
    const KeyState& sibling = job.KeyOf(*other);
    const bool faster =
        sibling.best_us() > 0 && (key.best_us() == 0 || sibling.best_us() < kSiblingGain * key.best_us());
    return faster && !key.Knows(sibling.best_trace()) && !key.WasTold(sibling.best_trace());
  });
}

// Of the budget that ends first; 0 without one.
double Dispatcher::Impl::ShareSpent(const Job& job) const {
  double share = 0;
  if (const int64_t budget = job.row.request.max_trials(); budget > 0) {
    int64_t spent = 0;
    for (const auto& [number, tasks] : job.tasks_of_key) {
      ++counters.looked_at;
      spent += job.keys[tasks.front()]->verified() + leases.OfKeyNumber(number).candidates;
    }
    share = static_cast<double>(spent) / static_cast<double>(budget);
  }
  if (const double seconds = job.row.request.max_seconds(); seconds > 0)
    share = std::max(share, job.row.seconds / seconds);
  return share;
}

Trial& Dispatcher::Impl::QueueCandidate(Job& job, const TaskRow& task, KeyState& key, const std::string& trace,
                                        const std::string& source) {
  key.AddKnown(trace);
  Trial trial;
  trial.key = key.number;
  trial.row = TrialRow{.id = next_trial++, .key = key.key(), .task = task.id, .trace = trace, .source = source};
  trial.job = job.row.id;
  return leases.AddQueued(std::move(trial), /*in_front=*/false);
}

void Dispatcher::Impl::On(const SearchDone& event) {
  const v1::SearchReply& reply = event.reply;
  const auto found = key_by_search.find(reply.request_id());
  if (found == key_by_search.end()) return;  // of a job that ended meanwhile
  KeyState& key = *found->second;
  key_by_search.erase(found);
  key.search_request = 0;
  touched.keys.insert(key.number);
  touched.jobs.insert(key.jobs.begin(), key.jobs.end());
  const auto job = jobs.find(key.search_job);
  int fresh = 0;
  if (job != jobs.end() && !job->second.ending && !job->second.row.request.paused() && !Yields(job->second)) {
    const int64_t left = TrialsLeft(job->second);
    const TaskRow* task = job->second.TaskOf(key);
    for (const v1::Candidate& candidate : reply.candidates()) {
      if (task == nullptr || fresh >= left) break;
      if (candidate.trace().empty() || key.Knows(candidate.trace())) continue;
      QueueCandidate(job->second, *task, key, candidate.trace(), candidate.source());
      ++fresh;
    }
    job->second.row.judged_batches += std::max(0, reply.judged_batches());
    job->second.row.draft_first += reply.draft_first();
    job->second.row.model_first += reply.model_first();
    key.searched = true;
    key.round_size = std::max(1, fresh);
    if (reply.exhausted()) key.exhausted = true;
    const bool fruitless = fresh == 0 && !reply.exhausted();
    key.fruitless_after = fruitless ? key.observed() : -1;
    // Only an answer that nothing can change any more counts against the task.
    SearchAnswered(key, fruitless && leases.OfKeyNumber(key.number).candidates == 0);
    if (!reply.error().empty()) job->second.row.reason = "search: " + reply.error();
    RefreshTasks(key);
  }
}

void Dispatcher::Impl::On(const SearchFailed& event) {
  const auto found = key_by_search.find(event.request_id);
  if (found == key_by_search.end()) return;
  KeyState& key = *found->second;
  key_by_search.erase(found);
  key.search_request = 0;
  ++counters.searches_failed;
  SearchAnswered(key, /*failed=*/true);
  const auto job = jobs.find(key.search_job);
  if (job != jobs.end() && key.exhausted) job->second.row.reason = "search: " + event.reason;
  RefreshTasks(key);
}

void Dispatcher::Impl::SearchAnswered(KeyState& key, bool failed) {
  key.search_failures = failed ? key.search_failures + 1 : 0;
  if (key.search_failures >= options.search_retries) key.exhausted = true;
}

}  // namespace hone
