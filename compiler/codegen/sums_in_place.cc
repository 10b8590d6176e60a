#include "compiler/codegen/sums_in_place.h"

#include <map>
#include <utility>
#include <vector>

#include "llvm/CodeGen/LiveVariables.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

namespace hone {
namespace {

// Operands of VFMADD213 and its like: the result, which takes the first factor's place, two factors, and the sum.
constexpr unsigned kFirst = 1, kSecond = 2, kSum = 3;

// Its operands are three registers, of which the sum is the last.
bool AddsLast(const llvm::MachineInstr& instruction, const llvm::TargetInstrInfo& instructions) {
  if (!instruction.isCommutable() || instruction.getNumExplicitOperands() != kSum + 1) return false;
  const llvm::StringRef name = instructions.getName(instruction.getOpcode());
  return name.ends_with("r") && (name.contains("FMADD213") || name.contains("FNMADD213"));
}

// The multiply-adds of a loop of one block that pass a sum on from the turn before to the next one. What goes round, was a
// phi: the block copies it from a register to begin with, and back to it in the end.
std::vector<llvm::MachineInstr*> SumsOfLoop(llvm::MachineBasicBlock& block,
                                            const llvm::TargetInstrInfo& instructions) {
  std::vector<llvm::MachineInstr*> sums;
  if (!block.isSuccessor(&block)) return sums;
  struct Chain {
    llvm::Register round;
    std::vector<llvm::MachineInstr*> sums;
  };
  std::map<llvm::Register, Chain> chains;  // by the register that holds what was added up so far
  for (llvm::MachineInstr& instruction : block) {
    if (instruction.isFullCopy()) {
      const llvm::Register to = instruction.getOperand(0).getReg(), from = instruction.getOperand(1).getReg();
      const auto chain = chains.find(from);
      if (chain != chains.end() && chain->second.round == to) {
        sums.insert(sums.end(), chain->second.sums.begin(), chain->second.sums.end());
      } else {
        chains[to] = {.round = from, .sums = {}};
      }
    } else if (AddsLast(instruction, instructions) && instruction.getOperand(kSum).isKill()) {
      const auto chain = chains.find(instruction.getOperand(kSum).getReg());
      if (chain == chains.end()) continue;
      Chain longer = std::move(chain->second);
      chains.erase(chain);
      longer.sums.push_back(&instruction);
      chains[instruction.getOperand(0).getReg()] = std::move(longer);
    }
  }
  return sums;
}

class SumsInPlace : public llvm::MachineFunctionPass {
 public:
  static char ID;
  SumsInPlace() : MachineFunctionPass(ID) {}

  llvm::StringRef getPassName() const override { return "Sums in place"; }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    auto* wrapper = getAnalysisIfAvailable<llvm::LiveVariablesWrapperPass>();
    if (wrapper == nullptr) return false;
    const llvm::TargetInstrInfo& instructions = *function.getSubtarget().getInstrInfo();
    bool changed = false;
    for (llvm::MachineBasicBlock& block : function) {
      for (llvm::MachineInstr* sum : SumsOfLoop(block, instructions)) {
        if (instructions.commuteInstruction(*sum, /*NewMI=*/false, kFirst, kSum) == nullptr) continue;
        // That the factors die here would be a reason to exchange them again.
        for (const unsigned factor : {kSecond, kSum})
          wrapper->getLV().removeVirtualRegisterKilled(sum->getOperand(factor).getReg(), *sum);
        changed = true;
      }
    }
    return changed;
  }
};

char SumsInPlace::ID = 0;

}  // namespace

llvm::Pass* MakeSumsInPlace() { return new SumsInPlace(); }

}  // namespace hone
