#include "tuner/service/core/core.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/check.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/version.h"
#include "database/sqlite/sqlite_connection.h"
#include "proto/rpc/channel.h"
#include "spdlog/spdlog.h"
#include "tuner/dispatch/state/job_state.h"
#include "tuner/service/core/clock.h"
#include "tuner/service/core/log_writes.h"

namespace hone {
namespace {

constexpr int kJobsAtOnce = 64;  // that are read for a page
constexpr int kFollowMs = 100;   // between two tries to lead
constexpr char kFollows[] = "another daemon leads this database: this one answers look-ups alone until it is gone";
constexpr char kModelKind[] = "search";  // of the cost models in the store: that of hone-search

double ProcessorSeconds() {  // of this thread
  timespec charged{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &charged);
  return static_cast<double>(charged.tv_sec) + static_cast<double>(charged.tv_nsec) * 1e-9;
}

v1::DatabaseQuota QuotaOf(const QuotaKeeper::Counts& counts) {
  v1::DatabaseQuota quota;
  quota.set_bytes(counts.bytes);
  quota.set_most_bytes(counts.most_bytes);
  quota.set_pruned_trials(counts.trials);
  quota.set_pruned_records(counts.records);
  quota.set_nothing_left(counts.cannot);
  return quota;
}

}  // namespace

Micros Core::Now() { return SteadyMicros(); }

std::string Core::Utc() { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()); }

absl::StatusOr<std::unique_ptr<Core>> Core::Start(CoreOptions options, std::unique_ptr<TuningStore> store,
                                                  std::function<void(absl::Status)> on_fatal) {
  std::unique_ptr<Core> core(new Core());
  core->store_ = std::move(store);
  core->on_fatal_ = std::move(on_fatal);
  core->options_ = std::move(options);
  HONE_ASSIGN_OR_RETURN(const bool leads, core->store_->TryLead());
  if (leads) HONE_RETURN_IF_ERROR(core->Lead());
  if (!leads) spdlog::info("another daemon leads this database: look-ups alone are answered until it is gone");
  core->dispatcher_thread_ = std::thread([raw = core.get()] { raw->RunDispatcher(); });
  return core;
}

absl::Status Core::Lead() {
  HONE_ASSIGN_OR_RETURN(epoch_, store_->BeginEpoch());
  CrashPoint("core.epoch_begun");
  HONE_ASSIGN_OR_RETURN(StoredState state, store_->LoadState());
  CrashPoint("core.state_loaded");
  if (state.corrupt > 0) spdlog::error("{} rows of jobs and device classes are left out: damaged", state.corrupt);
  spdlog::info("term {}, {} open jobs, {} trials were lent", epoch_, state.jobs.size(), state.leased.size());
  dispatcher_ = std::make_unique<Dispatcher>(options_.dispatch, epoch_, std::move(state));
  Core* raw = this;
  writer_ = std::make_unique<StoreWriter>(
      *store_, epoch_, [raw](Event event) { raw->Post(std::move(event)); }, on_fatal_);
  pool_ = std::make_unique<SearchPool>(
      options_.search, [raw](v1::SearchReply reply) { raw->Post(SearchDone{std::move(reply)}); },
      [raw](uint64_t id, std::string reason) {
        raw->Post(SearchFailed{id, std::move(reason)});
      },
      ModelKeeper{[raw](const ModelOwner& owner) {
                    return raw->store_->CostModel(owner.tenant, owner.device_class, kModelKind).value_or("");
                  },
                  [raw](const ModelOwner& owner, std::string model) {
                    raw->writer_->Put({PutCostModel{owner.tenant, owner.device_class, kModelKind, std::move(model)}});
                  }});
  if (options_.max_database_bytes > 0) {
    quota_ = std::make_unique<QuotaKeeper>(*store_, epoch_, options_.max_database_bytes);
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    leading_ = true;
  }
  CrashPoint("core.leads");
  Post(hone::Start{});
  reader_thread_ = std::thread([raw] { raw->RunReader(); });
  return absl::OkStatus();
}

Core::~Core() { Stop(); }

