// What hone-oracle does with requests: parses the workload of its task, draws inputs, interprets chosen elements.
#pragma once

#include <string>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"
#include "hone/v1/oracle.pb.h"

namespace hone {

class WorkloadReader {
 public:
  // The bytes of the answer's frame; false for a request that makes no sense here (another workload, sets out of
  // order): its sender is not one of ours.
  bool Answer(const v1::OracleRequest& request, std::string* answer);

 private:
  v1::WorkloadFacts Read(const std::string& workload);
  bool DrawInput(const v1::InputRequest& request, std::string* bytes);
  bool Interpret(const v1::ElementsRequest& request, v1::ElementsReply* reply) const;

  bool read_ = false;
  PrimFunc func_;
  size_t num_inputs_ = 0;
  std::vector<std::vector<NdArray>> sets_;
};

}  // namespace hone
