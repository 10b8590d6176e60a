// The store's contract in a hundred lines of maps: the model that the real backends are compared with by the
// conformance suite, and the store of the dispatcher's simulation. Broken constraints end the test.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "database/store/name_filter.h"
#include "database/store/store.h"

namespace hone {

class MemoryStore : public TuningStore {
 public:
  absl::StatusOr<uint64_t> BeginEpoch() override { return ++epoch_; }

  absl::Status Commit(uint64_t epoch, std::span<const Write> writes) override {
    if (epoch != epoch_) return absl::AbortedError("another daemon has taken over");
    for (const Write& write : writes) std::visit([&](const auto& w) { Apply(w); }, write);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> BytesInUse(int64_t) override {
    int64_t bytes = 0;
    for (const auto& [id, trial] : trials_) bytes += kRowBytes + trial.trace.size();
    for (const auto& [id, measurement] : measurements_) bytes += kRowBytes + measurement.outcome.ByteSizeLong();
    for (const auto& [id, row] : records_) bytes += kRowBytes + row.record.ByteSizeLong();
    for (const auto& [id, object] : objects_) bytes += kRowBytes + object.first.size() + object.second.size();
    return bytes;
  }

  absl::StatusOr<Prune> FirstToPrune(int limit) override {
    Prune prune;
    for (const bool failed : {true, false}) {
      for (const auto& [id, trial] : trials_) {
        const bool fails = trial.state == TrialState::kDropped || trial.kind != v1::OUTCOME_OK;
        if (fails == failed && MayGo(trial) && static_cast<int>(prune.trials.size()) < limit)
          prune.trials.push_back(id);
      }
      if (!prune.trials.empty()) return prune;
      if (!failed) break;
      std::vector<std::pair<double, uint64_t>> worst;
      for (const uint64_t id : record_order_) {
        const auto best = best_.find(records_.at(id).key);
        const double ratio = best == best_.end() ? 1 : records_.at(id).record.median_us() / best->second.second;
        if (RecordMayGo(id)) worst.emplace_back(-ratio, id);
      }
      std::stable_sort(worst.begin(), worst.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = 0; i < worst.size() && i < static_cast<size_t>(limit); ++i)
        prune.records.push_back(worst[i].second);
      if (!prune.records.empty()) return prune;
    }
    return prune;
  }

  absl::StatusOr<StoredState> LoadState() override {
    StoredState state;
    state.last_job = Last(jobs_);
    state.last_task = Last(tasks_);
    state.last_trial = Last(trials_);
    std::set<std::string> hashes;
    for (const auto& [id, job] : jobs_) {
      if (IsOpen(job.state)) state.jobs.push_back(job);
    }
    for (const JobRow& job : state.jobs) {
      for (const auto& [id, task] : tasks_) {
        if (task.job != job.id) continue;
        state.tasks.push_back(task);
        if (hashes.insert(task.workload_hash).second) state.workloads.push_back(workloads_.at(task.workload_hash));
      }
    }
    for (const auto& [id, trial] : trials_) {
      if (trial.state == TrialState::kLeased) state.leased.push_back(trial);
    }
    for (const auto& [name, row] : device_classes_) state.device_classes.push_back(row);
    return state;
  }

  absl::StatusOr<KeyHistory> LoadHistory(const TuningKey& key) override {
    KeyHistory history;
    std::set<std::string> tried;
    for (const uint64_t id : ended_) {
      const TrialRow& trial = trials_.at(id);
      if (trial.key != key || trial.state != TrialState::kDone) continue;
      if (trial.duel) {
        history.duelled.push_back(trial.trace);
        continue;
      }
      const auto measured = measurements_.find({id, trial.attempt});
      history.trials.push_back({.trace = trial.trace,
                                .kind = trial.kind,
                                .median_us = trial.median_us,
                                .worker = measured == measurements_.end() ? "" : measured->second.worker});
      tried.insert(trial.trace);
    }
    for (const uint64_t id : record_order_) {
      const RecordRow& row = records_.at(id);
      if (row.key == key && tried.count(row.record.trace()) == 0) {
        history.trials.push_back({.trace = row.record.trace(),
                                  .kind = v1::OUTCOME_OK,
                                  .median_us = row.record.median_us(),
                                  .claimed = !row.MeasuredHere()});
      }
    }
    const auto best = best_.find(key);
    if (best != best_.end()) {
      history.best_record = best->second.first;
      history.best_us = best->second.second;
      history.best_trace = records_.at(best->second.first).record.trace();
      history.best_claimed = !records_.at(best->second.first).MeasuredHere();
      history.best_generator = records_.at(best->second.first).record.generator();
      history.best_driver = records_.at(best->second.first).record.driver();
      history.best_digest = records_.at(best->second.first).record.object_digest();
    }
    std::set<std::string> seeds;
    for (const auto& [other, entry] : best_) {
      if (other == key || other.workload_hash != key.workload_hash || other.tenant != key.tenant) continue;
      const std::string& trace = records_.at(entry.first).record.trace();
      if (history.seeds.size() < 8 && seeds.insert(trace).second) history.seeds.push_back(trace);
    }
    return history;
  }

  absl::StatusOr<OutdatedPage> Outdated(const OutdatedFilter& filter) override {
    OutdatedPage page;
    const size_t end = std::min<size_t>(key_order_.size(), filter.after + static_cast<size_t>(filter.keys));
    if (end == filter.after + static_cast<size_t>(filter.keys)) page.last = end;
    for (size_t i = filter.after; i < end; ++i) {
      const TuningKey& key = key_order_[i];
      const auto best = best_.find(key);
      if (best == best_.end() || (filter.tenant != kAllTenants && key.tenant != filter.tenant)) continue;
      if (key.device_class != filter.device_class || key.protocol != filter.protocol) continue;
      const RecordRow& row = records_.at(best->second.first);
      if (key.threads > filter.most_threads || !row.MeasuredHere()) continue;
      const bool current = row.record.generator() == filter.generator && row.record.driver() == filter.driver;
      if (!current) page.records.push_back({key, workloads_.at(key.workload_hash)});
    }
    return page;
  }
  absl::StatusOr<std::string> CostModel(uint64_t tenant, const std::string& device_class,
                                        const std::string& kind) override {
    const auto found = models_.find({tenant, device_class, kind});
    if (found == models_.end()) return absl::NotFoundError("no cost model");
    return found->second;
  }
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash) override { return Find(workloads_, hash); }
  absl::StatusOr<JobRow> GetJob(uint64_t tenant, uint64_t id) override {
    if (!IsOf(tenant, id)) return absl::NotFoundError("no such job");
    return jobs_.at(id);
  }
  absl::StatusOr<std::optional<uint64_t>> FindJob(uint64_t tenant, const std::string& request_id) override {
    for (const auto& [id, job] : jobs_) {
      if (job.tenant == tenant && job.request.request_id() == request_id) return std::optional<uint64_t>(id);
    }
    return std::optional<uint64_t>();
  }
  absl::StatusOr<std::vector<TaskRow>> GetTasks(uint64_t tenant, uint64_t job) override {
    std::vector<TaskRow> rows;
    if (!IsOf(tenant, job)) return rows;
    for (const auto& [id, task] : tasks_) {
      if (task.job == job) rows.push_back(task);
    }
    std::sort(rows.begin(), rows.end(), [](const TaskRow& a, const TaskRow& b) { return a.index < b.index; });
    return rows;
  }
  absl::StatusOr<std::string> GetPlan(uint64_t tenant, uint64_t job) override {
    if (!IsOf(tenant, job)) return absl::NotFoundError("no such plan");
    return Find(plans_, job);
  }
  absl::StatusOr<std::vector<JobRow>> ListJobs(uint64_t tenant, const JobFilter& filter) override {
    std::vector<JobRow> rows;
    for (auto it = jobs_.upper_bound(filter.after); it != jobs_.end(); ++it) {
      if (filter.limit > 0 && static_cast<int>(rows.size()) == filter.limit) break;
      if (it->second.tenant == tenant) rows.push_back(it->second);
    }
    return rows;
  }

