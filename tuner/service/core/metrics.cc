#include "tuner/service/core/metrics.h"

#include <initializer_list>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hone {
namespace {

// Lines of one metric. `labels` are whole: `{state="idle"}`.
class Page {
 public:
  void Metric(const char* name, const char* type, const char* help,
              std::initializer_list<std::pair<std::string, double>> values) {
    Head(name, type, help);
    for (const auto& [labels, value] : values) Value(name, labels, value);
  }
  void Head(const char* name, const char* type, const char* help) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void Value(const std::string& name, const std::string& labels, double value) {
    absl::StrAppend(&text_, name, labels, " ", value, "\n");
  }
  void Histogram(const std::string& name, const char* help, const Durations& durations) {
    Head(name.c_str(), "histogram", help);
    Series(name, "", durations);
  }
  // Those kinds of events that there were.
  void Histogram(const std::string& name, const char* help, const EventDurations& durations) {
    Head(name.c_str(), "histogram", help);
    for (size_t kind = 0; kind < durations.of.size(); ++kind) {
      if (durations.of[kind].count() == 0) continue;
      Series(name, absl::StrCat("event=\"", kEventNames[kind], "\""), durations.of[kind]);
    }
  }
  std::string text() && { return std::move(text_); }

 private:
  void Series(const std::string& name, const std::string& label, const Durations& durations) {
    const std::string before = label.empty() ? "{" : absl::StrCat("{", label, ",");
    int64_t below = 0;
    for (size_t i = 0; i < durations.bounds.size(); ++i) {
      below += durations.counts[i];
      Value(name + "_bucket", absl::StrCat(before, "le=\"", durations.bounds[i], "\"}"), static_cast<double>(below));
    }
    const std::string whole = label.empty() ? "" : absl::StrCat("{", label, "}");
    Value(name + "_bucket", before + "le=\"+Inf\"}", static_cast<double>(durations.count()));
    Value(name + "_sum", whole, durations.sum);
    Value(name + "_count", whole, static_cast<double>(durations.count()));
  }

