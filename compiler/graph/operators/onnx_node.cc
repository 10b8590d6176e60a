#include "compiler/graph/operators/onnx_node.h"

#include "absl/strings/str_cat.h"

namespace hone {

// The numbers of TensorProto.DataType (onnx.proto).
std::optional<DType> OnnxDType(int64_t number) {
  switch (number) {
    case 1: return kFloat32;
    case 2: return DType::UInt(8);
    case 3: return DType::Int(8);
    case 4: return DType::UInt(16);
    case 5: return DType::Int(16);
    case 6: return kInt32;
    case 7: return kInt64;
    case 9: return kBool;
    case 10: return DType::Float(16);
    case 11: return DType::Float(64);
    case 12: return DType::UInt(32);
    case 13: return DType::UInt(64);
    case 16: return DType::BFloat16();
    default: return std::nullopt;
  }
}

std::string OnnxDTypeName(int64_t number) {
  constexpr const char* kNames[] = {
      "undefined", "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  if (number >= 0 && number < static_cast<int64_t>(std::size(kNames))) return kNames[number];
  return absl::StrCat("number ", number);
}

}  // namespace hone