void Core::Stop() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  changed_.notify_all();
  if (dispatcher_thread_.joinable()) dispatcher_thread_.join();
  CrashPoint("core.stop.dispatcher_ended");
  if (pool_ != nullptr) pool_->Stop();
  quota_ = nullptr;
  {
    const std::lock_guard<std::mutex> guard(read_mutex_);
    reader_stopping_ = true;
  }
  read_changed_.notify_all();
  if (reader_thread_.joinable()) reader_thread_.join();
  if (writer_ != nullptr) writer_->Stop();
  CrashPoint("core.stop.written");
  replies_.Stop();
}

ReplyTo Core::Expect(ReplySender::Receiver receiver) {
  const char* refused = nullptr;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_ || !leading_) refused = stopping_ ? "the daemon is stopping" : kFollows;
  }
  if (refused == nullptr) return replies_.Expect(std::move(receiver));
  receiver(Refusal{static_cast<int>(absl::StatusCode::kUnavailable), refused});
  return 0;
}

void Core::Post(Event event) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!leading_) return;  // whoever expects a reply was refused
    queue_.push_back(std::move(event));
  }
  changed_.notify_one();
}

bool Core::Query(const std::function<void(const Dispatcher&)>& question) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!leading_) return false;
  }
  return RunOnThread([&] { question(*dispatcher_); });
}

bool Core::Alive() {
  return RunOnThread([] {});
}

bool Core::RunOnThread(const std::function<void()>& work) {
  auto done = std::make_shared<std::promise<bool>>();
  std::future<bool> answered = done->get_future();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_) return false;
    queue_.push_back(std::function<void()>([&work, done] {
      work();
      done->set_value(true);
    }));
  }
  changed_.notify_one();
  return answered.get();
}

void Core::RunDispatcher() {
  if (dispatcher_ == nullptr && !Follow()) return;
  for (;;) {
    std::deque<Item> items;
    bool stop = false;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [&] { return !queue_.empty() || stopping_; };
      const Micros delay = wake_at_ - Now();
      if (delay > 0) { changed_.wait_for(lock, std::chrono::microseconds(std::min<Micros>(delay, 60'000'000)), ready); }
      items.swap(queue_);
      stop = stopping_;
    }
    wake_at_ = std::numeric_limits<Micros>::max();
    if (items.empty()) StepWith(Tick{});
    for (Item& item : items) {
      if (Event* event = std::get_if<Event>(&item)) {
        StepWith(std::move(*event));
      } else {
        StepWith(Tick{});  // whoever asks wants to know how it is now
        std::get<std::function<void()>>(item)();
      }
    }
    ServeWatches(Now());
    if (!watches_due_.empty()) wake_at_ = std::min(wake_at_, watches_due_.begin()->first);
    if (stop && items.empty()) return;
  }
}

// The thread of the dispatcher, before there is one: runs what is posted, tells watchers what the store says.
bool Core::Follow() {
  for (std::string said;;) {
    std::deque<Item> items;
    bool stop = false;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      items.swap(queue_);
      stop = stopping_;
    }
    for (Item& item : items) std::get<std::function<void()>>(item)();
    if (stop && items.empty()) return false;
    ServeWatchesFromStore(Now());
    const absl::StatusOr<bool> leads = store_->TryLead();
    const absl::Status status = leads.ok() && *leads ? Lead() : leads.status();
    if (status.ok() && *leads) return true;
    if (!status.ok() && said != status.message()) {
      said = std::string(status.message());
      spdlog::warn("cannot lead: {}", said);
    }
    if (!status.ok() || !store_->WaitForChange(absl::Milliseconds(kFollowMs)).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kFollowMs));
    }
  }
}

void Core::StepWith(Event event) {
  const Micros began = Now();
  const size_t kind = event.index();
  const double worked_before = ProcessorSeconds();
  CarryOut(dispatcher_->Step(began, std::move(event)));
  event_work_.of[kind].Add(ProcessorSeconds() - worked_before);
  events_.of[kind].Add(static_cast<double>(Now() - began) * 1e-6);
}

