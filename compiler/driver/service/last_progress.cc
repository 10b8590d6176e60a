#include "compiler/driver/service/last_progress.h"

#include "absl/strings/str_cat.h"

namespace hone {

absl::Duration LastProgress::Since(const v1::JobSnapshot& job, absl::Time now) {
  int64_t failed = 0;
  for (const auto& [kind, count] : job.failed()) failed += count;
  const std::tuple seen(job.trials(), failed, job.in_flight(),
                        job.build_seconds() + job.verify_seconds() + job.measure_seconds());
  if (at_ == absl::InfinitePast() || seen != seen_) {
    seen_ = seen;
    at_ = now;
  }
  return now - at_;
}

std::string NoProgressText(const v1::JobSnapshot& job, const std::string& explain_command) {
  const std::string work = job.in_flight() > 0
                               ? absl::StrCat(job.in_flight(), " candidates are with workers, and none comes back")
                               : "no worker has a candidate, and the search gives none";
  return absl::StrCat(work, "; the daemon knows of nothing that holds it up; more: ", explain_command);
}

}  // namespace hone
