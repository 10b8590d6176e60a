// A pass over machine code before registers are assigned: what a loop adds up stays in one register.
//
// A tile's sums go round a loop of one block: a turn adds to each of them several times, and the last value of a turn
// is the first one of the next. To LLVM these are as many values, of which each may have a register of its own. x86's
// instructions write where they are told to, or, of a multiply-add, over whichever operand; so sums change places with
// one another from turn to turn, and with as many as there are registers they come back to where the next turn wants
// them by way of memory. Here the values of a turn become one register, and a multiply-add writes over its sum.
#pragma once

namespace llvm {
class Pass;
}  // namespace llvm

namespace hone {

// To be run between the elimination of phis and that of instructions with two addresses.
llvm::Pass* MakeSumsInPlace();

}  // namespace hone
