// What the dispatcher is told, and what it wants done. The dispatcher itself does no input or output: the service (or a
// simulation) turns requests and the passing of time into events and carries the effects out.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "database/store/rows.h"
#include "database/store/store.h"
#include "hone/v1/fleet.pb.h"
#include "hone/v1/search.pb.h"
#include "hone/v1/tune.pb.h"
#include "tuner/dispatch/events/observation_log.h"

namespace hone {

using Micros = int64_t;  // a monotonic clock of any origin; never wall time
inline constexpr Micros kSecond = 1'000'000;
using ReplyTo = uint64_t;  // whom a Reply is for: chosen by the caller, used once

// ---- events ----
struct Start {};  // once, first: asks for what a restart needs
// `tenant` is the caller's, as the service found it out: jobs and workers of another tenant are not there for it.
struct Submit {
  ReplyTo to = 0;
  v1::SubmitRequest request;
  std::string created;
  Tenant tenant = TenantOf("local");
  bool checked = false;  // CheckSubmit found nothing, before this was posted
};
struct StopJob {
  ReplyTo to = 0;
  uint64_t job = 0;
  uint64_t tenant = kLocalTenant;
};
struct PauseJob {
  ReplyTo to = 0;
  uint64_t job = 0;
  bool paused = true;  // false: it goes on
  uint64_t tenant = kLocalTenant;
};
struct DrainWorkers {
  ReplyTo to = 0;
  std::string name;  // "*": all of the tenant's
  uint64_t tenant = kLocalTenant;
};
// `principal`: who speaks, as the service found it out (the certificate or the token); callers that nothing tells apart
// are one.
struct Hello {
  ReplyTo to = 0;
  v1::HelloRequest request;
  uint64_t tenant = kLocalTenant;
  std::string principal;
};
struct Sync {
  ReplyTo to = 0;
  v1::SyncRequest request;
  std::string utc;
  uint64_t tenant = kLocalTenant;
};  // utc: for the rows, never for a decision
// A worker that only measures would have a candidate built. Held until it is.
struct AskBuild {
  ReplyTo to = 0;
  v1::BuildCall request;
  uint64_t tenant = kLocalTenant;
};
struct CallGone {
  ReplyTo to = 0;
};  // a call that was held was cut: nobody reads the answer any more
struct SearchDone {
  v1::SearchReply reply;
};
struct SearchFailed {
  uint64_t request_id = 0;
  std::string reason;
};  // the process died or answered nonsense
struct HistoryLoaded {
  TuningKey key;
  KeyHistory history;
};
struct OutdatedFound {
  OutdatedPage page;
  std::string utc;  // for the rows
};
struct Committed {
  uint64_t commit = 0;
};
struct ImportLines {
  ReplyTo to = 0;
  v1::ImportReply reply;
  std::vector<Write> writes;
};  // made by PlanImport
struct KeepChoices {
  ReplyTo to = 0;
  v1::KeepChoicesRequest request;
  uint64_t tenant = kLocalTenant;
};
struct ShutDown {};  // workers that sync from now on are told to end
struct Tick {};      // time has passed: due when `Wake` said so

using Event =
    std::variant<Start, Submit, StopJob, PauseJob, DrainWorkers, Hello, Sync, AskBuild, CallGone, SearchDone,
                 SearchFailed, HistoryLoaded, OutdatedFound, Committed, ImportLines, KeepChoices, ShutDown, Tick>;
// What each is called in metrics, in that order.
inline constexpr const char* kEventNames[] = {
    "start",          "submit",    "stop_job",     "pause_job",    "drain_workers", "hello",
    "sync",           "ask_build", "call_gone",    "search_done",  "search_failed", "history_loaded",
    "outdated_found", "committed", "import_lines", "keep_choices", "shut_down",     "tick"};
static_assert(std::size(kEventNames) == std::variant_size_v<Event>);

// ---- effects ----
// Apply atomically, then tell `Committed{id}`. Commits and loads are carried out in the order they were asked for.
struct Commit {
  uint64_t id = 0;
  std::vector<Write> writes;
};
struct LoadHistory {
  TuningKey key;
};  // answered by HistoryLoaded
struct FindOutdated {
  OutdatedFilter filter;
};  // answered by OutdatedFound, in any order; at most one is out
struct AskSearch {
  uint64_t job = 0;
  v1::SearchRequest request;  // without observations:
  std::shared_ptr<const ObservationLog> log;
  int observed = 0;  // so many of the log are to be known to the search
};                   // answered by SearchDone or SearchFailed, in any order
struct Refusal {
  int code = 0;
  std::string message;
};  // absl::StatusCode
using Message = std::variant<v1::SubmitReply, v1::JobSnapshot, v1::HelloReply, v1::SyncReply, v1::BuildOutcome,
                             v1::ImportReply, v1::KeepChoicesReply, v1::ListWorkersReply, Refusal>;
struct Reply {
  ReplyTo to = 0;
  Message message;
};
struct JobEnded {
  uint64_t job = 0;
};  // and its end is durable: whoever asks for it asks the store
// A lease ended without a result, for the log.
struct LeaseTakenBack {
  uint64_t job = 0, task = 0, trial = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  std::string worker;            // "": nobody came back with it after the daemon was started again
  bool worker_was_lost = false;  // or took longer than it may; else it was given back, or that
};
struct Wake {
  Micros at = 0;
};  // send Tick then; the latest Wake replaces earlier ones

using Effect = std::variant<Commit, LoadHistory, FindOutdated, AskSearch, Reply, JobEnded, LeaseTakenBack, Wake>;

}  // namespace hone
