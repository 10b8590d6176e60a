// Runs one scheduled program on given arguments: interpreted, or compiled for this machine and run in hone-runner,
// locked in as a candidate is.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/driver/time_runs.h"
#include "compiler/schedule/program.h"

namespace hone {

struct RunProgramOptions {
  bool compiled = false;
  int threads = 1;  // of a compiled program
  bool time = false;
};

// `args` are those of the workload, in order; its outputs are written. Timings where they were asked for. What is the
// program's own fault (a crash, an index out of bounds, a read of an unwritten element) has exit code 7.
absl::StatusOr<std::optional<TimedRuns>> RunProgram(const ScheduledProgram& program, const RunProgramOptions& options,
                                                    std::vector<NdArray>& args);

// The function unscheduled and plainly compiled (CompilePlain), run once in hone-runner: what candidates are held
// against.
absl::Status RunPlain(const PrimFunc& func, std::vector<NdArray>& args);

}  // namespace hone
