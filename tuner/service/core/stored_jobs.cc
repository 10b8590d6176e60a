#include "tuner/service/core/stored_jobs.h"

#include "compiler/support/status_macros.h"
#include "tuner/dispatch/state/job_state.h"

namespace hone {

absl::StatusOr<std::vector<v1::JobSnapshot>> StoredJobs(TuningStore& store) {
  HONE_ASSIGN_OR_RETURN(const std::vector<JobRow> rows, store.ListJobs(kLocalTenant, {}));
  std::vector<v1::JobSnapshot> jobs;
  for (const JobRow& row : rows) {
    HONE_ASSIGN_OR_RETURN(const std::vector<TaskRow> tasks, store.GetTasks(kLocalTenant, row.id));
    jobs.push_back(MakeJobSnapshot(row, tasks, true));
    v1::JobSnapshot& job = jobs.back();
    if (IsOpen(job.state())) {
      job.set_state(v1::JOB_WAITING);
      job.set_reason("no daemon runs on this database; the job goes on with the next one, which hone tune starts");
    }
  }
  return jobs;
}

}  // namespace hone
