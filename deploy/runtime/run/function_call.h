// A step of a bundle that calls a function of the program that runs it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/error.h"
#include "deploy/runtime/hone_runtime.h"

namespace hone {

// What the C interface says of a tensor of this type.
DLDataType ToDlpack(const std::string& dtype);

// A HoneFunction (hone_runtime.h) without its name.
struct ProgramFunction {
  decltype(HoneFunction::call) call = nullptr;
  void* context = nullptr;
};
using ProgramFunctions = std::map<std::string, ProgramFunction>;

// kInvalidArgument names the functions that the bundle calls and `functions` has not.
RuntimeError CheckFunctions(const BundleGraph& graph, const ProgramFunctions& functions);

class FunctionCall {
 public:
  // `step` outlives the call.
  FunctionCall(const BundleStep& step, const ProgramFunction& function);

  // On the tensors of the step, which lie at `data[tensor]`. kKernelFailed says what the function said.
  RuntimeError Run(const std::vector<char*>& data);

 private:
  const BundleStep& step_;
  ProgramFunction function_;
  std::vector<DLTensor> tensors_;  // of the step, as the function sees them
};

}  // namespace hone