  absl::StatusOr<BestEntries> Best(uint64_t tenant, std::span<const v1::BestKey> keys) override {
    BestEntries result;
    std::vector<std::optional<BestEntry>>& answers = result.entries;
    std::set<std::string> classes;
    for (const TuningKey& key : keys_) {
      if (key.tenant == tenant) classes.insert(key.device_class);
    }
    for (const v1::BestKey& wanted : keys) {
      std::string device_class = wanted.device_class();
      if (device_class.empty() && classes.size() == 1) device_class = *classes.begin();
      const TuningKey* chosen = nullptr;
      const auto rank = [&](const TuningKey& key) {
        return std::tuple(std::abs(key.threads - wanted.threads()), -key.threads, wanted.numeric() - key.numeric,
                          -int64_t{key.protocol});
      };
      for (const auto& [key, entry] : best_) {
        if (key.tenant != tenant || key.workload_hash != wanted.workload_hash() || key.device_class != device_class ||
            key.numeric > wanted.numeric()) {
          continue;
        }
        if (chosen == nullptr || rank(key) < rank(*chosen)) chosen = &key;
      }
      if (chosen == nullptr) {
        answers.emplace_back();
        continue;
      }
      BestEntry entry{WithoutWorkload(Filled(best_.at(*chosen).first, false)),
                      chosen->threads == wanted.threads() && chosen->numeric == wanted.numeric()};
      const auto choice = choices_.find({entry.row.record.id(), wanted.model_hash()});
      if (choice != choices_.end()) entry.faster_default = choice->second;
      answers.emplace_back(std::move(entry));
    }
    return result;
  }

