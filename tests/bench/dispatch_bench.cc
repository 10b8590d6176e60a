// What an event costs the dispatcher, with nothing around it: no service, no database, no other thread.
//   hone-dispatch-bench                  2,000 workers with four leases each, 1,000 jobs
//   hone-dispatch-bench --between-mib 8  the caches hold something else when an event comes, as in a busy daemon
//   hone-dispatch-bench --quick          a moment, to see that it runs
// Every commit is durable at once. One row for each kind of event that came: of `sync` one for calls that report and
// one for those that ask.
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "tests/bench/load/load_outcome.h"
#include "tests/bench/percentiles.h"
#include "tests/tuner/fake_task.h"
#include "tuner/dispatch/dispatcher.h"

namespace hone {
namespace {

struct Options {
  int workers = 2000, jobs = 1000, rounds = 20, between_mib = 0;
  uint32_t credits = 4;
};

class Fleet {
 public:
  explicit Fleet(const Options& options)
      : options_(options),
        between_(static_cast<size_t>(options.between_mib) << 20),
        dispatcher_({.max_jobs = 100'000, .searches = 4, .stall_trials = 1'000'000}, 1, {}) {
    Do(Start{});
    for (int i = 0; i < options_.jobs; ++i) Submit(i);
    held_.resize(static_cast<size_t>(options_.workers));
    for (int i = 0; i < options_.workers; ++i) Hello(i);
    for (int i = 0; i < options_.workers; ++i) Sync(i);
  }

  // Every worker reports what it holds, and asks for as much again.
  void Round() {
    for (int i = 0; i < options_.workers; ++i) {
      now_ += 500;
      if (!held_[static_cast<size_t>(i)].empty()) Sync(i);
    }
  }

  void Forget() { took_.clear(); }
  void Print() {
    for (auto& [what, milliseconds] : took_) {
      std::printf("%-28s %8zu  %s\n", what.c_str(), milliseconds.size(), Percentiles(milliseconds, 4).c_str());
    }
  }

 private:
  static std::string Name(int worker) { return absl::StrCat("worker ", worker, " life 0"); }

  void Submit(int number) {
    v1::SubmitRequest request;
    request.set_request_id(absl::StrCat("job ", number));
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    *request.add_tasks() = FakeTask(absl::StrCat("dense_", number));
    Do(hone::Submit{++calls_, std::move(request), "2026-01-01T00:00:00Z"});
  }
  void Hello(int worker) {
    v1::HelloRequest request;
    request.set_worker_name(Name(worker));
    request.set_name_key(Name(worker));
    request.set_session(Name(worker));
    request.set_threads(2);
    request.set_can_build(true);
    request.set_can_measure(true);
    request.mutable_profile()->set_device_class("fake/c2");
    request.mutable_profile()->set_target("cpu:fake");
    request.mutable_profile()->set_cores(2);
    Do(hone::Hello{++calls_, std::move(request)});
  }
  void Sync(int worker) {
    v1::SyncRequest request;
    request.set_session(Name(worker));
    request.set_seq(++seq_);
    request.set_credits(options_.credits);
    for (const v1::LeaseId& id : std::exchange(held_[static_cast<size_t>(worker)], {})) {
      v1::TrialResult& result = *request.add_results();
      *result.mutable_id() = id;
      *result.mutable_outcome() = LoadOutcome(id.trial());
    }
    worker_of_call_[++calls_] = worker;
    Do(hone::Sync{calls_, std::move(request), "2026-01-01T00:00:01Z"});
  }

  void Do(Event first) {
    std::deque<Event> events;
    events.push_back(std::move(first));
    for (; !events.empty(); events.pop_front()) {
      for (Effect& effect : Step(std::move(events.front()))) CarryOut(effect, events);
    }
  }
  std::vector<Effect> Step(Event event) {
    std::string what = kEventNames[event.index()];
    if (const hone::Sync* sync = std::get_if<hone::Sync>(&event)) {
      what += sync->request.results().empty() ? ", asks" : ", reports";
    }
    for (size_t at = 0; at < between_.size(); at += 64) ++between_[at];
    const auto start = std::chrono::steady_clock::now();
    std::vector<Effect> effects = dispatcher_.Step(now_, std::move(event));
    took_[what].push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    return effects;
  }
  void CarryOut(Effect& effect, std::deque<Event>& events) {
    if (const Commit* commit = std::get_if<Commit>(&effect)) {
      events.emplace_back(Committed{commit->id});
    } else if (const LoadHistory* load = std::get_if<LoadHistory>(&effect)) {
      events.emplace_back(HistoryLoaded{load->key, {}});
    } else if (const AskSearch* ask = std::get_if<AskSearch>(&effect)) {
      v1::SearchReply reply;
      reply.set_request_id(ask->request.request_id());
      for (int i = 0; i < ask->request.batch(); ++i) {
        reply.add_candidates()->set_trace(absl::StrCat("candidate ", ++candidates_));
      }
      events.emplace_back(SearchDone{std::move(reply)});
    } else if (const Reply* reply = std::get_if<Reply>(&effect)) {
      const v1::SyncReply* sync = std::get_if<v1::SyncReply>(&reply->message);
      if (sync == nullptr) return;
      std::vector<v1::LeaseId>& held = held_[static_cast<size_t>(worker_of_call_.at(reply->to))];
      for (const v1::Lease& lease : sync->want()) held.push_back(lease.id());
    }
  }

  const Options options_;
  std::vector<char> between_;
  Dispatcher dispatcher_;
  Micros now_ = kSecond;
  uint64_t seq_ = 0, candidates_ = 0;
  ReplyTo calls_ = 0;
  std::map<ReplyTo, int> worker_of_call_;
  std::vector<std::vector<v1::LeaseId>> held_;  // by worker
  std::map<std::string, std::vector<double>> took_;
};

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  bool quick = false;
  CLI::App app("what an event costs the dispatcher");
  app.add_option("--workers", options.workers)->capture_default_str();
  app.add_option("--jobs", options.jobs, "of a task each")->capture_default_str();
  app.add_option("--credits", options.credits, "leases that a worker takes at once")->capture_default_str();
  app.add_option("--rounds", options.rounds, "reports of every worker")->capture_default_str();
  app.add_option("--between-mib", options.between_mib, "memory that is written before each event")
      ->capture_default_str();
  app.add_flag("--quick", quick, "a moment, to see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    options.workers = 20;
    options.jobs = 10;
    options.rounds = 2;
  }
  hone::Fleet fleet(options);
  fleet.Round();
  fleet.Forget();
  for (int round = 0; round < options.rounds; ++round) fleet.Round();
  fleet.Print();
  return 0;
}
