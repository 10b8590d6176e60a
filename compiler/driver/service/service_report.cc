#include "compiler/driver/service/service_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/service/hold_up.h"
#include "compiler/driver/service/job_report.h"
#include "database/store/rows.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

// The hold-ups of a job by the time they took, longest first: {"no_worker", 125.0}.
std::vector<std::pair<std::string, double>> Waits(const v1::JobSnapshot& job) {
  std::vector<std::pair<std::string, double>> waits(job.waited_seconds().begin(), job.waited_seconds().end());
  std::erase_if(waits, [](const auto& wait) { return wait.second < 1; });
  std::sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return waits;
}

std::string TimeText(const v1::JobSnapshot& job) {
  std::string text = absl::StrCat("time: ", ShortDuration(job.seconds()), " since it began");
  const double all = std::max(1e-9, job.seconds());
  const auto share = [all](double seconds) { return 100 * std::min(1.0, seconds / all); };
  absl::StrAppendFormat(&text,
                        "; building %.0f %%, verifying %.0f %%, measuring %.0f %% of one worker's; %.0f %% nobody "
                        "worked on it\n",
                        share(job.build_seconds()), share(job.verify_seconds()), share(job.measure_seconds()),
                        share(job.search_seconds()));
  for (const auto& [name, seconds] : Waits(job)) {
    absl::StrAppend(&text, "  waited ", ShortDuration(seconds), ": ", absl::StrReplaceAll(name, {{"_", " "}}), "\n");
  }
  return text;
}

// Trials a second while it had what it needs; 0 when that is not known.
double WorkingRate(const v1::JobSnapshot& job) {
  double waited = 0;
  for (const auto& [name, seconds] : job.waited_seconds()) waited += name == "paused" ? 0 : seconds;
  const double worked = job.seconds() - waited;
  return worked > 0 ? static_cast<double>(job.trials()) / worked : 0;
}

// What it would take to its end, by its budgets and by what is left to gain.
std::string EndText(const v1::JobSnapshot& job) {
  std::string text;
  const double rate = WorkingRate(job);
  if (job.max_trials() > 0) {
    const int64_t left = std::max<int64_t>(0, job.max_trials() - job.trials());
    absl::StrAppend(&text, "to its end: ", left, " trials",
                    rate > 0 ? absl::StrFormat(", about %s at the %.1f a second it made while it could work",
                                               ShortDuration(static_cast<double>(left) / rate), rate)
                             : "",
                    "\n");
  }
  if (job.max_seconds() > 0) {
    absl::StrAppend(&text, "to its end: ", ShortDuration(std::max(0.0, job.max_seconds() - job.seconds())),
                    " of its budget of seconds\n");
  }
  int open = 0;
  double now_us = 0, bound_us = 0;
  for (const v1::TaskSnapshot& task : job.tasks()) {
    open += task.state() == "open";
    if (task.best_us() <= 0 || task.lower_bound_us() <= 0) continue;
    now_us += task.weight() * task.best_us();
    bound_us += task.weight() * std::min(task.best_us(), task.lower_bound_us());
  }
  absl::StrAppend(&text, "tasks: ", open, " of ", job.tasks_size(), " may still gain");
  if (bound_us > 0) {
    absl::StrAppendFormat(&text,
                          "; those measured take %.3f ms, and no machine of this kind does them in less than %.3f ms",
                          now_us / 1e3, bound_us / 1e3);
  }
  return text + "\n";
}

std::string WorkText(const v1::JobExplanation& explanation) {
  int64_t lent = 0;
  std::vector<std::string> phases;
  for (const char* phase : {"measuring", "verified", "verifying", "building", "queued"}) {
    const auto found = explanation.lent().find(phase);
    if (found == explanation.lent().end()) continue;
    lent += found->second;
    phases.push_back(absl::StrCat(found->second, " ", phase));
  }
  std::string text = absl::StrCat("work: ", explanation.queued(), " candidates wait for a worker, ", lent, " are lent",
                                  phases.empty() ? "" : " (" + absl::StrJoin(phases, ", ") + ")", ", ",
                                  explanation.searches(), " searches are under way");
  if (explanation.retried() > 0) absl::StrAppend(&text, "; ", explanation.retried(), " are tried again");
  text += "\n";
  if (explanation.jobs_before() > 0) {
    absl::StrAppend(&text, "turn: ", explanation.jobs_before(),
                    " other jobs had less of the workers, and are lent first\n");
  }
  return text;
}

}  // namespace

