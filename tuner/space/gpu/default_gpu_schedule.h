// What a kernel of a GPU is built from when nothing was measured: one rule for each family of blocks.
//
//   product      a block of threads computes a tile of the output: operands in shared memory, and for each thread a
//                tile in registers
//   rows         a block of threads computes a row, or several blocks of one: softmax, norms, sums along memory
//   reduction    threads share the elements of the output and the terms of each
//   map          a thread computes an element
//   one thread   what has iterations that depend on one another
//
// Sizes are those that the device likes, whatever the extents: the last tile is masked.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/target/gpu_target.h"

namespace hone {

// How a block, with what moved into its loops, is scheduled.
struct GpuNest {
  enum class Rule { kProduct, kRows, kReduction, kMap, kOneThread };
  std::string block;
  Rule rule = Rule::kMap;
  std::vector<std::string> refused;  // why rules that come before this one were not applied
};

struct GpuDefault {
  Trace trace;
  std::vector<GpuNest> nests;  // in program order; each becomes a launch
};

// Fails only where AnalyzeWorkload does.
absl::StatusOr<GpuDefault> DefaultGpuSchedule(const PrimFunc& workload, const GpuTarget& target);

}  // namespace hone