void Core::CarryOut(std::vector<Effect> effects) {
  std::vector<StoreWriter::Item> to_write;
  std::vector<Reply> replies;
  for (Effect& effect : effects) {
    if (Commit* commit = std::get_if<Commit>(&effect)) {
      LogWrites(commit->writes);
      to_write.emplace_back(std::move(*commit));
    } else if (LoadHistory* load = std::get_if<LoadHistory>(&effect)) {
      to_write.emplace_back(std::move(*load));
    } else if (FindOutdated* find = std::get_if<FindOutdated>(&effect)) {
      const std::lock_guard<std::mutex> guard(read_mutex_);
      to_read_.emplace_back(std::move(find->filter));
      read_changed_.notify_one();
    } else if (AskSearch* ask = std::get_if<AskSearch>(&effect)) {
      pool_->Ask(std::move(*ask));
    } else if (Reply* reply = std::get_if<Reply>(&effect)) {
      replies.push_back(std::move(*reply));
    } else if (const JobEnded* ended = std::get_if<JobEnded>(&effect)) {
      pool_->EndJob(ended->job);
      for (auto next = watches_of_job_.lower_bound({ended->job, 0});
           next != watches_of_job_.end() && next->first == ended->job; ++next) {
        TellLastWord(next->second, watches_.at(next->second));
      }
    } else if (const LeaseTakenBack* lease = std::get_if<LeaseTakenBack>(&effect)) {
      LogTakenBack(*lease);
    } else if (const Wake* wake = std::get_if<Wake>(&effect)) {
      wake_at_ = wake->at;
    }
  }
  writer_->Put(std::move(to_write));
  replies_.Send(std::move(replies));
}

// ---- the reader ----

void Core::RunReader() {
  for (;;) {
    std::variant<LastWord, OutdatedFilter> wanted;
    {
      std::unique_lock<std::mutex> lock(read_mutex_);
      read_changed_.wait(lock, [&] { return !to_read_.empty() || reader_stopping_; });
      if (reader_stopping_) return;
      wanted = std::move(to_read_.front());
      to_read_.pop_front();
    }
    if (const LastWord* word = std::get_if<LastWord>(&wanted)) ReadLastWord(*word);
    if (const OutdatedFilter* filter = std::get_if<OutdatedFilter>(&wanted)) ReadOutdated(*filter);
  }
}

void Core::ReadLastWord(const LastWord& wanted) {
  absl::StatusOr<v1::JobSnapshot> last = StoredSnapshot(wanted.tenant, wanted.job, true);
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    queue_.push_back(std::function<void()>([this, watch = wanted.watch, last = std::move(last)] {
      const auto found = watches_.find(watch);
      if (found == watches_.end()) return;  // whoever watched has gone
      if (last.ok()) found->second.sink(*last, true);
      DropWatch(watch);
    }));
  }
  changed_.notify_one();
}

// What cannot be read is not checked until the daemon is started again, or the workers have another generator.
void Core::ReadOutdated(const OutdatedFilter& filter) {
  absl::StatusOr<OutdatedPage> page = store_->Outdated(filter);
  if (!page.ok()) spdlog::warn("records of earlier builds are not checked: {}", std::string(page.status().message()));
  if (page.ok() && !page->records.empty()) {
    spdlog::info("{} records for {} are of another build than its workers: they are checked while no job is open",
                 page->records.size(), filter.device_class);
  }
  Post(OutdatedFound{page.ok() ? *std::move(page) : OutdatedPage{}, Utc()});
}

std::optional<StoreWriter::Trouble> Core::write_trouble() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!leading_) return std::nullopt;
  }
  return writer_->trouble();
}

// ---- views ----

v1::JobSnapshot Core::Live(uint64_t job, bool with_tasks) {
  v1::JobSnapshot snapshot = dispatcher_->Snapshot(job, with_tasks);
  const std::optional<StoreWriter::Trouble> trouble = write_trouble();
  if (!trouble.has_value()) return snapshot;
  snapshot.set_hold_up(trouble->kind);
  snapshot.set_held_up_by(trouble->words);
  snapshot.set_held_up_seconds(trouble->seconds);
  return snapshot;
}