std::string WorkerText(const v1::WorkerInfo& worker) {
  std::string text = absl::StrFormat(
      "%-4d %-24s %-9s %-44s trials %d, seen %.0f s ago, peak %.0f GFLOP/s, memory %.1f GB/s", worker.worker_id(),
      worker.name(), worker.state(), worker.profile().device_class(), worker.trials(), worker.last_seen_seconds(),
      worker.profile().peak_gflops_all(), worker.profile().memory_gbps());
  if (!worker.probe().empty()) absl::StrAppend(&text, ", probe ", worker.probe());
  text += "\n";
  if (worker.role() == "build") text += "     it builds for workers that only measure\n";
  if (worker.role() == "measure") text += "     it measures what other workers build\n";
  if (!worker.waiting_for().empty()) absl::StrAppend(&text, "     it waits for ", worker.waiting_for(), "\n");
  if (!worker.missing_layers().empty()) {
    absl::StrAppend(&text, "     its sandbox lacks ", absl::StrJoin(worker.missing_layers(), ", "), "\n");
  }
  return text;
}

nlohmann::ordered_json WorkerJson(const v1::WorkerInfo& worker) {
  return {{"id", worker.worker_id()},
          {"name", worker.name()},
          {"state", worker.state()},
          {"role", worker.role()},
          {"waiting_for", worker.waiting_for()},
          {"device_class", worker.profile().device_class()},
          {"leases", worker.leases()},
          {"trials", worker.trials()},
          {"last_seen_seconds", worker.last_seen_seconds()},
          {"peak_gflops", worker.profile().peak_gflops_all()},
          {"memory_gbps", worker.profile().memory_gbps()},
          {"probe", worker.probe()},
          {"missing_layers", worker.missing_layers()}};
}

std::string QuotaText(const v1::DatabaseQuota& quota) {
  constexpr double kMiB = 1 << 20;
  return absl::StrFormat("quota: %.1f of %.1f MiB; %d trials and %d records were taken since the daemon began%s\n",
                         static_cast<double>(quota.bytes()) / kMiB, static_cast<double>(quota.most_bytes()) / kMiB,
                         quota.pruned_trials(), quota.pruned_records(),
                         quota.nothing_left() ? "; what is left must stay: raise honed's --max-database-bytes" : "");
}

std::string StatusText(const v1::ServiceStatus& status, const ServiceOptions& service) {
  std::string text = absl::StrFormat("daemon: hone %s, up %s, term %d\n", status.version(),
                                     ShortDuration(status.up_seconds()), status.term());
  const std::string remedy = RemedyFor(status.hold_up(), service, 0);
  absl::StrAppend(&text, "database: ",
                  status.hold_up() == v1::HOLD_UP_NONE
                      ? "can be written"
                      : absl::StrCat(status.held_up_by(), remedy.empty() ? "" : "; ", remedy),
                  "\n");
  if (status.has_quota()) absl::StrAppend(&text, QuotaText(status.quota()));
  absl::StrAppend(&text, "searches: ", status.searches(), " of ", status.most_searches(), " at work\n");
  if (!status.missing_layers().empty()) {
    absl::StrAppend(&text, "     their sandbox lacks ", absl::StrJoin(status.missing_layers(), ", "), "\n");
  }
  absl::StrAppend(&text, "candidates: ", status.queued(), " wait for a worker, ", status.lent(), " are lent\n");
  absl::StrAppend(&text, "jobs: ", status.jobs_size() == 0 ? "none waits or runs\n" : "\n");
  for (const v1::JobSnapshot& job : status.jobs()) {
    absl::StrAppend(&text, "  ", job.job_id(), "  ", job.paused() ? "paused" : StateName(job.state()), "  ",
                    job.model_name(), "  ", ProgressLine(job), "\n");
    const std::string words = HoldUpText(job, service);
    if (!words.empty()) {
      absl::StrAppend(&text, "     waiting ", ShortDuration(job.held_up_seconds()), ": ", words, "\n");
    }
  }
  absl::StrAppend(&text, "workers: ", status.workers_size() == 0 ? "none\n" : "\n");
  for (const v1::WorkerInfo& worker : status.workers()) absl::StrAppend(&text, "  ", WorkerText(worker));
  return text;
}

