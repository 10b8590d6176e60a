// Element types of fewer bits than arithmetic has: float8 and float4 in their kinds, integers of four and two bits.
// They are held one element a byte and only converted: GraphValue::element names the type, GraphValue::type the bytes.
//
// The names are those of NumPy's and PyTorch's types (ml_dtypes): "float8_e4m3fn", "int4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/graph/operators/expressions.h"

namespace hone {

struct NarrowType {
  std::string_view name;
  int onnx;  // TensorProto.DataType
  int bits;
  bool is_float;
  bool has_sign;
  // Of floats. NaN and infinity are codes without sign; -1: there is none. `no_negative_zero`: its code is NaN's.
  int mantissa = 0, bias = 0, greatest = 0, nan = -1, infinity = -1;
  bool no_negative_zero = false;

  DType storage() const { return is_float || !has_sign ? DType::UInt(8) : DType::Int(8); }
  double Decode(int code) const;  // of a float
};

const NarrowType* FindNarrowType(int64_t onnx);  // nullptr when there is none
const NarrowType* FindNarrowType(std::string_view name);

// The values as float32 or int32.
Value Widen(const Value& x, const NarrowType& type);
// To the nearest, ties to even; floats beyond the greatest become it where `saturate`, else infinity or NaN; integers
// keep their low bits. `rounding` is for float8_e8m0fnu alone: "up", "down" or "nearest".
Value Narrow(const Value& x, const NarrowType& type, bool saturate, std::string_view rounding);

}  // namespace hone
