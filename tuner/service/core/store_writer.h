// The thread that writes to the store: many commits in one transaction, so that the wait for the disk is shared. What a
// load of history asks for is read in its turn, after the commits that were asked for before it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "database/store/store.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/service/core/metrics.h"

namespace hone {

class StoreWriter {
 public:
  // Of the store's leader in that epoch. `post` is given Committed and HistoryLoaded. `on_fatal` is called once when
  // the store can no longer be written; nothing is written after it. Both on the writer's thread.
  StoreWriter(TuningStore& store, uint64_t epoch, std::function<void(Event)> post,
              std::function<void(absl::Status)> on_fatal);
  ~StoreWriter() { Stop(); }
  void Stop();  // when all that was asked for is done

  using Item = std::variant<Commit, LoadHistory, PutCostModel>;
  void Put(std::vector<Item> items);  // in order, after those before

  // Why the store cannot be written just now, in words, and for how long; nullopt while it can. From any thread.
  struct Trouble {
    v1::HoldUp kind = v1::HOLD_UP_NONE;
    std::string words;
    double seconds = 0;
  };
  std::optional<Trouble> trouble();
  Durations commits();  // transactions

 private:
  void Run();
  void Load(const TuningKey& key);
  void WriteModel(const PutCostModel& model);
  bool WriteGroup(const std::vector<Write>& writes);  // false: given up
  void LookWhoLeads();
  void GiveUp(const absl::Status& status);

  TuningStore& store_;
  const uint64_t epoch_;
  const std::function<void(Event)> post_;
  const std::function<void(absl::Status)> on_fatal_;
  bool failed_ = false;  // of the writer's thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stopping_ = false;
  Micros began_ = 0;  // of the transaction under way, with its retries; 0: none
  v1::HoldUp hold_up_ = v1::HOLD_UP_NONE;
  std::string held_up_by_;
  Durations commits_{Durations::kOfCommits};
  std::thread thread_;
};

}  // namespace hone
