// From a scheduled function to the form that a code generator takes: loops, loads and stores, no blocks.
//
// The product of Lower:
//   - No BlockRealize: block variables are replaced by their values, predicates have become IfThen or masks,
//     `init` runs under a condition (or where decompose_reduction has put it).
//   - Every intermediate is an Alloc around the smallest part of the program that uses it, shrunk to the region that
//     part touches. What is small and only indexed by constants is kRegister, all else kThread or kGlobal.
//   - Every buffer has one dimension, params included; its index may be a vector (a Ramp or any vector of indices).
//   - No kVectorized and no kUnrolled loop is left: explicit Ramp / Broadcast vectors, and copies of the body.
//   - At most one kParallel loop on any path, the outermost; it runs over [0, extent).
//   - A TileOp is left only where FindInstruction has an instruction for it; its operands are runs of elements.
//   - Alloc statements that are kGlobal or kThread have a place in scratch memory: see `places`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace hone {

struct LowerOptions {
  bool plain = false;                 // an unscheduled function: one thread, each element computed in the stated order
  int64_t max_unrolled = 1024;        // statements a nest of unrolled loops may become; loops beyond that stay loops
  std::vector<std::string> features;  // of the target, by LLVM's names: tile operations that have an instruction stay
  int vector_bits = 256;              // of the target: the widest vector that code should use
  int masked_bits = 8;  // of the target: the narrowest elements that it loads and stores under masks; 0: none are

  // Elements of so many bits in a vector: 16 for float32 with AVX-512.
  int64_t lanes(int bits) const { return vector_bits / bits; }
  bool has_masks(int bits) const { return masked_bits != 0 && bits >= masked_bits; }
};
LowerOptions LowerOptionsFor(const Target& target);

// Elements behind each register buffer that may be read with it, and are never used: a vector is read whole, and what
// lowering makes of a loop has at most four vectors of the target. AVX-512 has 64 bytes in one.
inline constexpr int64_t kBehindRegisters = 4 * 64;

// Where an allocation lives: bytes from the start of the launch's scratch, or of the thread's area. 64-byte aligned.
struct ScratchPlace {
  bool thread = false;
  int64_t offset = 0;
};

struct LoweredFunc {
  PrimFunc func;
  std::map<Buffer, ScratchPlace>
      places;                        // every kGlobal and kThread Alloc of func.body, of a symbolic size the greatest
  int64_t scratch_bytes = 0;         // shared by the threads of one call
  int64_t thread_scratch_bytes = 0;  // for each thread
};

// InvalidArgument when the program does not pass the verifier; FailedPrecondition when it cannot be lowered (an
// intermediate of a symbolic size without a range, a GPU binding or barrier, a function that the operand's type does
// not have, a vectorised loop whose iterations cannot run at once).
absl::StatusOr<LoweredFunc> Lower(const PrimFunc& scheduled, const LowerOptions& options = {});

}  // namespace hone
