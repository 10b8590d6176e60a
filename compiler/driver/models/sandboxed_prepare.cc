#include "compiler/driver/models/sandboxed_prepare.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

// Packing moves every byte once or twice; a kernel that takes a second for a megabyte does something else.
absl::Duration LimitFor(int64_t bytes) { return absl::Seconds(20 + (bytes >> 20)); }

absl::Status Failed(const std::string& symbol, const RunnerVerdict& verdict) {
  const std::string text = absl::StrCat("prepare kernel `", symbol, "`: ", verdict.message);
  if (verdict.kind == RunnerVerdict::kOutOfMemory) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

class SandboxedPacker : public ConstantPacker {
 public:
  SandboxedPacker(std::string symbol, absl::Duration limit, InputSets inputs, RunnerClient runner)
      : symbol_(std::move(symbol)), limit_(limit), inputs_(std::move(inputs)), runner_(std::move(runner)) {}

  absl::StatusOr<std::string_view> Pack(std::span<const char> value) override {
    const std::string_view bytes(value.data(), value.size());
    HONE_RETURN_IF_ERROR(inputs_.Rewrite({&bytes, 1}));
    const RunnerVerdict verdict = runner_.RunOnZeros(0, limit_);
    if (!verdict.ok()) return Failed(symbol_, verdict);
    return runner_.output(0, 0);
  }

 private:
  const std::string symbol_;
  const absl::Duration limit_;
  InputSets inputs_;
  RunnerClient runner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ConstantPacker>> StartSandboxedPacker(const PrepareKernel& kernel) {
  // The prepare kernel as a task of its own: a constant goes in, its packed form comes out.
  KernelSet set;
  set.symbol = kernel.prepared.symbol;
  set.params = {kernel.original, kernel.prepared.packed};
  set.scratch_bytes = kernel.prepared.scratch_bytes;
  set.thread_scratch_bytes = kernel.prepared.thread_scratch_bytes;
  HONE_ASSIGN_OR_RETURN(InputSets inputs, InputSets::CreateRewritable(set));

  const int64_t bytes = kernel.original.bytes + kernel.prepared.packed.bytes;
  const absl::Duration limit = LimitFor(bytes);
  RunnerJob job;
  job.image = kernel.image;
  job.set = set;
  job.inputs = &inputs;
  job.pin = false;  // several constants are packed at the same time
  job.timed = false;
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(limit)) * kernel.constants;
  job.memory_bytes += 4 * bytes;
  job.allowed_missing_layers = ~0u;  // the code was made here a moment ago
  job.start_timeout = limit;
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok()) return Failed(set.symbol, runner.load_verdict());
  return std::make_unique<SandboxedPacker>(set.symbol, limit, std::move(inputs), std::move(runner));
}

}  // namespace hone
