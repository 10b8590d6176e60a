#include "deploy/runtime/run/function_call.h"

#include <set>

namespace hone {

DLDataType ToDlpack(const std::string& dtype) {
  const auto bits = static_cast<uint8_t>(8 * DTypeBytes(dtype));
  uint8_t code = kDLFloat;
  if (dtype == "bool") code = kDLBool;
  if (dtype == "bfloat16") code = kDLBfloat;
  if (dtype.starts_with("float8") || dtype.starts_with("float4")) code = kDLUInt;  // as bytes
  if (dtype.starts_with("int")) code = kDLInt;
  if (dtype.starts_with("uint")) code = kDLUInt;
  return {code, bits, 1};
}

RuntimeError CheckFunctions(const BundleGraph& graph, const ProgramFunctions& functions) {
  std::set<std::string> missing;
  for (const BundleStep& step : graph.steps) {
    if (step.is_call() && functions.count(step.function) == 0) missing.insert(step.function);
  }
  if (missing.empty()) return {};
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "`" : ", `") + name + "`";
  return {RuntimeCode::kInvalidArgument,
          "the model calls functions that the program has to give the instance: " + names +
              "; name them in HoneInstanceOptions::functions, in Python in hone.load(..., functions={...})"};
}

FunctionCall::FunctionCall(const BundleStep& step, const ProgramFunction& function) : step_(step), function_(function) {
  for (const BundleArgument& argument : step.arguments) {
    DLTensor& tensor = tensors_.emplace_back();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(argument.shape.size());
    tensor.dtype = ToDlpack(argument.dtype);
    tensor.shape = const_cast<int64_t*>(argument.shape.data());  // DLPack's is not const; the function only reads it
  }
}

RuntimeError FunctionCall::Run(const std::vector<char*>& data) {
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].data = data[static_cast<size_t>(step_.tensors[i])];
  char error[HONE_FUNCTION_ERROR_BYTES] = "";
  const int32_t inputs = static_cast<int32_t>(tensors_.size()) - step_.outputs;
  const int32_t result =
      function_.call(function_.context, tensors_.data(), inputs, tensors_.data() + inputs, step_.outputs, error);
  if (result == 0) return {};
  error[sizeof(error) - 1] = '\0';
  return {RuntimeCode::kKernelFailed,
          "function `" + step_.function + "`" +
              (error[0] != '\0' ? ": " + std::string(error) : ", returned " + std::to_string(result))};
}

}  // namespace hone
