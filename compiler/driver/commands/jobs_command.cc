// `hone jobs`: what a daemon is doing.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/service/hold_up.h"
#include "compiler/driver/service/job_report.h"
#include "compiler/driver/service/service_report.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/rows.h"
#include "database/store/store.h"
#include "nlohmann/json.hpp"
#include "tuner/service/client.h"
#include "tuner/service/core/stored_jobs.h"

namespace hone {
namespace {

struct JobsOptions {
  ServiceOptions service;
  uint64_t id = 0;
  std::string wait = "1m";
  bool json = false;
};

void PrintJobLine(const v1::JobSnapshot& job) {
  const bool live = IsOpen(job.state());
  std::printf("job %llu  %s  %s  %s  %s\n", static_cast<unsigned long long>(job.job_id()),
              live && job.stopping() ? "stopping"
              : live && job.paused() ? "paused"
                                     : StateName(job.state()).c_str(),
              job.model_name().c_str(), ShortDuration(job.seconds()).c_str(),
              (live ? ProgressLine(job) : TrialsText(job)).c_str());
}

// One line, and what it waits for on the next.
void PrintJob(const v1::JobSnapshot& job, const JobsOptions& options) {
  if (options.json) {
    std::printf("%s\n", ResultJson(job).dump().c_str());
    return;
  }
  PrintJobLine(job);
  if (job.part_of() != 0) {
    std::printf("  a part of job %llu, for %s\n", static_cast<unsigned long long>(job.part_of()), job.target().c_str());
  }
  if (!job.part_jobs().empty()) {
    std::printf("  for %s; for other targets: jobs %s\n", job.target().c_str(),
                absl::StrJoin(job.part_jobs(), ", ").c_str());
  }
  if (const std::string words = HoldUpText(job, options.service); !words.empty()) {
    std::printf("  waiting %s: %s\n", ShortDuration(job.held_up_seconds()).c_str(), words.c_str());
  } else if (!job.reason().empty()) {
    std::printf("  %s\n", job.reason().c_str());
  }
  if (!job.missing_layers().empty()) {
    std::printf("  built or measured in a sandbox that lacks %s\n", absl::StrJoin(job.missing_layers(), ", ").c_str());
  }
}

// A number that is none's, with the command that lists those there are.
absl::Status Explained(absl::Status status, const JobsOptions& options) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat("there is no job ", options.id, "; ", HoneProgram(), " jobs list",
                                          ServiceFlags(options.service), " shows those there are"));
}

// Without a daemon the database says what there is: when none is named and none runs on it.
bool FromFile(const JobsOptions& options) {
  return options.service.server.empty() && AddressOfDaemon(options.service.database()).empty();
}
absl::StatusOr<std::vector<v1::JobSnapshot>> JobsInFile(const JobsOptions& options) {
  if (options.service.db.empty() && !std::filesystem::exists(options.service.database())) {
    std::fprintf(stderr, "no job yet: the first hone tune makes %s\n", options.service.database().c_str());
    return std::vector<v1::JobSnapshot>();
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options.service));
  return StoredJobs(*store);
}

absl::Status List(const JobsOptions& options) {
  if (FromFile(options)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::JobSnapshot> jobs, JobsInFile(options));
    for (const v1::JobSnapshot& job : jobs) PrintJob(job, options);
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  bool none = true;
  v1::ListJobsRequest page;
  do {
    v1::ListJobsReply reply;
    HONE_RETURN_IF_ERROR(FromGrpc(client->tune().ListJobs(client->Context().get(), page, &reply)));
    for (const v1::JobSnapshot& job : reply.jobs()) PrintJob(job, options);
    none = none && reply.jobs().empty();
    page.set_after(reply.next());
  } while (page.after() != 0);
  if (none && !options.json) std::printf("none\n");
  return absl::OkStatus();
}

absl::Status Show(const JobsOptions& options) {
  if (FromFile(options)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::JobSnapshot> jobs, JobsInFile(options));
    for (const v1::JobSnapshot& job : jobs) {
      if (job.job_id() != options.id) continue;
      PrintJob(job, options);
      if (!options.json) std::printf("%s", TaskTable(job).c_str());
      return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat("there is no job ", options.id, " in ", options.service.database(),
                                            "; hone jobs list shows those there are"));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  const absl::StatusOr<v1::JobSnapshot> got = client->GetJob(options.id);
  HONE_RETURN_IF_ERROR(Explained(got.status(), options));
  const v1::JobSnapshot& job = *got;
  PrintJob(job, options);
  if (options.json) return absl::OkStatus();
  if (const std::string picks = FirstPicks(job); !picks.empty()) std::printf("  %s\n", picks.c_str());
  std::printf("%s", TaskTable(job).c_str());
  return absl::OkStatus();
}

// The last snapshot of a job that ends while the daemon answers; exit code 5 when it does not for a minute.
absl::StatusOr<v1::JobSnapshot> Follow(DaemonClient& client, const JobsOptions& options, absl::Duration patience,
                                       const std::function<void(const v1::JobSnapshot&)>& seen) {
  std::string away;
  absl::StatusOr<v1::JobSnapshot> last =
      client.Watch(options.id, absl::Seconds(1), [&](const DaemonClient::Sight& sight) {
        if (sight.fresh) seen(*sight.snapshot);
        if (sight.silence < patience) return true;
        away = absl::StrCat("the daemon at ", client.address(), " has not answered for ",
                            absl::FormatDuration(patience), sight.away.empty() ? "" : ": ", sight.away);
        return false;
      });
  if (!away.empty()) return WithExitCode(ExitCode::kNoService, absl::UnavailableError(away));
  if (!last.ok()) return Explained(last.status(), options);
  return last;
}