  std::string text_;
};

std::string Label(const char* name, const std::string& value) { return absl::StrCat("{", name, "=\"", value, "\"}"); }

double Number(int64_t count) { return static_cast<double>(count); }

void PutDaemon(const ServiceMetrics& m, Page& page) {
  page.Metric("hone_build_info", "gauge", "The release that runs.", {{Label("version", m.version), 1}});
  page.Metric("hone_up_seconds", "gauge", "Since the daemon began.", {{"", m.up_seconds}});
  page.Metric("hone_leads", "gauge", "1 for the daemon that leads its database.", {{"", m.leads ? 1.0 : 0.0}});
  page.Metric("hone_term", "gauge", "Counts the daemons that the database has had.",
              {{"", Number(static_cast<int64_t>(m.term))}});
}

void PutDatabase(const ServiceMetrics& m, Page& page) {
  page.Metric("hone_database_writable", "gauge", "1 while the database takes writes.", {{"", m.writable ? 1.0 : 0.0}});
  page.Metric("hone_database_cache_bytes", "gauge", "Pages of the database in memory.",
              {{"", Number(m.database_cache_bytes)}});
  if (m.quota.has_value()) {
    page.Metric("hone_database_bytes", "gauge", "That rows take, as of the latest look.",
                {{"", Number(m.quota->bytes)}});
    page.Metric("hone_database_quota_bytes", "gauge", "That they may take.", {{"", Number(m.quota->most_bytes)}});
    page.Metric(
        "hone_pruned_total", "counter", "Rows that the quota took.",
        {{Label("kind", "trial"), Number(m.quota->trials)}, {Label("kind", "record"), Number(m.quota->records)}});
  }
}

void PutStates(const ServiceMetrics& m, Page& page) {
  page.Metric("hone_jobs", "gauge", "Jobs that have not ended, by state.",
              {{Label("state", "waiting"), Number(m.counts.jobs_waiting)},
               {Label("state", "running"), Number(m.counts.jobs_running)},
               {Label("state", "paused"), Number(m.counts.jobs_paused)}});
  page.Metric("hone_workers", "gauge", "Workers by state.",
              {{Label("state", "idle"), Number(m.counts.workers_idle)},
               {Label("state", "busy"), Number(m.counts.workers_busy)},
               {Label("state", "draining"), Number(m.counts.workers_draining)},
               {Label("state", "lost"), Number(m.counts.workers_lost)}});
  page.Metric("hone_workers_held_up", "gauge", "Workers that say what keeps them from work.",
              {{"", Number(m.counts.workers_waiting)}});
  page.Metric("hone_candidates_queued", "gauge", "Candidates that wait for a worker.", {{"", Number(m.counts.queued)}});
  page.Metric(
      "hone_candidates_lent", "gauge", "Candidates that workers hold, by what they said of them last.",
      {{Label("phase", "queued"), Number(m.counts.lent[v1::PHASE_UNSPECIFIED] + m.counts.lent[v1::PHASE_QUEUED])},
       {Label("phase", "building"), Number(m.counts.lent[v1::PHASE_BUILDING])},
       {Label("phase", "verifying"), Number(m.counts.lent[v1::PHASE_VERIFYING])},
       {Label("phase", "verified"), Number(m.counts.lent[v1::PHASE_VERIFIED])},
       {Label("phase", "measuring"), Number(m.counts.lent[v1::PHASE_MEASURING])}});
  page.Metric("hone_builds", "gauge", "Builds that workers which only measure have asked for.",
              {{Label("state", "waiting"), Number(m.counts.builds_waiting)},
               {Label("state", "lent"), Number(m.counts.builds_lent)}});
  page.Metric("hone_searches", "gauge", "Batches of candidates that a search was asked for.",
              {{"", Number(m.counts.searches)}});
  page.Metric("hone_watches", "gauge", "Clients that watch a job.", {{"", Number(m.watches)}});
}

void PutCounters(const ServiceMetrics& m, Page& page) {
  const DispatchCounters& counters = m.counters;
  page.Head("hone_results_total", "counter", "Reports of workers that counted, by outcome.");
  for (size_t kind = 1; kind < counters.results.size(); ++kind) {
    const std::string name = v1::OutcomeKind_Name(static_cast<v1::OutcomeKind>(kind));
    page.Value("hone_results_total", Label("outcome", absl::AsciiStrToLower(absl::StripPrefix(name, "OUTCOME_"))),
               Number(counters.results[kind]));
  }
  const auto counter = [&](const char* name, const char* help, int64_t value) {
    page.Metric(name, "counter", help, {{"", Number(value)}});
  };
  counter("hone_results_superseded_total", "Reports of leases that were over, or never the worker's.",
          counters.superseded);
  counter("hone_leases_total", "Candidates lent.", counters.lent);
  counter("hone_leases_given_back_total", "By workers that drain or are not fit to measure.", counters.given_back);
  counter("hone_leases_taken_back_total", "Leases that ended without a result.", counters.taken_back);
  counter("hone_builds_total", "Builds made by workers that only build.", counters.builds);
  counter("hone_builds_taken_back_total", "Leases of builds that ended without a result.", counters.builds_taken_back);
  counter("hone_workers_lost_total", "Workers that were silent for longer than a lease.", counters.workers_lost);
  counter("hone_workers_cut_off_total", "Of these, came back as they were: the network was lost, not they.",
          counters.workers_cut_off);
  counter("hone_best_changes_total", "Kernels for which a faster program became the best.", counters.champions);
  counter("hone_searches_failed_total", "Batches that a search did not answer.", counters.searches_failed);
  counter("hone_search_crashes_total", "Search processes that died or had to be killed.", m.search_crashes);
  counter("hone_looked_at_total", "Jobs, workers and keys that a rule of the dispatcher was applied to.",
          counters.looked_at);
}

}  // namespace

void Durations::Add(double seconds) {
  size_t bucket = 0;
  while (bucket < bounds.size() && seconds > bounds[bucket]) ++bucket;
  ++counts[bucket];
  sum += seconds;
}

int64_t Durations::count() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

std::string MetricsText(const ServiceMetrics& m) {
  Page page;
  PutDaemon(m, page);
  PutDatabase(m, page);
  PutStates(m, page);
  PutCounters(m, page);
  page.Histogram("hone_commit_seconds", "Transactions of the database.", m.commits);
  page.Histogram("hone_event_seconds", "What the dispatcher took for an event, and carrying out what it decided.",
                 m.events);
  page.Histogram("hone_event_processor_seconds", "Processor time of the same.", m.event_work);
  return std::move(page).text();
}

}  // namespace hone
