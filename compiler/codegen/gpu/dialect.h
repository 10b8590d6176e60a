// The words of a language for GPUs, as data: all that differs where one lane program is printed in several of them.
//
// Texts with {..} are templates; what stands for each name is said beside it.
#pragma once

#include <array>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/math_functions.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

struct Dialect {
  // A function on floats that is none of ir/math_functions.h: {0}, {1}, .. are its arguments, {f} the suffix of the
  // functions that take float ("f" or nothing, where a language has one function for all types).
  struct Function {
    absl::string_view name, text;
  };
  // A function that kernels call and the language does not have, printed in front of them where it is used. Its text
  // begins behind Dialect::helper, with its type.
  struct Helper {
    absl::string_view name, text;
  };
  // Vectors in memory. {type} is the name of a vector's elements, {lanes} how many it has.
  struct Vectors {
    int most_lanes = 1;                                    // of 2, 4, 8, ..; 16 bytes at most
    bool aligned = false;                                  // their address must be a multiple of their size
    std::array<absl::string_view, 4> ints, unsigned_ints;  // {type} for elements of 8, 16, 32 and 64 bits
    absl::string_view load;                                // {pointer}
    absl::string_view store;                               // {pointer}, {value}
    absl::string_view make;                                // {values}: separated by commas
    absl::string_view element;                             // between a vector and the name of an element of it
    absl::string_view elements;                            // their names: a character each
  };

  absl::string_view name;
  absl::string_view head;                   // of the whole text
  absl::string_view kernel;                 // in front of the name of a kernel: {x}, {y}, {z}, {threads} of a block
  absl::string_view helper;                 // in front of a helper's type
  absl::string_view global, shared;         // in front of the type that a pointer points to
  absl::string_view restricted;             // behind the * of a pointer to what no other argument points to
  absl::string_view shared_memory;          // declares the block's memory, `shared`: {bytes}
  absl::string_view dynamic_shared_memory;  // the same where the launch says how many; empty: there is but one way
  int64_t most_static_shared = 0;           // bytes up to which `shared_memory` does
  absl::string_view barrier;
  std::array<absl::string_view, 3> block_index, thread_index;
  std::array<absl::string_view, 4> ints, unsigned_ints;  // of 8, 16, 32 and 64 bits
  absl::string_view long_suffix;                         // of a constant of 64 bits
  absl::string_view float_suffix;                        // of a function of float, where double has one of its own
  absl::string_view float_of_bits, double_of_bits, bits_of_float;  // {0}
  Vectors vectors;
  std::string (*name_of_math)(const MathFunction& function) = nullptr;  // without the suffix; "": it has none
  std::span<const Function> functions;
  std::span<const Helper> helpers;  // those whose text is the dialect's own; more are in helpers.h
  // The helper of the intrinsic's name that does it, rendered from its record: a function of pointers to the operands'
  // first elements; of an asynchronous copy also of how many bytes are read, zeros taking the place of the others. Null
  // where the language has no instructions for intrinsics; "" where not for this one.
  std::string (*intrinsic_helper)(const TileIntrinsic& intrinsic) = nullptr;
  // Of intrinsics whose token is a group: the helper that ends one, and that which waits until all groups but {left}
  // have landed.
  absl::string_view commit_copies, wait_for_copies;
};

// "float", "unsigned char", ..: of one element in memory. Floats of 16 bits are kept as their bits, a bool as a byte.
absl::string_view MemoryType(const Dialect& dialect, DType type);
// Whether the launch of a kernel with so many bytes of shared memory gives them, rather than the kernel's text.
bool IsSharedGivenAtLaunch(const Dialect& dialect, int64_t shared_bytes);
// The name of a vector's elements as they lie in memory.
absl::string_view VectorElement(const Dialect& dialect, DType type);
// The type of a value that is computed: floats of 16 bits as the float that they equal.
absl::string_view ValueType(const Dialect& dialect, DType type);

}  // namespace hone
