#include "tuner/service/core/store_writer.h"

#include <chrono>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "spdlog/spdlog.h"
#include "tuner/service/core/clock.h"

namespace hone {
namespace {

constexpr size_t kGroup = 512;  // commits in one transaction at most
constexpr auto kRetryWrite = std::chrono::seconds(1);
constexpr auto kLookWhoLeads = std::chrono::seconds(1);
constexpr Micros kLongWrite = 3'000'000;  // a transaction takes milliseconds

// The writes of all commits, for one transaction, of which nobody sees the middle: of the rows of a job or a task that
// are put again and again, the last one is put where the first one was.
std::vector<Write> TakeWrites(std::vector<Commit>& commits) {
  size_t count = 0;
  for (const Commit& commit : commits) count += commit.writes.size();
  std::vector<Write> writes;
  writes.reserve(count);                             // rows are large to move
  std::unordered_map<uint64_t, size_t> jobs, tasks;  // where in `writes` their rows are
  const auto put = [&](std::unordered_map<uint64_t, size_t>& rows, uint64_t id, Write& write) {
    const auto [row, is_new] = rows.try_emplace(id, writes.size());
    if (is_new) {
      writes.push_back(std::move(write));
    } else {
      writes[row->second] = std::move(write);
    }
  };
  for (Commit& commit : commits) {
    for (Write& write : commit.writes) {
      if (const PutJob* job = std::get_if<PutJob>(&write)) {
        put(jobs, job->row().id, write);
      } else if (const PutTask* task = std::get_if<PutTask>(&write)) {
        put(tasks, task->row.id, write);
      } else {
        writes.push_back(std::move(write));
      }
    }
  }
  return writes;
}

}  // namespace

StoreWriter::StoreWriter(TuningStore& store, uint64_t epoch, std::function<void(Event)> post,
                         std::function<void(absl::Status)> on_fatal)
    : store_(store), epoch_(epoch), post_(std::move(post)), on_fatal_(std::move(on_fatal)), thread_([this] {
        Run();
      }) {}

void StoreWriter::Stop() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StoreWriter::Put(std::vector<Item> items) {
  if (items.empty()) return;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (Item& item : items) items_.push_back(std::move(item));
  }
  changed_.notify_one();
}

void StoreWriter::Run() {
  for (;;) {
    std::vector<Commit> commits;
    std::optional<Item> alone;  // a load or a model
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [&] { return !items_.empty() || stopping_; };
      while (!changed_.wait_for(lock, kLookWhoLeads, ready)) {
        lock.unlock();
        LookWhoLeads();
        lock.lock();
      }
      if (items_.empty()) return;
      // Everything up to the next load is one transaction: the wait for the disk is shared.
      while (!items_.empty() && commits.size() < kGroup) {
        Commit* commit = std::get_if<Commit>(&items_.front());
        if (commit == nullptr && !commits.empty()) break;
        if (commit == nullptr) {
          alone = std::move(items_.front());
        } else {
          commits.push_back(std::move(*commit));
        }
        items_.pop_front();
        if (alone.has_value()) break;
      }
    }
    if (failed_) continue;  // nothing is promised any more
    if (alone.has_value()) {
      if (const PutCostModel* model = std::get_if<PutCostModel>(&*alone)) WriteModel(*model);
      if (const LoadHistory* load = std::get_if<LoadHistory>(&*alone)) Load(load->key);
      continue;
    }
    CrashPoint("writer.taken");
    const std::vector<Write> writes = TakeWrites(commits);
    if (!writes.empty() && !WriteGroup(writes)) continue;
    CrashPoint("writer.committed");
    for (const Commit& commit : commits) post_(Committed{commit.id});
  }
}

void StoreWriter::GiveUp(const absl::Status& status) {
  failed_ = true;
  on_fatal_(status);
}

void StoreWriter::Load(const TuningKey& key) {
  absl::StatusOr<KeyHistory> history = store_.LoadHistory(key);
  CrashPoint("writer.history_read");
  if (!history.ok()) {
    spdlog::error("reading what is known of a task: {}", std::string(history.status().message()));
    return GiveUp(history.status());
  }
  if (history->corrupt > 0) {
    spdlog::error("{} records of one key ({}, {} threads) are left out: their checksums do not match", history->corrupt,
                  key.device_class, key.threads);
  }
  post_(HistoryLoaded{key, *std::move(history)});
}

// A daemon without anything to write would not learn that it was overtaken.
void StoreWriter::LookWhoLeads() {
  const absl::StatusOr<bool> leads = store_.TryLead();
  if (failed_ || !leads.ok() || *leads) return;
  GiveUp(absl::AbortedError("another daemon has taken over this database"));
}

// Nothing depends on it: a model that cannot be stored is learnt anew.
void StoreWriter::WriteModel(const PutCostModel& model) {
  const Write write = model;
  CrashPoint("writer.model");
  const absl::Status status = store_.Commit(epoch_, {&write, 1});
  if (!status.ok()) {
    spdlog::warn("the cost model of {} was not stored: {}", model.device_class, std::string(status.message()));
  }
}

bool StoreWriter::WriteGroup(const std::vector<Write>& writes) {
  const auto note = [this](Micros began, v1::HoldUp kind, std::string words) {
    const std::lock_guard<std::mutex> guard(mutex_);
    began_ = began;
    hold_up_ = kind;
    held_up_by_ = std::move(words);
  };
  const Micros began = SteadyMicros();
  note(began, v1::HOLD_UP_NONE, "");
  for (bool warned = false;;) {
    const absl::Status status = store_.Commit(epoch_, writes);
    if (status.ok()) {
      if (warned) spdlog::info("the database can be written again");
      note(0, v1::HOLD_UP_NONE, "");
      const std::lock_guard<std::mutex> guard(mutex_);
      commits_.Add(static_cast<double>(SteadyMicros() - began) * 1e-6);
      return true;
    }
    // A full disk or a backup tool's lock passes; callers wait meanwhile, and nothing is acknowledged.
    const bool passing = absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
    if (passing) {
      if (!warned) spdlog::warn("cannot write the database, trying again: {}", std::string(status.message()));
      warned = true;
      const bool full = absl::IsResourceExhausted(status);
      note(began, full ? v1::HOLD_UP_DISK_FULL : v1::HOLD_UP_DATABASE_LOCKED,
           absl::StrCat(full ? "the disk is full: " : "another program holds the database: ",
                        std::string(status.message())));
      std::unique_lock<std::mutex> lock(mutex_);
      if (!changed_.wait_for(lock, kRetryWrite, [&] { return stopping_; })) continue;
    }
    spdlog::error("writing the database: {}", status.ToString());
    GiveUp(status);
    return false;
  }
}

std::optional<StoreWriter::Trouble> StoreWriter::trouble() {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Micros since = began_ == 0 ? 0 : SteadyMicros() - began_;
  const double seconds = static_cast<double>(since) * 1e-6;
  if (hold_up_ != v1::HOLD_UP_NONE) return Trouble{hold_up_, held_up_by_, seconds};
  if (since < kLongWrite) return std::nullopt;
  return Trouble{v1::HOLD_UP_DATABASE_LOCKED,
                 "the database takes no write: another program holds it, or its disk is slow", seconds};
}

Durations StoreWriter::commits() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return commits_;
}

}  // namespace hone
