// What LLVM's functions for x86 instructions do, as plain C++ after the operations of Intel's Software Developer's
// Manual (SDM), volume 2: code for instructions that a machine lacks runs there with these in their place
// (compile_emulated.h). A row of compiler/tile that names another function needs a body here.
//
//   VPDPBUSD, VPDPWSSD, PMADDWD   integers, wrapping in 32 bits: none saturates
//   VDPBF16PS                     the odd element of a pair first, then the even one, each by a fused multiply-add that
//                                 rounds to nearest even. Denormal numbers count as zeros and become zeros, whatever
//                                 MXCSR says
//   TDPB*D, TDPBF16PS             on tile registers; of bfloat16, the odd and the even elements are summed up apart, by
//                                 such multiply-adds, and the two sums added to the result
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::testing {

// Reads arguments and writes the result through pointers, vectors as their elements in order. `result` is unused where
// the function returns nothing.
using X86Body = void (*)(void* result, const void* const* args);

// nullptr where there is none of that name.
X86Body FindX86Body(std::string_view function);

// What the manual has an exception for, since the last call: a tile register that is not configured, sizes of a product
// that do not fit each other, registers that are in use behind the end. Of all threads.
std::vector<std::string> TakeX86Faults();

}  // namespace hone::testing
