#include "compiler/driver/sandboxed_prepare.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

// Packing moves every byte once or twice; a kernel that takes a second for a megabyte does something else.
absl::Duration LimitFor(int64_t bytes) { return absl::Seconds(20 + (bytes >> 20)); }

absl::Status Failed(const PrepareCall& call, const RunnerVerdict& verdict) {
  const std::string text = absl::StrCat("prepare kernel `", call.prepared.symbol, "`: ", verdict.message);
  if (verdict.kind == RunnerVerdict::kOutOfMemory) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

}  // namespace

absl::StatusOr<std::string> PrepareInSandbox(const PrepareCall& call) {
  // The prepare kernel as a task of its own: the constant goes in, its packed form comes out.
  KernelSet set;
  set.symbol = call.prepared.symbol;
  set.params = {call.original, call.prepared.packed};
  set.scratch_bytes = call.prepared.scratch_bytes;
  set.thread_scratch_bytes = call.prepared.thread_scratch_bytes;
  const std::string_view value(call.value.data(), call.value.size());
  HONE_ASSIGN_OR_RETURN(const InputSets inputs, InputSets::Create(set, {{value}}));

  const int64_t bytes = call.original.bytes + call.prepared.packed.bytes;
  const absl::Duration limit = LimitFor(bytes);
  RunnerJob job;
  job.image = call.image;
  job.set = set;
  job.inputs = &inputs;
  job.pin = false;  // several constants are packed at the same time
  job.timed = false;
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(limit));
  job.memory_bytes += 4 * bytes;
  job.allowed_missing_layers = ~0u;  // the code was made here a moment ago
  job.start_timeout = limit;
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok()) return Failed(call, runner.load_verdict());
  const RunnerVerdict verdict = runner.RunOnZeros(0, limit);
  if (!verdict.ok()) return Failed(call, verdict);
  return std::string(runner.output(0, 0));
}

}  // namespace hone
