// The dispatcher at work: one thread that owns it and feeds it events and never waits for the store, one that writes to
// the store (store_writer.h), one that sends replies, one that reads what watchers are told at the end, the search
// processes. Everything the services want from the dispatcher goes through `Post` and `Query`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/store/store.h"
#include "tuner/dispatch/dispatcher.h"
#include "tuner/service/core/metrics.h"
#include "tuner/service/core/quota_keeper.h"
#include "tuner/service/core/reply_sender.h"
#include "tuner/service/core/search_pool.h"
#include "tuner/service/core/store_writer.h"

namespace hone {

// What a watcher of a job is given, on the core's thread: must return at once. `last`: the job has ended, nothing
// follows.
using WatchSink = std::function<void(const v1::JobSnapshot&, bool last)>;

struct CoreOptions {
  DispatchOptions dispatch;
  SearchPoolOptions search;
  int64_t max_database_bytes = 0;  // QuotaKeeper's; 0: none
};

class Core {
 public:
  // Becomes the writer of the store and takes up what it left; while another daemon leads, answers from the store alone
  // and becomes the writer when that one is gone. `on_fatal` is called once, from any thread, when the store can no
  // longer be written; nothing is promised to anybody afterwards.
  static absl::StatusOr<std::unique_ptr<Core>> Start(CoreOptions options, std::unique_ptr<TuningStore> store,
                                                     std::function<void(absl::Status)> on_fatal);
  ~Core();  // stops
  // Carries out what was committed, ends the threads and the search processes. Callers still waiting are refused.
  void Stop();

  // Registers who gets the reply: called once, on the thread that sends replies, or at once with a refusal.
  ReplyTo Expect(ReplySender::Receiver receiver);
  void Post(Event event);
  // Runs `question` on the core's thread and waits for it. False when the core has stopped or another daemon leads: it
  // did not run.
  bool Query(const std::function<void(const Dispatcher&)>& question);
  // Whether the core's thread answers, leading or not; false when the core has stopped.
  bool Alive();

  // NotFound when the tenant has no such job, now or in the store.
  absl::StatusOr<v1::JobSnapshot> Snapshot(uint64_t tenant, uint64_t job, bool with_tasks);
  // The page of a tenant's jobs, now and in the store, whose numbers are above `after`. Its work is that of the page,
  // however many jobs there are.
  absl::StatusOr<v1::ListJobsReply> ListJobs(uint64_t tenant, uint64_t after);
  // Of an ended job, which the store alone knows, the snapshot and nothing more.
  absl::StatusOr<v1::JobExplanation> Explain(uint64_t tenant, uint64_t job);
  v1::ServiceStatus Status(uint64_t tenant);
  std::optional<ServiceMetrics> Metrics();  // nullopt when the core has stopped
  uint64_t AddWatch(uint64_t tenant, uint64_t job, Micros interval, WatchSink sink);
  void RemoveWatch(uint64_t watch);  // the sink is not called after this returns
  int watches() const { return watch_count_; }

  // Of the writer; nullopt also while another daemon leads. From any thread.
  std::optional<StoreWriter::Trouble> write_trouble();

  TuningStore& store() { return *store_; }
  static Micros Now();       // monotonic
  static std::string Utc();  // "2026-11-21T05:03:59Z"

 private:
  struct Watch {
    uint64_t tenant = 0;
    uint64_t job = 0;
    Micros interval = 0;
    Micros next = 0;  // when it is told again; it is in watches_due_ then
    WatchSink sink;
    bool ended = false;  // its job has: the last word is being read
  };
  struct LastWord {
    uint64_t watch = 0, tenant = 0, job = 0;
  };

  Core() = default;
  absl::Status Lead();
  bool Follow();  // until this daemon leads; false when it is to stop
  void ServeWatchesFromStore(Micros now);
  bool RunOnThread(const std::function<void()>& work);  // and waits for it; false when the core has stopped
  void RunDispatcher();
  void RunReader();
  void ReadLastWord(const LastWord& wanted);
  void ReadOutdated(const OutdatedFilter& filter);
  void CarryOut(std::vector<Effect> effects);
  // log_writes.cc, on the dispatcher's thread
  void LogWrites(const std::vector<Write>& writes);
  void LogJob(const JobRow& row);
  v1::JobSnapshot Live(uint64_t job, bool with_tasks);  // with what holds the writer up; on the dispatcher's thread
  void StepWith(Event event);                           // and carries out what comes of it
  std::vector<uint64_t> TakeDueWatches(Micros now);
  void SetDue(uint64_t id, Watch& watch, Micros next);
  void ServeWatches(Micros now);
  void TellLastWord(uint64_t id, Watch& watch);
  void DropWatch(uint64_t id);
  absl::StatusOr<v1::JobSnapshot> StoredSnapshot(uint64_t tenant, uint64_t job, bool with_tasks);
  // The first `most` of a tenant's jobs, by number, of those above `after`.
  absl::StatusOr<std::map<uint64_t, v1::JobSnapshot>> FirstJobs(uint64_t tenant, uint64_t after, int most);

  CoreOptions options_;
  std::unique_ptr<TuningStore> store_;
  std::unique_ptr<Dispatcher> dispatcher_;  // of the dispatcher thread alone; nullptr while another daemon leads
  std::unique_ptr<StoreWriter> writer_;     // likewise
  std::unique_ptr<SearchPool> pool_;
  std::unique_ptr<QuotaKeeper> quota_;                            // nullptr: no quota, or another daemon leads
  std::map<uint64_t, std::pair<bool, v1::JobState>> told_state_;  // of each open job, as the log has it; true: paused
  uint64_t epoch_ = 0;
  Micros began_ = Now();
  std::function<void(absl::Status)> on_fatal_;

  ReplySender replies_;

  std::mutex mutex_;  // of the queue and the stop flag
  std::condition_variable changed_;
  using Item = std::variant<Event, std::function<void()>>;
  std::deque<Item> queue_;
  bool leading_ = false;
  bool stopping_ = false;
  Micros wake_at_ = 0;

  std::mutex read_mutex_;
  std::condition_variable read_changed_;
  std::deque<std::variant<LastWord, OutdatedFilter>> to_read_;
  bool reader_stopping_ = false;

  // Of the dispatcher thread, as `events_` is.
  std::map<uint64_t, Watch> watches_;
  std::set<std::pair<Micros, uint64_t>> watches_due_;  // those whose job has not ended, by `next`
  std::set<std::pair<uint64_t, uint64_t>> watches_of_job_;
  EventDurations events_, event_work_;
  std::atomic<uint64_t> next_watch_{1};
  std::atomic<int> watch_count_{0};
  std::thread dispatcher_thread_;
  std::thread reader_thread_;
};

}  // namespace hone