absl::StatusOr<v1::JobSnapshot> Core::StoredSnapshot(uint64_t tenant, uint64_t job, bool with_tasks) {
  HONE_ASSIGN_OR_RETURN(const JobRow row, store_->GetJob(tenant, job));
  HONE_ASSIGN_OR_RETURN(const std::vector<TaskRow> tasks, store_->GetTasks(tenant, job));
  return MakeJobSnapshot(row, tasks, with_tasks);
}

absl::StatusOr<v1::JobSnapshot> Core::Snapshot(uint64_t tenant, uint64_t job, bool with_tasks) {
  std::optional<v1::JobSnapshot> live;
  Query([&](const Dispatcher& dispatcher) {
    if (dispatcher.HasJob(tenant, job)) live = Live(job, with_tasks);
  });
  if (live.has_value()) return *std::move(live);
  return StoredSnapshot(tenant, job, with_tasks);
}

absl::StatusOr<v1::JobExplanation> Core::Explain(uint64_t tenant, uint64_t job) {
  std::optional<v1::JobExplanation> live;
  Query([&](const Dispatcher& dispatcher) {
    if (!dispatcher.HasJob(tenant, job)) return;
    live = dispatcher.Explain(job);
    *live->mutable_job() = Live(job, true);
  });
  if (live.has_value()) return *std::move(live);
  v1::JobExplanation ended;
  HONE_ASSIGN_OR_RETURN(*ended.mutable_job(), StoredSnapshot(tenant, job, true));
  return ended;
}

v1::ServiceStatus Core::Status(uint64_t tenant) {
  v1::ServiceStatus status;
  status.set_version(kVersion);
  status.set_up_seconds(static_cast<double>(Now() - began_) * 1e-6);
  if (const std::optional<StoreWriter::Trouble> trouble = write_trouble(); trouble.has_value()) {
    status.set_hold_up(trouble->kind);
    status.set_held_up_by(trouble->words);
  }
  for (const std::string& name : LayerNameList(options_.search.missing_layers)) status.add_missing_layers(name);
  for (const std::string& name : LayerNameList(options_.search.program.allowed_missing)) {
    status.add_allowed_missing_layers(name);
  }
  const bool leads = Query([&](const Dispatcher& dispatcher) {
    status.set_term(epoch_);
    status.set_most_searches(options_.dispatch.searches);
    const FleetCounts counts = dispatcher.Counts(tenant);
    status.set_queued(counts.queued);
    status.set_lent(counts.all_lent());
    status.set_searches(static_cast<int32_t>(dispatcher.Counts().searches));
    if (quota_ != nullptr) *status.mutable_quota() = QuotaOf(quota_->counts());
    for (const uint64_t job : dispatcher.Jobs(tenant)) *status.add_jobs() = Live(job, false);
    for (v1::WorkerInfo& worker : dispatcher.Workers(tenant, Now())) *status.add_workers() = std::move(worker);
  });
  if (!leads) status.set_held_up_by(kFollows);
  return status;
}

std::optional<ServiceMetrics> Core::Metrics() {
  ServiceMetrics metrics;
  const bool alive = RunOnThread([&] {
    metrics.leads = dispatcher_ != nullptr;
    if (!metrics.leads) return;
    metrics.counts = dispatcher_->Counts();
    metrics.counters = dispatcher_->counters();
    metrics.term = epoch_;
    metrics.search_crashes = pool_->crashes();
    metrics.events = events_;
    metrics.event_work = event_work_;
    metrics.commits = writer_->commits();
    if (quota_ != nullptr) metrics.quota = quota_->counts();
  });
  if (!alive) return std::nullopt;
  metrics.version = kVersion;
  metrics.up_seconds = static_cast<double>(Now() - began_) * 1e-6;
  metrics.database_cache_bytes = SqliteConnection::CachedBytes();
  metrics.writable = !write_trouble().has_value();
  metrics.watches = watches();
  return metrics;
}

