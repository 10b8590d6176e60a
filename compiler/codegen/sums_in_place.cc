#include "compiler/codegen/sums_in_place.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/support/check.h"
#include "llvm/CodeGen/LiveVariables.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

namespace hone {
namespace {

using llvm::MachineInstr;
using llvm::Register;

// Operands of VFMADD213 and its like: the result, which takes the first factor's place, two factors, and the sum.
constexpr unsigned kFirst = 1, kSecond = 2, kSum = 3;

// Writes over a factor, and can write over the sum.
bool MultipliesAndAdds(const MachineInstr& instruction, const llvm::TargetInstrInfo& instructions) {
  if (!instruction.isCommutable() || instruction.getNumExplicitOperands() != kSum + 1) return false;
  const llvm::StringRef name = instructions.getName(instruction.getOpcode());
  return name.ends_with("r") && (name.contains("FMADD213") || name.contains("FNMADD213"));
}

// One instruction of a chain: what it makes of `operand`, which it reads for the last time, is the next value.
struct Link {
  MachineInstr* instruction;
  unsigned operand;
  bool over_factor;  // it is a multiply-add of that sum, which writes over a factor as it is
};

// The values that a turn makes of one that goes round. That was a phi: the block copies it from the register `round` to
// begin with, to `first`, and the last value back to it in the end.
struct Chain {
  Register round, first;
  std::vector<Link> links;
};

class ChainsOfLoop {
 public:
  ChainsOfLoop(llvm::MachineBasicBlock& block)
      : registers_(block.getParent()->getRegInfo()),
        kinds_(*block.getParent()->getSubtarget().getRegisterInfo()),
        instructions_(*block.getParent()->getSubtarget().getInstrInfo()) {
    if (!block.isSuccessor(&block)) return;
    for (MachineInstr& instruction : block) {
      if (instruction.isFullCopy()) {
        Copy(instruction.getOperand(0).getReg(), instruction.getOperand(1).getReg());
      } else if (const std::optional<Link> link = LinkOf(instruction)) {
        Extend(*link);
      }
    }
  }

  const std::vector<Chain>& closed() const { return closed_; }

 private:
  bool IsVector(Register reg) const {
    constexpr unsigned kFewestBits = 128;
    return reg.isVirtual() && kinds_.getRegSizeInBits(*registers_.getRegClass(reg)) >= kFewestBits;
  }

  void Copy(Register to, Register from) {
    const auto chain = open_.find(from);
    if (chain != open_.end() && chain->second.round == to) {
      closed_.push_back(std::move(open_.extract(chain).mapped()));
    } else if (IsVector(to) && IsVector(from)) {
      open_[to] = {.round = from, .first = to, .links = {}};
    }
  }

  // nullopt: it ends no value of a chain, is not the only one that reads it, or cannot write over it.
  std::optional<Link> LinkOf(MachineInstr& instruction) const {
    if (instruction.getNumExplicitDefs() != 1 || !instruction.getOperand(0).isReg()) return std::nullopt;
    const llvm::MachineOperand& result = instruction.getOperand(0);
    if (!IsVector(result.getReg()) || result.getSubReg() != 0 || result.isEarlyClobber()) return std::nullopt;
    for (unsigned i = 1; i < instruction.getNumExplicitOperands(); ++i) {
      const llvm::MachineOperand& operand = instruction.getOperand(i);
      if (!operand.isReg() || !operand.isKill() || operand.getSubReg() != 0 || !open_.contains(operand.getReg()) ||
          registers_.getRegClass(operand.getReg()) != registers_.getRegClass(result.getReg())) {
        continue;
      }
      const bool first = open_.find(operand.getReg())->second.links.empty();  // keeps its register, whoever reads it
      if (!first && !registers_.hasOneNonDBGUse(operand.getReg())) continue;
      unsigned over = i;  // the operand that is written over, where it is not any
      instruction.isRegTiedToUseOperand(0, &over);
      if (over == i) return Link{&instruction, i, false};
      if (i == kSum && MultipliesAndAdds(instruction, instructions_)) return Link{&instruction, i, true};
    }
    return std::nullopt;
  }

  void Extend(const Link& link) {
    auto chain = open_.extract(link.instruction->getOperand(link.operand).getReg());
    chain.mapped().links.push_back(link);
    chain.key() = link.instruction->getOperand(0).getReg();
    open_.insert(std::move(chain));
  }

  const llvm::MachineRegisterInfo& registers_;
  const llvm::TargetRegisterInfo& kinds_;
  const llvm::TargetInstrInfo& instructions_;
  std::map<Register, Chain> open_;  // by the register that holds the last value so far
  std::vector<Chain> closed_;
};

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
    bool changed = false;
    for (llvm::MachineBasicBlock& block : function) {
      const ChainsOfLoop chains(block);
      for (const Chain& chain : chains.closed()) {
        Rewrite(chain, *function.getSubtarget().getInstrInfo(), wrapper->getLV());
        changed = true;
      }
    }
    return changed;
  }

 private:
  // Between the two copies all values take the first one's register, but for the last: it may be read behind the loop.
  static void Rewrite(const Chain& chain, const llvm::TargetInstrInfo& instructions, llvm::LiveVariables& lives) {
    for (const Link& link : chain.links) {
      MachineInstr& instruction = *link.instruction;
      llvm::MachineOperand& value = instruction.getOperand(link.operand);
      lives.removeVirtualRegisterKilled(value.getReg(), instruction);
      value.setReg(chain.first);
      const bool last = &link == &chain.links.back();
      if (last) lives.addVirtualRegisterKilled(chain.first, instruction);
      if (link.over_factor) {
        HONE_CHECK(instructions.commuteInstruction(instruction, /*NewMI=*/false, kFirst, kSum) != nullptr);
        // That the factors die here would be a reason to exchange them again.
        for (const unsigned factor : {kSecond, kSum})
          lives.removeVirtualRegisterKilled(instruction.getOperand(factor).getReg(), instruction);
      }
      if (!last) instruction.getOperand(0).setReg(chain.first);
    }
  }
};

char SumsInPlace::ID = 0;

}  // namespace

llvm::Pass* MakeSumsInPlace() { return new SumsInPlace(); }

}  // namespace hone
