// Figures of the store, printed: how many completions a second are durable, and how long best look-ups take while
// results are committed.
//   hone-database-bench t.db --records 10000,100000,1000000
//   hone-database-bench postgres --records 10000        a private server, with fsync on
//   hone-database-bench postgres://hone@db.example/bench
//   hone-database-bench t.db --filled 1000000           look-ups alone, in a file that an earlier run has filled
//   hone-database-bench t.db --quick                    a moment of each, to see that it runs
// A completion is what the daemon commits for one trial: its lease, its end, the measurement, the record, the task.
// Commits are groups, as the daemon's writer makes them. Look-ups arrive at a fixed rate, whether or not earlier ones
// were answered (an open loop), and a latency counts from the time its look-up was due.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "database/open_store.h"
#include "tests/bench/percentiles.h"
#include "tests/database/postgres/private_server.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

constexpr int kRecordsOfKey = 100;
constexpr int kWorkloadBytes = 3000, kTraceBytes = 1000;  // the texts of a convolution; no two alike

struct Options {
  std::string db;
  std::vector<int64_t> records = {10'000};
  int64_t filled = 0;
  double seconds = 5;
  int group = 256;
  int look_ups_a_second = 10'000, results_a_second = 1'000;
  int readers = 8;
};

std::string Name(int64_t key) { return absl::StrCat("kernel ", key, " ", std::string(kWorkloadBytes, 'w')); }
TuningKey KeyOf(int64_t key) { return TestKey(Name(key)); }
std::string Trace(int64_t number) { return absl::StrCat(std::string(kTraceBytes, 't'), " ", number); }

void Commit(TuningStore& store, uint64_t epoch, const std::vector<Write>& writes) {
  const absl::Status status = store.Commit(epoch, writes);
  HONE_CHECK(status.ok()) << status;
}

class Bench {
 public:
  Bench(const Options& options, TuningStore& store) : options_(options), store_(store) {
    const absl::StatusOr<uint64_t> epoch = store_.BeginEpoch();
    HONE_CHECK(epoch.ok()) << epoch.status();
    epoch_ = *epoch;
    Commit(store_, epoch_, TestGround());
    const absl::StatusOr<StoredState> state = store_.LoadState();
    HONE_CHECK(state.ok()) << state.status();
    next_trial_ = state->last_trial + 1;
    filled_ = options.filled;
  }

  void Completions() {
    std::vector<double> took;
    int64_t done = 0;
    const absl::Time begin = absl::Now();
    while (absl::Now() - begin < absl::Seconds(options_.seconds)) {
      std::vector<Write> writes;
      for (int i = 0; i < options_.group; ++i) AddCompletion(&writes);
      const absl::Time start = absl::Now();
      Commit(store_, epoch_, writes);
      took.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
      done += options_.group;
    }
    const double rate = static_cast<double>(done) / absl::ToDoubleSeconds(absl::Now() - begin);
    std::printf("completions  %8.0f a second, durable, %d a commit: %s\n", rate, options_.group,
                Percentiles(took, 2).c_str());
  }

  // Until there are that many records.
  void Fill(int64_t records) {
    const absl::Time begin = absl::Now();
    for (; filled_ < records; filled_ += kRecordsOfKey) {
      const int64_t key_number = filled_ / kRecordsOfKey;
      const TuningKey key = KeyOf(key_number);
      if (key_number % 5 == 0) Flush(&pending_);
      pending_.push_back(PutWorkload{TestWorkload(Name(key_number))});
      for (int64_t i = filled_; i < filled_ + kRecordsOfKey; ++i) {
        pending_.push_back(PutRecord{TestRecord(key, absl::StrCat("of ", key_number, " ", Trace(i)), 10)});
      }
      const auto& best = std::get<PutRecord>(pending_.back()).row;
      pending_.push_back(SetBest{key, best.record.id(), 1});
    }
    Flush(&pending_);
    std::printf("%lld records, filled in %.0f s\n", static_cast<long long>(filled_),
                absl::ToDoubleSeconds(absl::Now() - begin));
  }

