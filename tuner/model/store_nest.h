// The stores of a lowered program, each with the loops around it and the memory it touches: what features are computed
// from.
//
// Lowering has written unrolled loops out, so the copies of one statement are put together again: stores of one
// sequence to one buffer that differ by constants alone are one StoreNest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/lower/lower.h"

namespace hone {

struct NestLoop {
  Var var;
  double extent = 1;
  bool parallel = false;
  bool reduce = false;  // the store's target does not move with it
};

// `index += stride` for every step of a loop: one summand of the flat index, in elements of the buffer.
struct IndexTerm {
  int loop = 0;  // place in StoreNest::loops; kInside for lanes of a vector and for unrolled copies
  double stride = 0;
  double extent = 1;
};
inline constexpr int kInside = -1;

// All loads (or the stores) of one nest that reach one buffer by indices that differ by constants alone.
struct NestAccess {
  Buffer buffer;
  bool write = false;
  std::vector<IndexTerm> terms;
  int lanes = 1;
  bool gather = false;     // the lanes are not one run of elements
  bool broadcast = false;  // a scalar spread over a vector
  double masked = 0;       // share of the accesses under a mask
  double distinct = 1;     // addresses in one iteration of the innermost loop
  double repeats = 1;      // accesses in one iteration, equal addresses counted as often as they are written
};

// Operations of one element, as the published features count them (search.md 2c).
enum Operation {
  kFloatMulAdd,
  kFloatAddSub,
  kFloatMul,
  kFloatDivMod,
  kFloatCompare,
  kFloatMath,
  kFloatOther,
  kIntMulAdd,
  kIntAddSub,
  kIntMul,
  kIntDivMod,
  kIntCompare,
  kIntMath,
  kIntOther,
  kBoolOther,
  kSelect,
  kOperations
};

struct StoreNest {
  std::vector<NestLoop> loops;  // outermost first
  Buffer target;
  int lanes = 1;
  double copies = 1;         // unrolled, in one iteration of the innermost loop
  double targets = 1;        // distinct addresses those copies write: accumulators when the target is in registers
  bool accumulates = false;  // reads what it writes
  double masked = 0;         // share of the copies under a mask or a condition
  std::array<double, kOperations> operations{};  // of one iteration of the innermost loop, lanes counted one by one
  double vector_operations = 0;                  // float operations of one iteration, a vector counted as one
  double widest = 1;                             // most lanes of an operation
  std::vector<NestAccess> accesses;              // memory alone, not registers
  double allocated_bytes = 0;                    // of the target where it is an intermediate
  int allocated_at = 0;                          // number of loops around its allocation

  double Iterations() const;
};

// In program order.
std::vector<StoreNest> StoreNests(const LoweredFunc& lowered);

// What `access` touches while the loops from `depth` inwards run once: distinct elements, and cache lines of 64 bytes.
struct Footprint {
  double elements = 0;
  double lines = 0;
};
Footprint FootprintOf(const NestAccess& access, size_t depth);
// Whether the access moves with that loop.
bool MovesWith(const NestAccess& access, size_t loop);

}  // namespace hone