nlohmann::ordered_json StatusJson(const v1::ServiceStatus& status) {
  nlohmann::ordered_json json = {{"version", status.version()},
                                 {"up_seconds", status.up_seconds()},
                                 {"term", status.term()},
                                 {"waiting_for", status.held_up_by()},
                                 {"searches", status.searches()},
                                 {"most_searches", status.most_searches()},
                                 {"missing_layers", status.missing_layers()},
                                 {"allowed_missing_layers", status.allowed_missing_layers()},
                                 {"queued", status.queued()},
                                 {"lent", status.lent()},
                                 {"database_bytes", status.quota().bytes()},
                                 {"max_database_bytes", status.quota().most_bytes()},
                                 {"pruned_trials", status.quota().pruned_trials()},
                                 {"pruned_records", status.quota().pruned_records()},
                                 {"jobs", nlohmann::ordered_json::array()},
                                 {"workers", nlohmann::ordered_json::array()}};
  for (const v1::JobSnapshot& job : status.jobs()) json["jobs"].push_back(ProgressJson(job));
  for (const v1::WorkerInfo& worker : status.workers()) json["workers"].push_back(WorkerJson(worker));
  return json;
}

std::string ExplanationText(const v1::JobExplanation& explanation, const ServiceOptions& service) {
  const v1::JobSnapshot& job = explanation.job();
  std::string text;
  if (!IsOpen(job.state())) {
    absl::StrAppend(&text, "it has ended: ", StateName(job.state()), job.reason().empty() ? "" : ", ", job.reason(),
                    "\n");
    return text + TimeText(job);
  }
  const std::string words = HoldUpText(job, service);
  absl::StrAppend(
      &text, "held up: ",
      words.empty() ? "by nothing" : absl::StrCat("for ", ShortDuration(job.held_up_seconds()), ": ", words), "\n",
      TimeText(job), WorkText(explanation));
  for (const v1::WorkerFit& fit : explanation.workers()) {
    const v1::WorkerInfo& worker = fit.worker();
    absl::StrAppend(&text, "worker ", worker.name(), ": ", worker.state(), ", ",
                    fit.misfit().empty() ? absl::StrCat("holds ", fit.leases(), " of its candidates")
                                         : absl::StrCat("does not fit: ", fit.misfit()),
                    worker.waiting_for().empty() ? "" : ", waits for " + worker.waiting_for(), "\n");
  }
  return text + EndText(job);
}

nlohmann::ordered_json ExplanationJson(const v1::JobExplanation& explanation) {
  const v1::JobSnapshot& job = explanation.job();
  nlohmann::ordered_json json = ResultJson(job);
  json["event"] = "explanation";
  json["hold_up"] = job.held_up_by();
  json["hold_up_seconds"] = job.held_up_seconds();
  json["waited_seconds"] = nlohmann::ordered_json::object();
  for (const auto& [name, seconds] : Waits(job)) json["waited_seconds"][name] = seconds;
  json["queued"] = explanation.queued();
  json["lent"] = nlohmann::ordered_json::object();
  const std::map<std::string, int64_t> lent(explanation.lent().begin(), explanation.lent().end());
  for (const auto& [phase, count] : lent) json["lent"][phase] = count;
  json["retried"] = explanation.retried();
  json["searches"] = explanation.searches();
  json["jobs_before"] = explanation.jobs_before();
  json["workers"] = nlohmann::ordered_json::array();
  for (const v1::WorkerFit& fit : explanation.workers()) {
    nlohmann::ordered_json worker = WorkerJson(fit.worker());
    worker["misfit"] = fit.misfit();
    worker["leases_of_job"] = fit.leases();
    json["workers"].push_back(std::move(worker));
  }
  return json;
}

}  // namespace hone
