#include "compiler/driver/service/hold_up.h"

#include "absl/strings/str_cat.h"

namespace hone {

std::string RemedyFor(v1::HoldUp hold_up, const ServiceOptions& service, int threads) {
  const bool is_private = service.server.empty();
  switch (hold_up) {
    case v1::HOLD_UP_NO_WORKER: return is_private ? "" : "start one: " + WorkerCommand(service, threads);
    case v1::HOLD_UP_NO_FITTING_WORKER:
      return is_private
                 ? "the private worker measures on this machine alone: leave --target out, or name a daemon with "
                   "such a worker by --server ADDR"
                 : "on a machine of that kind: " + WorkerCommand(service, threads);
    case v1::HOLD_UP_TURN: return "it goes on when the other has finished";
    case v1::HOLD_UP_WORKER_FAULT: return "the trial is made again; the worker's log says more";
    case v1::HOLD_UP_SEARCH:
      return is_private ? absl::StrCat("see ", ShellWord(service.database() + ".log")) : "see the daemon's log";
    case v1::HOLD_UP_DISK_FULL: return "free some space; nothing is lost, and the job goes on by itself";
    case v1::HOLD_UP_DATABASE_LOCKED: return "the job goes on when it can be written again";
    case v1::HOLD_UP_NOT_QUIET: return "it goes on by itself when a worker's machine is fit to measure on";
    default: return "";
  }
}

std::string HoldUpText(const v1::JobSnapshot& job, const ServiceOptions& service) {
  if (job.hold_up() == v1::HOLD_UP_NONE) return "";
  const std::string remedy =
      job.paused() ? absl::StrCat("to go on: ", HoneProgram(), " jobs resume ", job.job_id(), ServiceFlags(service))
                   : RemedyFor(job.hold_up(), service, job.threads());
  return absl::StrCat(job.held_up_by(), remedy.empty() ? "" : "; ", remedy);
}

}  // namespace hone
