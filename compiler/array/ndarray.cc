#include "compiler/array/ndarray.h"

#include <cmath>
#include <cstring>

#include "compiler/ir/expr.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/scalar_arith.h"

namespace hone {

NdArray::NdArray(DType type, std::vector<int64_t> dims) : dtype(type), shape(std::move(dims)) {
  data.assign(static_cast<size_t>(NumElements()) * static_cast<size_t>(type.bytes()), 0);
}

int64_t NdArray::NumElements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    HONE_CHECK(extent >= 0 && !__builtin_mul_overflow(n, extent, &n)) << "a shape beyond 64 bits";
  }
  return n;
}

double NdArray::Get(int64_t i) const {
  if (!dtype.is_float()) {
    const int64_t value = GetInt(i);
    return dtype == DType::UInt(64) ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
  }
  switch (dtype.bytes()) {
    case 8: return As<double>()[i];
    case 4: return As<float>()[i];
    case 2: return BitsToFloat(As<uint16_t>()[i], dtype);
    default: return BitsToFloat(As<uint8_t>()[i], dtype);
  }
}

void NdArray::Set(int64_t i, double value) {
  if (!dtype.is_float()) {
    SetInt(i, *ConstantValue(Const(dtype.is_bool() ? value : std::nearbyint(value), dtype)));
    return;
  }
  switch (dtype.bytes()) {
    case 8: As<double>()[i] = value; return;
    case 4: As<float>()[i] = static_cast<float>(value); return;
    case 2: As<uint16_t>()[i] = FloatToBits(RoundToType(value, dtype), dtype); return;
    default: As<uint8_t>()[i] = static_cast<uint8_t>(FloatToBits(RoundToType(value, dtype), dtype));
  }
}

int64_t NdArray::GetInt(int64_t i) const {
  HONE_CHECK(!dtype.is_float()) << "GetInt of " << ToText(dtype);
  const char* at = data.data() + i * dtype.bytes();
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(dtype.bytes()));
  return WrapToType(static_cast<int64_t>(bits), dtype);
}

void NdArray::SetInt(int64_t i, int64_t value) {
  HONE_CHECK(!dtype.is_float()) << "SetInt of " << ToText(dtype);
  const int64_t wrapped = WrapToType(value, dtype);
  std::memcpy(data.data() + i * dtype.bytes(), &wrapped, static_cast<size_t>(dtype.bytes()));
}

}  // namespace hone
