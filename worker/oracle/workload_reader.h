// What hone-oracle does with requests: parses the workload of its task, draws inputs, interprets chosen elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"
#include "hone/v1/oracle.pb.h"

namespace hone {

// Loop iterations in which the elements of one request must be computed. Time is limited by whoever asks; this says on
// every machine alike which workloads are too long.
inline constexpr int64_t kMostInterpretedSteps = int64_t{1} << 29;

class WorkloadReader {
 public:
  explicit WorkloadReader(int64_t most_steps = kMostInterpretedSteps) : most_steps_(most_steps) {}

  // The bytes of the answer's frame; false for a request that makes no sense here (another workload, sets out of
  // order): its sender is not one of ours.
  bool Answer(const v1::OracleRequest& request, std::string* answer);

 private:
  v1::WorkloadFacts Read(const std::string& workload);
  bool DrawInput(const v1::InputRequest& request, std::string* bytes);
  bool Interpret(const v1::ElementsRequest& request, v1::ElementsReply* reply) const;

  int64_t most_steps_;
  bool read_ = false;
  PrimFunc func_;
  size_t num_inputs_ = 0;
  std::vector<std::vector<NdArray>> sets_;
};

}  // namespace hone
