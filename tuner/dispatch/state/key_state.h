// What is known of one tuning key while a job needs it: every trial that ended (by whichever job), the champion, who
// may challenge it, and how the search for it stands. Shared by all jobs that have a task of this key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "database/store/rows.h"
#include "tuner/dispatch/events/observation_log.h"
#include "tuner/dispatch/events/options.h"
#include "tuner/dispatch/events/reporter.h"

namespace hone {

class KeyState {
 public:
  // `number`: of this process' life, what the key is called where it is looked up often.
  KeyState(TuningKey key, uint64_t number) : number(number), key_(std::move(key)) {}
  KeyState(const KeyState&) = delete;

  const uint64_t number;
  std::set<uint64_t> jobs;  // open ones with a task of this key

  // All that earlier jobs left. Until then nothing is lent or asked for this key.
  void Load(const KeyHistory& history, const DispatchOptions& options);
  bool loaded() const { return loaded_; }
  const TuningKey& key() const { return key_; }

  // ---- candidates ----
  bool Knows(const std::string& trace) const { return Of(trace).known; }
  void PrefetchTrace(const std::string& trace) const { traces_.prefetch(trace); }
  void AddKnown(const std::string& trace) { Entry(trace).known = true; }
  void Forget(const std::string& trace) { Entry(trace).known = false; }  // dropped before it had an outcome

  // ---- outcomes, in the order they were made ----
  // `seconds`: what building, verifying and measuring took; 0 when unknown (a restored outcome).
  void Observe(const std::string& trace, v1::OutcomeKind kind, double median_us, double seconds,
               const DispatchOptions& options);
  // A time that a worker measured. One that is far below the best and below all that other principals measured, or
  // where none did other workers, is in doubt: searches do not learn of it and no gain is measured against it, but it
  // may challenge the champion. It is observed once the champion, or what one of those measured, has come near, or once
  // its duel is over: as an invalid timing when it was lost.
  void ObserveTime(const std::string& trace, SharedReporter who, double median_us, double seconds,
                   const DispatchOptions& options);
  void EndDoubts(const DispatchOptions& options);  // of times that the champion, or another's, has come near,
  void EndDoubt(const std::string& trace, const DispatchOptions& options);  // of one whose duel is over

  int observed() const { return observed_; }  // outcomes so far: as many are in the log
  const std::shared_ptr<ObservationLog>& log() const { return log_; }
  int64_t verified() const { return verified_; }
  std::optional<double> TimeOf(const std::string& trace) const { return Of(trace).us; }  // when it was verified
  // Who measured it, in this process or before it; no worker: nobody did, or the store does not say who.
  const Reporter& MeasuredBy(const std::string& trace) const;
  bool MeasuredBefore(const std::string& trace) const { return Of(trace).measured_before; }  // as the history says
  double seconds_per_trial() const { return seconds_per_trial_; }
  int trials_since_gain() const { return trials_since_gain_; }
  // A stalled key has something new to try: it may go on for two batches.
  void GrantMore(const DispatchOptions& options);
  const std::vector<double>& rounds() const { return rounds_; }  // the champion's time after each batch

  // ---- champion and challengers ----
  double best_us() const { return best_us_; }  // 0: none
  const std::string& best_trace() const { return best_trace_; }
  uint64_t best_record() const { return best_record_; }
  void Crown(const std::string& trace, uint64_t record, double us);
  // Of the best record as it was loaded: what made its code, the SHA-256 of that, and the driver it was measured with.
  const std::string& best_generator() const { return best_generator_; }
  const std::string& best_digest() const { return best_digest_; }
  const std::string& best_driver() const { return best_driver_; }
  // The champion's schedule does not work any more: there is none, until another is confirmed.
  void Uncrown();
  // The fastest verified candidate that looks faster than the champion, by this share, and has not met it yet; without
  // a champion the fastest that has not failed to be confirmed as one. nullptr: there is none.
  const std::string* Challenger(double margin) const;
  void MarkDuelled(const std::string& trace);
  // Whether a time that its confirmation did not bear out is confirmed again: once.
  bool ConfirmAgain(const std::string& trace) { return !std::exchange(Entry(trace).confirmed_again, true); }
  int results_since_duel = 0;

  // ---- claims ----
  // Traces of imported records that nobody has measured here, the best one first, then by the time they claim. They are
  // candidates like others: what they claim counts for nothing.
  const std::vector<std::string>& claims() const { return claims_; }

  // ---- search ----
  uint64_t search_request = 0;   // the one under way; 0: none
  uint64_t search_job = 0;       // who asked
  int search_batch = 0;          // how many it asked for
  bool searched = false;         // some search has answered, now or in an earlier job
  int round_size = 0;            // outcomes that make a round; 0: options.batch
  int search_failures = 0;       // in a row
  int64_t fruitless_after = -1;  // outcomes known when it last had nothing; -1: it had
  bool exhausted = false;
  std::vector<std::string> seeds;
  // Champions of siblings that its search has been given.
  bool WasTold(const std::string& trace) const { return Of(trace).told; }
  void MarkTold(const std::string& trace) { Entry(trace).told = true; }

 private:
  // What is known of a trace. A real one has thousands of bytes: its text is kept once, for this and for the log.
  struct OfTrace {
    std::shared_ptr<const std::string> text;
    bool known = false;        // queued, lent or ended
    std::optional<double> us;  // its median, when it was verified
    bool duelled = false;      // was champion, met one, or failed to be confirmed as one
    bool confirmed_again = false;
    bool told = false;
    bool measured_before = false;
    SharedReporter measured_by;  // nullptr: nobody
  };
  struct Challenges {
    double us = 0;
    const std::string* trace = nullptr;  // of OfTrace
    bool operator<(const Challenges& other) const { return us != other.us ? us < other.us : *trace < *other.trace; }
  };
  const OfTrace& Of(const std::string& trace) const;
  OfTrace& Entry(const std::string& trace);  // which is new where the trace was not known; until the next one
  struct Claim {
    SharedReporter who;
    const std::string* trace = nullptr;  // of OfTrace
    double us = 0, seconds = 0;
  };
  bool InDoubt(const Claim& claim, const DispatchOptions& options) const;
  const Claim* FastestOfOthers(const Reporter& who) const;  // nullptr: nobody else measures this key
  void NoteFastest(const Claim& claim);
  void SetTime(OfTrace& of_trace, double us);
  void Observe(OfTrace& of_trace, v1::OutcomeKind kind, double median_us, double seconds,
               const DispatchOptions& options);

  TuningKey key_;
  bool loaded_ = false;
  absl::flat_hash_map<std::string_view, OfTrace> traces_;  // by their texts, which are those of OfTrace
  absl::btree_set<Challenges> challengers_;                // verified and not duelled, fastest first
  std::shared_ptr<ObservationLog> log_ = std::make_shared<ObservationLog>();
  int observed_ = 0;
  std::vector<std::string> claims_;
  std::vector<Claim> doubted_;
  // The least time there is, the least of another principal than its, the least of another worker; fastest first.
  std::vector<Claim> fastest_;
  int64_t verified_ = 0;
  double fastest_us_ = 0;  // of all verified: what a gain is measured against
  int trials_since_gain_ = 0;
  double seconds_per_trial_ = 0;
  std::vector<double> rounds_;
  int in_round_ = 0;
  double best_us_ = 0;
  std::string best_trace_;
  uint64_t best_record_ = 0;
  std::string best_generator_, best_digest_, best_driver_;
};

}  // namespace hone