  void LookUps() {
    std::atomic<bool> stop{false};
    std::atomic<int64_t> committed{0};
    std::thread writer([&] {
      constexpr int kCommitsASecond = 20;
      for (absl::Time due = absl::Now(); !stop; due += absl::Seconds(1) / kCommitsASecond) {
        absl::SleepFor(due - absl::Now());
        std::vector<Write> writes;
        for (int i = 0; i < options_.results_a_second / kCommitsASecond; ++i) AddCompletion(&writes);
        Commit(store_, epoch_, writes);
        committed += options_.results_a_second / kCommitsASecond;
      }
    });
    const absl::Time begin = absl::Now();
    const int64_t wanted = static_cast<int64_t>(options_.seconds * options_.look_ups_a_second);
    std::vector<std::vector<double>> took(options_.readers);
    std::vector<std::thread> readers;
    for (int r = 0; r < options_.readers; ++r) {
      readers.emplace_back([&, r] {
        Random random(r);
        for (int64_t i = r; i < wanted; i += options_.readers) {
          const absl::Time due = begin + absl::Seconds(1) * i / options_.look_ups_a_second;
          absl::SleepFor(due - absl::Now());
          v1::BestKey key;
          key.set_workload_hash(KeyOf(random.Below(filled_ / kRecordsOfKey)).workload_hash);
          key.set_device_class("fake/c2");
          key.set_threads(2);
          key.set_numeric(v1::NUMERIC_DEFAULT);
          const absl::StatusOr<BestEntries> best = store_.Best(kLocalTenant, {&key, 1});
          HONE_CHECK(best.ok() && best->entries.at(0).has_value()) << best.status();
          took[r].push_back(absl::ToDoubleMilliseconds(absl::Now() - due));
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    stop = true;
    writer.join();
    std::vector<double> all;
    for (const std::vector<double>& part : took) all.insert(all.end(), part.begin(), part.end());
    std::printf("look-ups     %8.0f a second of %d wanted, %lld records, beside %.0f results a second: %s\n",
                static_cast<double>(all.size()) / seconds, options_.look_ups_a_second, static_cast<long long>(filled_),
                static_cast<double>(committed) / seconds, Percentiles(all, 2).c_str());
  }

 private:
  void AddCompletion(std::vector<Write>* writes) {
    static const TuningKey key = TestKey("conv2d_1");
    const uint64_t id = next_trial_++;
    const std::string trace = Trace(static_cast<int64_t>(id));
    MeasurementRow measurement{.trial = id, .attempt = 1, .epoch = epoch_, .worker = "worker", .outcome = {}};
    measurement.outcome.set_kind(v1::OUTCOME_OK);
    for (int i = 0; i < 10; ++i) measurement.outcome.mutable_timing()->add_samples_us(10 + i);
    writes->push_back(PutTrial{TestTrial(id, key, 1, trace)});
    writes->push_back(PutTrial{TestTrial(id, key, 1, trace, TrialState::kDone, v1::OUTCOME_OK, 10)});
    writes->push_back(AddMeasurement{measurement});
    writes->push_back(PutRecord{TestRecord(key, trace, 10)});
    writes->push_back(PutTask{TestTask(1, 1, 0, "conv2d_1")});
  }
  void Flush(std::vector<Write>* writes) {
    if (!writes->empty()) Commit(store_, epoch_, *writes);
    writes->clear();
  }

  const Options& options_;
  TuningStore& store_;
  uint64_t epoch_ = 0;
  uint64_t next_trial_ = 1;
  int64_t filled_ = 0;
  std::vector<Write> pending_;
};

int Run(Options options) {
  const std::unique_ptr<PrivateServer> server = ServerFor(options.db);
  const auto store = OpenStore(options.db, StoreMode::kWrite);
  HONE_CHECK(store.ok()) << store.status();
  Bench bench(options, **store);
  if (options.filled > 0) {
    bench.LookUps();
    return 0;
  }
  bench.Completions();
  for (const int64_t records : options.records) {
    bench.Fill(records);
    bench.LookUps();
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  bool quick = false;
  CLI::App app("figures of the store");
  app.add_option("db", options.db, "a new file, \"postgres\", or the URL of an empty PostgreSQL database")->required();
  app.add_option("--records", options.records, "look-ups among so many")->delimiter(',')->capture_default_str();
  app.add_option("--filled", options.filled,
                 "the file has so many records by an earlier run: look-ups among them alone");
  app.add_option("--seconds", options.seconds, "of each measurement")->capture_default_str();
  app.add_option("--group", options.group, "completions in a commit")->capture_default_str();
  app.add_option("--look-ups", options.look_ups_a_second, "a second")->capture_default_str();
  app.add_option("--results", options.results_a_second, "a second, committed beside them")->capture_default_str();
  app.add_option("--readers", options.readers, "threads that look up")->capture_default_str();
  app.add_flag("--quick", quick, "a moment of each");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    options.records = {1000};
    options.seconds = 0.2;
    options.look_ups_a_second = 100;
    options.results_a_second = 100;
  }
  return hone::Run(options);
}