  absl::StatusOr<RecordPage> Records(uint64_t tenant, const RecordFilter& filter) override {
    HONE_ASSIGN_OR_RETURN(const NameFilter names, NameFilter::Make(filter.workload_regex));
    RecordPage page;
    for (size_t i = filter.after; i < record_order_.size(); ++i) {
      const uint64_t id = record_order_[i];
      RecordRow row = Filled(id, filter.with_objects);
      const auto best = best_.find(row.key);
      const bool is_best = best != best_.end() && best->second.first == id;
      page.last = i + 1;
      if (row.key.tenant != tenant || (filter.best_only && !is_best)) continue;
      if (!names.Matches(row.record.workload_name())) continue;
      page.rows.push_back(std::move(row));
      page.best.push_back(is_best);
      if (filter.limit > 0 && static_cast<int>(page.rows.size()) == filter.limit) break;
    }
    if (filter.limit == 0 || static_cast<int>(page.rows.size()) < filter.limit) page.last = 0;
    return page;
  }

  // ---- for the simulation's checks ----
  uint64_t epoch() const { return epoch_; }
  const std::map<uint64_t, JobRow>& jobs() const { return jobs_; }
  const std::map<uint64_t, TaskRow>& tasks() const { return tasks_; }
  const std::map<uint64_t, TrialRow>& trials() const { return trials_; }
  const std::map<uint64_t, RecordRow>& records() const { return records_; }
  const std::map<TuningKey, std::pair<uint64_t, double>>& best() const { return best_; }
  bool HasMeasurement(uint64_t trial, uint32_t attempt) const { return measurements_.count({trial, attempt}) != 0; }

 private:
  template <class Map>
  static uint64_t Last(const Map& map) {
    return map.empty() ? 0 : map.rbegin()->first;
  }
  template <class Map, class Key>
  static absl::StatusOr<typename Map::mapped_type> Find(const Map& map, const Key& key) {
    const auto found = map.find(key);
    if (found == map.end()) return absl::NotFoundError("no such row");
    return found->second;
  }

