// A pass over x86's machine code before registers are assigned: a multiply-add overwrites its sum.
//
// x86 has three forms of a fused multiply-add of three registers, which differ in the operand that is overwritten. Where
// a factor dies with the instruction, too, LLVM overwrites the one that was written last, so the factor: the sum goes on
// in another register, and in a loop all sums of a tile change places with one another from turn to turn. With as many
// sums as registers allow there is no room to bring them back to where the next turn wants them but memory.
#pragma once

namespace llvm {
class Pass;
}  // namespace llvm

namespace hone {

// To be run between the elimination of phis and that of instructions with two addresses.
llvm::Pass* MakeSumsInPlace();

}  // namespace hone
