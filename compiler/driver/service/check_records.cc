#include "compiler/driver/service/check_records.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/status_macros.h"
#include "database/store/record_json.h"

namespace hone {
namespace {

// A record that is taken from another key, or that was not measured here, is none to check.
bool IsOfAnotherGenerator(const std::optional<v1::BestAnswer>& answer, const std::string& generator) {
  return answer.has_value() && answer->exact() && answer->record().origin() == "tuned" &&
         answer->record().generator() != generator;
}

absl::Status Tell(DaemonClient& daemon, const std::string& lines) {
  const std::unique_ptr<grpc::ClientContext> context = daemon.Context();
  v1::ImportReply reply;
  const auto writer = daemon.tune().ImportRecords(context.get(), &reply);
  v1::ExportChunk chunk;
  chunk.set_lines(lines);
  writer->Write(chunk);
  writer->WritesDone();
  HONE_RETURN_IF_ERROR(FromGrpc(writer->Finish()));
  if (reply.refused().empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(reply.refused(0));
}

}  // namespace

absl::StatusOr<RecordChecks> CheckRecords(const Model& model, const ResolvedSettings& settings,
                                          const ServiceOptions& service, DaemonClient& daemon) {
  const std::vector<TunedTask> tuned = TunedTasks(model);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<v1::BestAnswer>> best,
                        FindBest(service, BestKeysOf(model, tuned, settings)));
  std::vector<size_t> tasks;
  for (size_t i = 0; i < best.size(); ++i) {
    if (IsOfAnotherGenerator(best[i], settings.generator())) tasks.push_back(i);
  }
  RecordChecks checks;
  if (tasks.empty()) return checks;
  std::vector<CheckRecord> found(tasks.size());
  ParallelFor(tasks.size(), HostTarget().cores, [&](size_t i) {
    const v1::Record& record = best[tasks[i]]->record();
    found[i] = {.record = record.id(),
                .generator = settings.generator(),
                .object_digest = CodeDigest(record.trace(), tuned[tasks[i]].workload, settings)};
  });
  std::string lines;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool holds = found[i].object_digest == best[tasks[i]]->record().object_digest();
    ++(holds ? checks.holding : checks.stale);
    absl::StrAppend(&lines, ToJsonLine(found[i]), "\n");
  }
  HONE_RETURN_IF_ERROR(Tell(daemon, lines));
  return checks;
}

}  // namespace hone
