// `hone jobs` and `hone workers`: what a daemon is doing, and with whom.
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/driver/command.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/job_report.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct JobsOptions {
  ServiceOptions service;
  uint64_t id = 0;
  bool json = false;
};

void PrintJob(const v1::JobSnapshot& job, bool json) {
  if (json) {
    std::printf("%s\n", ResultJson(job).dump().c_str());
    return;
  }
  std::printf("job %llu  %s  %s  %s  %s\n", static_cast<unsigned long long>(job.job_id()),
              StateName(job.state()).c_str(), job.model_name().c_str(), ShortDuration(job.seconds()).c_str(),
              ProgressLine(job).c_str());
  if (!job.reason().empty()) std::printf("  %s\n", job.reason().c_str());
}

absl::Status List(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::ListJobsReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().ListJobs(client->Context().get(), {}, &reply)));
  for (const v1::JobSnapshot& job : reply.jobs()) PrintJob(job, options.json);
  return absl::OkStatus();
}

absl::Status Show(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::GetJobRequest request;
  request.set_job_id(options.id);
  v1::JobSnapshot job;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().GetJob(client->Context().get(), request, &job)));
  PrintJob(job, options.json);
  if (!options.json) std::printf("%s", TaskTable(job).c_str());
  return absl::OkStatus();
}

absl::Status Watch(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  HONE_ASSIGN_OR_RETURN(const v1::JobSnapshot last,
                        client->Watch(options.id, absl::Seconds(1), absl::Seconds(60), [&](const v1::JobSnapshot& job) {
                          if (options.json) {
                            std::printf("%s\n", ProgressJson(job).dump().c_str());
                          } else {
                            std::printf("%s\n", ProgressLine(job).c_str());
                          }
                          std::fflush(stdout);
                          return true;
                        }));
  PrintJob(last, options.json);
  return absl::OkStatus();
}

absl::Status Stop(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::StopRequest request;
  request.set_job_id(options.id);
  v1::JobSnapshot job;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().Stop(client->Context().get(), request, &job)));
  PrintJob(job, options.json);
  return absl::OkStatus();
}

absl::Status Workers(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::ListWorkersReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().ListWorkers(client->Context().get(), {}, &reply)));
  for (const v1::WorkerInfo& worker : reply.workers()) {
    if (options.json) {
      const nlohmann::ordered_json line = {{"id", worker.worker_id()},
                                           {"name", worker.name()},
                                           {"state", worker.state()},
                                           {"device_class", worker.profile().device_class()},
                                           {"leases", worker.leases()},
                                           {"trials", worker.trials()},
                                           {"last_seen_seconds", worker.last_seen_seconds()},
                                           {"peak_gflops", worker.profile().peak_gflops_all()},
                                           {"memory_gbps", worker.profile().memory_gbps()}};
      std::printf("%s\n", line.dump().c_str());
      continue;
    }
    std::printf("%-4llu %-24s %-9s %-44s trials %lld, seen %.0f s ago, peak %.0f GFLOP/s, memory %.1f GB/s\n",
                static_cast<unsigned long long>(worker.worker_id()), worker.name().c_str(), worker.state().c_str(),
                worker.profile().device_class().c_str(), static_cast<long long>(worker.trials()),
                worker.last_seen_seconds(), worker.profile().peak_gflops_all(), worker.profile().memory_gbps());
  }
  return absl::OkStatus();
}

using Handler = absl::Status (*)(const JobsOptions&);

void AddHandler(CLI::App& parent, const char* name, const char* help, bool takes_id, Handler handler,
                const std::shared_ptr<JobsOptions>& options, Action* chosen) {
  CLI::App* command = parent.add_subcommand(name, help);
  options->service.AddTo(*command);
  if (takes_id) command->add_option("id", options->id, "the job's number")->required();
  command->add_flag("--json", options->json, "one JSON object a line");
  command->callback([options, chosen, handler] { *chosen = [options, handler] { return handler(*options); }; });
}

}  // namespace

void AddJobsCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<JobsOptions>();
  CLI::App* jobs = app.add_subcommand("jobs", "What a daemon is doing.");
  jobs->require_subcommand(1);
  jobs->footer(
      Examples({"hone jobs list", "hone jobs watch 3", "hone jobs stop 3 --server unix:/run/hone/honed.sock"}));
  AddHandler(*jobs, "list", "All jobs.", false, List, options, chosen);
  AddHandler(*jobs, "show", "One job with its tasks.", true, Show, options, chosen);
  AddHandler(*jobs, "watch", "Follow a job until it ends.", true, Watch, options, chosen);
  AddHandler(*jobs, "stop", "End a job; what it measured stays.", true, Stop, options, chosen);
}

void AddWorkersCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<JobsOptions>();
  CLI::App* workers = app.add_subcommand("workers", "Who measures for a daemon.");
  workers->require_subcommand(1);
  workers->footer(Examples({"hone workers list", "hone workers list --server build-host:7171 --token-file token"}));
  AddHandler(*workers, "list", "All workers the daemon has seen.", false, Workers, options, chosen);
}

}  // namespace hone
