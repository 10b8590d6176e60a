#include "compiler/codegen/gpu/dialect.h"

namespace hone {
namespace {

// 0 for 8 bits, 3 for 64.
size_t WidthIndex(int bits) { return bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3; }

}  // namespace

absl::string_view MemoryType(const Dialect& dialect, DType type) {
  if (type.is_bool()) return dialect.unsigned_ints[0];
  if (type.is_float() && type.bits == 16) return dialect.unsigned_ints[1];
  return ValueType(dialect, type);
}

bool IsSharedGivenAtLaunch(const Dialect& dialect, int64_t shared_bytes) {
  return !dialect.dynamic_shared_memory.empty() && shared_bytes > dialect.most_static_shared;
}

absl::string_view VectorElement(const Dialect& dialect, DType type) {
  if (type.is_bool()) return dialect.vectors.unsigned_ints[0];
  if (type.is_float() && type.bits == 16) return dialect.vectors.unsigned_ints[1];
  if (type.is_float()) return ValueType(dialect, type);
  const auto& names = type.code == TypeCode::kUInt ? dialect.vectors.unsigned_ints : dialect.vectors.ints;
  return names[WidthIndex(type.bits)];
}

absl::string_view ValueType(const Dialect& dialect, DType type) {
  if (type.is_bool()) return "bool";
  if (type.is_float()) return type.bits == 64 ? "double" : "float";
  const auto& names = type.code == TypeCode::kUInt ? dialect.unsigned_ints : dialect.ints;
  return names[WidthIndex(type.bits)];
}

}  // namespace hone