absl::Status Watch(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  HONE_ASSIGN_OR_RETURN(
      const v1::JobSnapshot last, Follow(*client, options, absl::Minutes(1), [&](const v1::JobSnapshot& job) {
        const std::string words = HoldUpText(job, options.service);
        if (options.json) {
          std::printf("%s\n", ProgressJson(job).dump().c_str());
        } else if (!words.empty()) {
          std::printf("waiting %s: %s\n", ShortDuration(job.held_up_seconds()).c_str(), words.c_str());
        } else {
          std::printf("%s\n", ProgressLine(job).c_str());
        }
        std::fflush(stdout);
      }));
  PrintJob(last, options);
  return absl::OkStatus();
}

// Says what became of the job: what is under work is finished first, for up to `wait`.
absl::Status Stop(const JobsOptions& options) {
  const absl::StatusOr<double> wait = ParseDuration(options.wait);
  if (!wait.ok()) return Annotate(wait.status(), "--wait");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::StopRequest request;
  request.set_job_id(options.id);
  v1::JobSnapshot job;
  HONE_RETURN_IF_ERROR(Explained(FromGrpc(client->tune().Stop(client->Context().get(), request, &job)), options));
  const bool had_ended = !IsOpen(job.state());
  const absl::Time end = MonotonicNow() + absl::Seconds(*wait);
  if (!had_ended) {
    v1::JobSnapshot last;
    HONE_ASSIGN_OR_RETURN(last, client->Watch(options.id, absl::Milliseconds(200),
                                              [&](const auto& sight) { return MonotonicNow() < end; }));
    if (last.state() != v1::JOB_STATE_UNSPECIFIED) job = last;
  }
  if (options.json) {
    PrintJob(job, options);
  } else if (had_ended) {
    std::printf("job %llu had ended before: %s, %lld trials\n", static_cast<unsigned long long>(job.job_id()),
                StateName(job.state()).c_str(), static_cast<long long>(job.trials()));
  } else if (!IsOpen(job.state())) {
    std::printf("job %llu is %s: %lld trials are kept\n", static_cast<unsigned long long>(job.job_id()),
                StateName(job.state()).c_str(), static_cast<long long>(job.trials()));
  }
  if (!IsOpen(job.state())) return absl::OkStatus();
  const std::string words = HoldUpText(job, options.service);
  return WithExitCode(
      ExitCode::kNoService,
      absl::UnavailableError(absl::StrCat(
          "job ", job.job_id(), " is told to stop, and has not within ", options.wait, ": ", job.in_flight(),
          " trials are under work", words.empty() ? "" : "; waiting: ", words, "; to see how it goes: ", HoneProgram(),
          " jobs show ", job.job_id(), ServiceFlags(options.service))));
}

// Says how the job stands now.
absl::Status SetPaused(const JobsOptions& options, bool paused) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::PauseRequest request;
  request.set_job_id(options.id);
  request.set_paused(paused);
  v1::JobSnapshot job;
  HONE_RETURN_IF_ERROR(Explained(FromGrpc(client->tune().Pause(client->Context().get(), request, &job)), options));
  PrintJob(job, options);
  return absl::OkStatus();
}
absl::Status Pause(const JobsOptions& options) { return SetPaused(options, true); }
absl::Status Resume(const JobsOptions& options) { return SetPaused(options, false); }

absl::Status Explain(const JobsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::ExplainRequest request;
  request.set_job_id(options.id);
  v1::JobExplanation reply;
  HONE_RETURN_IF_ERROR(Explained(FromGrpc(client->tune().Explain(client->Context().get(), request, &reply)), options));
  HONE_RETURN_IF_ERROR(client->GetTasksThatFollow(*reply.mutable_job()));
  if (options.json) {
    std::printf("%s\n", ExplanationJson(reply).dump().c_str());
  } else {
    PrintJobLine(reply.job());
    std::printf("%s", ExplanationText(reply, options.service).c_str());
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
  jobs->require_subcommand(0, 1);
  options->service.AddTo(*jobs);
  jobs->add_flag("--json", options->json, "one JSON object a line");
  jobs->callback([options, chosen, jobs] {
    if (jobs->get_subcommands().empty()) *chosen = [options] { return List(*options); };
  });
  jobs->footer("Without a command of its own: list. Where no daemon runs, list and show read the database.\n" +
               Examples({"hone jobs", "hone jobs watch 3", "hone jobs explain 3",
                         "hone jobs stop 3 --server unix:/run/hone/honed.sock"}));
  AddHandler(*jobs, "list", "All jobs.", false, List, options, chosen);
  AddHandler(*jobs, "show", "One job with its tasks.", true, Show, options, chosen);
  AddHandler(*jobs, "watch", "Follow a job until it ends.", true, Watch, options, chosen);
  AddHandler(*jobs, "stop", "End a job, and say what became of it; what it measured stays.", true, Stop, options,
             chosen);
  AddHandler(*jobs, "pause", "Lend nothing more of a job until it is resumed; the time does not count.", true, Pause,
             options, chosen);
  AddHandler(*jobs, "resume", "Go on with a job that was paused.", true, Resume, options, chosen);
  AddHandler(*jobs, "explain", "What holds a job up, where its time went, and what it would take.", true, Explain,
             options, chosen);
  jobs->get_subcommand("stop")
      ->add_option("--wait", options->wait, "end with exit code 5 when it has not ended within that time")
      ->capture_default_str();
}

}  // namespace hone
