// What the agent makes of the answers of a hone-oracle, which read what a tenant wrote and may say anything. Bytes in,
// numbers out whose sizes were checked; InvalidArgument, which blames the workload, for all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/ir/dtype.h"
#include "worker/oracle/input_plan.h"

namespace hone {

struct TaskParam {
  std::string name;
  DType type;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  bool cold = false;  // in memory whenever the kernel is called (kColdConstants, kColdOutputs)
  int64_t bytes() const { return elements * type.bytes(); }
};
struct TaskParams {
  std::vector<TaskParam> inputs, outputs;
};

struct OracleFacts {
  TaskParams params;
  InputPlan plan;
};

// A WorkloadFacts. Its own error where it has one.
absl::StatusOr<OracleFacts> ReadFacts(const std::string& answer);
// The tensor's bytes.
absl::StatusOr<NdArray> ReadInput(const std::string& answer, const TaskParam& param);
// An ElementsReply to a request for so many.
absl::StatusOr<std::vector<double>> ReadElements(const std::string& answer, size_t elements);

}  // namespace hone