  void Apply(const PutTenant&) {}  // tenants are told apart by their ids alone
  void Apply(const PutWorkload& w) { workloads_.emplace(w.workload.hash(), w.workload); }
  void Apply(const PutDeviceClass& w) { device_classes_[w.row.name] = w.row; }
  void Apply(const PutJob& w) {
    const JobRow& row = w.row();
    for (const auto& [id, job] : jobs_) {
      HONE_CHECK(id == row.id || job.tenant != row.tenant || job.request.request_id() != row.request.request_id())
          << "two jobs of one request";
    }
    jobs_[row.id] = row;
  }
  void Apply(const PutPlan& w) { plans_.emplace(w.job, w.plan); }
  void Apply(const PutTask& w) {
    HONE_CHECK(jobs_.count(w.row.job) != 0 && workloads_.count(w.row.workload_hash) != 0);
    tasks_[w.row.id] = w.row;
  }
  void Apply(const PutTrial& w) {
    CheckKey(w.row.key);
    HONE_CHECK(tasks_.count(w.row.task) != 0) << "trial " << w.row.id << " of task " << w.row.task;
    const auto before = trials_.find(w.row.id);
    if (before != trials_.end()) {
      HONE_CHECK(before->second.trace == w.row.trace && before->second.duel == w.row.duel) << "trial " << w.row.id;
      HONE_CHECK(before->second.attempt <= w.row.attempt) << "the attempt of trial " << w.row.id << " fell";
      HONE_CHECK(before->second.state == TrialState::kLeased || before->second.state == w.row.state)
          << "trial " << w.row.id << " had ended";
    }
    if (!w.row.duel) {
      std::set<uint64_t>& same = candidates_[{w.row.key, w.row.trace}];
      same.erase(w.row.id);
      if (w.row.state != TrialState::kDropped) {
        HONE_CHECK(same.empty()) << "a candidate is tried twice: " << w.row.trace;
        same.insert(w.row.id);
      }
    }
    const bool ended = before != trials_.end() && before->second.state == TrialState::kDone;
    if (w.row.state == TrialState::kDone && !ended) ended_.push_back(w.row.id);
    trials_[w.row.id] = w.row;
  }
  void Apply(const AddMeasurement& w) {
    HONE_CHECK(trials_.count(w.row.trial) != 0);
    measurements_.emplace(std::pair(w.row.trial, w.row.attempt), w.row);
  }
  void Apply(const PutRecord& w) {
    CheckKey(w.row.key);
    const uint64_t id = w.row.record.id();
    RecordRow row = w.row;
    row.record.clear_object();
    row.record.clear_kernel_set();
    const auto [before, added] = records_.emplace(id, row);
    if (added) record_order_.push_back(id);
    if (!added && !before->second.MeasuredHere() && row.MeasuredHere()) {
      if (before->second.record.object_digest() != row.record.object_digest()) objects_.erase(id);
      before->second = std::move(row);
    }
    if (!w.row.record.object().empty()) {
      Apply(PutObject{id, w.row.record.object_digest(), w.row.record.object(), w.row.record.kernel_set()});
    }
  }
  void Apply(const PutObject& w) {
    const auto record = records_.find(w.record);
    if (record == records_.end() || record->second.record.object_digest() != w.digest) return;
    objects_.emplace(w.record, std::pair(w.object, w.kernel_set));
  }
  void Apply(const PruneTrials& w) {
    std::vector<uint64_t> of_key;
    for (const uint64_t id : ended_) {
      const auto found = trials_.find(id);
      if (found != trials_.end() && found->second.key == w.key) of_key.push_back(id);
    }
    const uint64_t latest = Last(trials_);
    for (size_t i = 0; i + static_cast<size_t>(w.keep) < of_key.size(); ++i) {
      const uint64_t id = of_key[i];
      if (id != latest) Forget(id);
    }
  }
  bool MayGo(const TrialRow& trial) const { return trial.state != TrialState::kLeased && trial.id != Last(trials_); }
  bool RecordMayGo(uint64_t id) const {
    const auto best = best_.find(records_.at(id).key);
    return locked_.count(id) == 0 && (best == best_.end() || best->second.first != id);
  }
  void Forget(uint64_t trial) {
    candidates_[{trials_.at(trial).key, trials_.at(trial).trace}].erase(trial);
    std::erase_if(measurements_, [&](const auto& entry) { return entry.first.first == trial; });
    std::erase(ended_, trial);
    trials_.erase(trial);
  }
  void Apply(const Prune& w) {
    for (const uint64_t id : w.trials) {
      const auto found = trials_.find(id);
      if (found != trials_.end() && MayGo(found->second)) Forget(id);
    }
    for (const uint64_t id : w.records) {
      if (records_.count(id) == 0 || !RecordMayGo(id)) continue;
      std::vector<uint64_t> trials;
      for (const auto& [number, trial] : trials_) {
        const bool same = trial.key == records_.at(id).key && trial.trace == records_.at(id).record.trace();
        if (same && MayGo(trial)) trials.push_back(number);
      }
      for (const uint64_t trial : trials) Forget(trial);
      std::erase_if(choices_, [&](const auto& entry) { return entry.first.first == id; });
      objects_.erase(id);
      std::erase(record_order_, id);
      records_.erase(id);
    }
  }
  void Apply(const LockRecord& w) {
    const auto found = records_.find(w.record);
    if (found != records_.end() && found->second.key.tenant == w.tenant) locked_.insert(w.record);
  }
  void Apply(const SetBest& w) {
    CheckKey(w.key);
    HONE_CHECK(records_.count(w.record) != 0) << "a best record that is none";
    best_[w.key] = {w.record, w.median_us};
  }
  void Apply(const PruneObjects& w) {
    std::vector<std::pair<double, uint64_t>> with;
    for (const uint64_t id : record_order_) {
      const RecordRow& row = records_.at(id);
      if (row.key == w.key && objects_.count(id) != 0) with.emplace_back(row.record.median_us(), id);
    }
    std::stable_sort(with.begin(), with.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto best = best_.find(w.key);
    for (size_t i = w.keep; i < with.size(); ++i) {
      if (best == best_.end() || best->second.first != with[i].second) objects_.erase(with[i].second);
    }
  }
  void Apply(const PutChoice& w) {
    const auto record = records_.find(w.record);
    if (record == records_.end() || record->second.key.tenant != w.tenant) return;
    choices_[{w.record, w.model_hash}] = w.faster_default;
  }
  void Apply(const CheckRecord& w) {
    const auto found = records_.find(w.record);
    if (found == records_.end() || found->second.key.tenant != w.tenant || !found->second.MeasuredHere()) return;
    RecordRow& row = found->second;
    if (row.record.object_digest() == w.object_digest) {
      row.record.set_generator(w.generator);
      return;
    }
    row.origin = "stale";
    for (auto& [id, trial] : trials_) {
      if (trial.key != row.key || trial.trace != row.record.trace() || trial.state != TrialState::kDone) continue;
      trial.state = TrialState::kDropped;
      candidates_[{row.key, trial.trace}].erase(id);
      std::erase(ended_, id);
    }
  }
  void Apply(const PutCostModel& w) { models_[{w.tenant, w.device_class, w.kind}] = w.bytes; }

  bool IsOf(uint64_t tenant, uint64_t job) const {
    const auto found = jobs_.find(job);
    return found != jobs_.end() && found->second.tenant == tenant;
  }
  void CheckKey(const TuningKey& key) {
    if (keys_.insert(key).second) key_order_.push_back(key);
    HONE_CHECK(workloads_.count(key.workload_hash) != 0 && device_classes_.count(key.device_class) != 0)
        << "workload and device class are written before the key that names them";
  }
  static RecordRow WithoutWorkload(RecordRow row) {
    row.record.clear_workload_name();
    row.record.clear_workload_text();
    row.record.clear_workload_flop();
    row.record.clear_workload_bytes();
    return row;
  }
  RecordRow Filled(uint64_t id, bool with_object) const {
    RecordRow row = records_.at(id);
    const v1::Workload& workload = workloads_.at(row.key.workload_hash);
    v1::Record& r = row.record;
    r.set_workload_hash(row.key.workload_hash);
    r.set_workload_name(workload.name());
    r.set_workload_text(workload.text());
    r.set_workload_flop(workload.flop());
    r.set_workload_bytes(workload.bytes());
    r.set_device_class(row.key.device_class);
    r.set_threads(row.key.threads);
    r.set_numeric(row.key.numeric);
    r.set_protocol(row.key.protocol);
    const auto object = objects_.find(id);
    if (with_object && object != objects_.end()) {
      r.set_object(object->second.first);
      r.set_kernel_set(object->second.second);
    }
    return row;
  }

  static constexpr int64_t kRowBytes = 100;

  uint64_t epoch_ = 0;
  std::map<std::string, v1::Workload> workloads_;
  std::map<std::string, DeviceClassRow> device_classes_;
  std::map<uint64_t, JobRow> jobs_;
  std::map<uint64_t, std::string> plans_;
  std::map<uint64_t, TaskRow> tasks_;
  std::map<uint64_t, TrialRow> trials_;
  std::vector<uint64_t> ended_;
  std::map<std::pair<TuningKey, std::string>, std::set<uint64_t>> candidates_;
  std::map<std::pair<uint64_t, uint32_t>, MeasurementRow> measurements_;
  std::map<uint64_t, RecordRow> records_;
  std::vector<uint64_t> record_order_;
  std::set<uint64_t> locked_;
  std::map<uint64_t, std::pair<std::string, std::string>> objects_;
  std::map<TuningKey, std::pair<uint64_t, double>> best_;
  std::map<std::tuple<uint64_t, std::string, std::string>, std::string> models_;
  std::map<std::pair<uint64_t, std::string>, std::string> choices_;
  std::set<TuningKey> keys_;
  std::vector<TuningKey> key_order_;  // as they were made
};

}  // namespace hone
