// The innermost loops with multiply-adds of an assembly text (CompileToAssembly), for tests of what is in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::testing {

// Instructions between a label and the last branch back to it, where no loop with multiply-adds is inside. Counts are
// of instructions on vectors and on scalars in vector registers.
struct MachineLoop {
  int multiply_adds = 0;             // fused, of pairs of integers, and those of matrices
  int unfused = 0;                   // multiplications, and additions, of floats by themselves
  int to_stack = 0, from_stack = 0;  // vectors stored in the function's frame, and read from it (operands count)
  int branches = 0;                  // the one back included
  std::string text;
};

// Of x86-64 in AT&T syntax and AArch64. Frames are reached by the stack pointer, and by %rbp or x29 in functions that
// make it a frame pointer.
std::vector<MachineLoop> LoopsOfMultiplyAdds(std::string_view assembly);

}  // namespace hone::testing
