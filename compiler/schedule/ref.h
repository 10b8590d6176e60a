// What a step of a trace refers to: "output k of step n". Replaying the trace on the workload makes the same step give
// the same block, loop or number again, so that refs mean the same thing in every copy of a schedule and in stored
// traces.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace hone {

struct BlockRef {
  int step = -1;
  int output = 0;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

struct LoopRef {
  int step = -1;
  int output = 0;
  friend bool operator==(const LoopRef&, const LoopRef&) = default;
};

using BlockOrLoop = std::variant<BlockRef, LoopRef>;

// A sampled number: an output of a sample_* step.
struct ValueRef {
  int step = -1;
  int output = 0;
  friend bool operator==(const ValueRef&, const ValueRef&) = default;
};

// A buffer by its place among what a block reads or writes.
enum class BufferKind { kRead, kWrite };  // ("read", 0) and ("write", 0) in the text
struct BlockBuffer {
  BufferKind kind = BufferKind::kWrite;
  int index = 0;
  friend bool operator==(const BlockBuffer&, const BlockBuffer&) = default;
};

// A number, an earlier choice, or "whatever fits" (None in the text; as a factor -1 means the same).
class Value {
 public:
  Value() = default;                             // whatever fits
  Value(int64_t number) : kind_(number) {}       // NOLINT: factors read as written: {-1, 4, 16}
  Value(int number) : kind_(int64_t{number}) {}  // NOLINT
  Value(ValueRef ref) : kind_(ref) {}            // NOLINT
  bool absent() const { return std::holds_alternative<std::monostate>(kind_); }
  const int64_t* number() const { return std::get_if<int64_t>(&kind_); }
  const ValueRef* ref() const { return std::get_if<ValueRef>(&kind_); }
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, int64_t, ValueRef> kind_;
};

}  // namespace hone
