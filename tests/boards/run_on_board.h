// Runs a function compiled for another CPU in a runner on that CPU, which is emulated (tests/boards.cmake).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/array/ndarray.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/status_macros.h"
#include "worker/runner/runner_client.h"

namespace hone {

// What qemu does not pass on to the system: see runner_test.cc.
inline constexpr uint32_t kNotEmulated = kLayerSystemCalls | kLayerMemoryLimit;

inline std::string BoardRunner(const std::string& cpu) { return absl::StrCat(HONE_BIN, "/", cpu, "/hone-runner"); }

// Debian 12's emulator ends in a failed assertion of its own, and hangs, where a RISC-V instruction converts vectors of
// floats to integers towards zero (vfcvt.rtz, vfwcvt.rtz, vfncvt.rtz) before others of its block round: kernels with
// them are not run there. May be true of a kernel whose constants look like one.
inline bool StopsEmulator(const CompiledKernel& kernel, const std::string& cpu) {
  const absl::StatusOr<Target> target = ParseTarget(absl::StrCat("cpu:", cpu));
  if (!target.ok() || target->arch != "riscv64") return false;
  for (size_t at = 0; at + 4 <= kernel.object.size(); at += 2) {
    uint32_t word;
    std::memcpy(&word, kernel.object.data() + at, sizeof(word));
    constexpr uint32_t kConversion = 0x48001057, kTowardsZero = 6 << 15;  // from and to any type
    if ((word & 0xFC00707F) == kConversion && (word & kTowardsZero) == kTowardsZero) return true;
  }
  return false;
}

// Replaces the outputs among `args`, the parameters of the kernel set, by what the kernel makes of the others.
inline absl::Status RunOnBoard(const CompiledKernel& kernel, std::vector<NdArray>& args, const std::string& cpu,
                               int threads = 2) {
  HONE_ASSIGN_OR_RETURN(const std::string image, LinkImage({&kernel.object, 1}));
  const size_t num_inputs = InputsOf(kernel.set).size();
  std::vector<std::string_view> values;
  for (size_t i = 0; i < num_inputs; ++i) values.emplace_back(args[i].data.data(), args[i].data.size());
  HONE_ASSIGN_OR_RETURN(const InputSets inputs, InputSets::Create(kernel.set, {values}));
  RunnerJob job{.image = image, .set = kernel.set, .inputs = &inputs, .threads = threads, .pin = false};
  job.program = BoardRunner(cpu);
  job.allowed_missing_layers = kNotEmulated | LayersSomeSystemsLack();
  job.start_timeout = absl::Minutes(1);
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok()) return absl::InternalError(runner.load_verdict().message);
  const RunnerVerdict verdict = runner.Verify(0, absl::Minutes(2));
  if (!verdict.ok()) return absl::InternalError(verdict.message);
  if (!runner.OutputEdgesIntact(0)) return absl::InternalError("bytes beside an output were written");
  for (int i = 0; i < kernel.set.num_outputs; ++i) {
    const std::string_view output = runner.output(0, i);
    std::memcpy(args[num_inputs + static_cast<size_t>(i)].data.data(), output.data(), output.size());
  }
  return absl::OkStatus();
}

}  // namespace hone