absl::StatusOr<std::map<uint64_t, v1::JobSnapshot>> Core::FirstJobs(uint64_t tenant, uint64_t after, int most) {
  std::map<uint64_t, v1::JobSnapshot> jobs;
  Query([&](const Dispatcher& dispatcher) {
    for (const uint64_t job : dispatcher.Jobs(tenant, after, static_cast<size_t>(most))) jobs[job] = Live(job, false);
  });
  HONE_ASSIGN_OR_RETURN(const std::vector<JobRow> rows, store_->ListJobs(tenant, {.after = after, .limit = most}));
  for (const JobRow& row : rows) {
    const auto [found, is_new] = jobs.try_emplace(row.id);
    if (!is_new) continue;
    HONE_ASSIGN_OR_RETURN(const std::vector<TaskRow> tasks, store_->GetTasks(tenant, row.id));
    found->second = MakeJobSnapshot(row, tasks, false);
  }
  while (jobs.size() > static_cast<size_t>(most)) jobs.erase(std::prev(jobs.end()));
  return jobs;
}

absl::StatusOr<v1::ListJobsReply> Core::ListJobs(uint64_t tenant, uint64_t after) {
  v1::ListJobsReply page;
  size_t bytes = 0;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(auto jobs, FirstJobs(tenant, after, kJobsAtOnce));
    for (auto& [id, job] : jobs) {
      if (bytes > kChunkBytes) {
        page.set_next(after);
        return page;
      }
      bytes += job.ByteSizeLong();
      after = id;
      *page.add_jobs() = std::move(job);
    }
    if (static_cast<int>(jobs.size()) < kJobsAtOnce) return page;
  }
}

uint64_t Core::AddWatch(uint64_t tenant, uint64_t job, Micros interval, WatchSink sink) {
  const uint64_t id = next_watch_++;
  ++watch_count_;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    queue_.push_back(std::function<void()>([this, id, tenant, job, interval, sink = std::move(sink)] {
      Watch& watch = watches_[id];
      watch.tenant = tenant;
      watch.job = job;
      watch.interval = std::max<Micros>(interval, 20'000);
      watch.sink = sink;
      watches_of_job_.emplace(job, id);
      SetDue(id, watch, 0);
    }));
  }
  changed_.notify_one();
  return id;
}

void Core::RemoveWatch(uint64_t watch) {
  RunOnThread([&] { DropWatch(watch); });
}

void Core::SetDue(uint64_t id, Watch& watch, Micros next) {
  watches_due_.erase({watch.next, id});
  watch.next = next;
  watches_due_.emplace(next, id);
}

std::vector<uint64_t> Core::TakeDueWatches(Micros now) {
  std::vector<uint64_t> due;
  while (!watches_due_.empty() && watches_due_.begin()->first <= now) {
    due.push_back(watches_due_.begin()->second);
    watches_due_.erase(watches_due_.begin());
  }
  return due;
}

void Core::DropWatch(uint64_t id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  watches_due_.erase({found->second.next, id});
  watches_of_job_.erase({found->second.job, id});
  watches_.erase(found);
  --watch_count_;
}

void Core::ServeWatchesFromStore(Micros now) {
  for (const uint64_t id : TakeDueWatches(now)) {
    Watch& watch = watches_.at(id);
    const absl::StatusOr<v1::JobSnapshot> snapshot = StoredSnapshot(watch.tenant, watch.job, true);
    const bool last = snapshot.ok() && !IsOpen(snapshot->state());
    if (snapshot.ok()) watch.sink(*snapshot, last);
    if (last) {
      DropWatch(id);
    } else {
      SetDue(id, watch, now + watch.interval);
    }
  }
}

// At every interval, also where nothing changed: silence means that the daemon is gone.
void Core::ServeWatches(Micros now) {
  for (const uint64_t id : TakeDueWatches(now)) {
    Watch& watch = watches_.at(id);
    if (!dispatcher_->HasJob(watch.job)) {
      TellLastWord(id, watch);
      continue;
    }
    watch.sink(Live(watch.job, true), false);
    SetDue(id, watch, now + watch.interval);
  }
}

// The end of its job is durable: the last word is what the store says.
void Core::TellLastWord(uint64_t id, Watch& watch) {
  watches_due_.erase({watch.next, id});
  if (std::exchange(watch.ended, true)) return;
  const std::lock_guard<std::mutex> guard(read_mutex_);
  to_read_.emplace_back(LastWord{id, watch.tenant, watch.job});
  read_changed_.notify_one();
}

}  // namespace hone
