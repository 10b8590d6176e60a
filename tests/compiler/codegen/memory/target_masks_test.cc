// Which elements a target loads and stores under masks, by LLVM's own word.
#include <gtest/gtest.h>

#include "compiler/codegen/machine.h"
#include "compiler/target/cpu_table.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

TEST(MaskedBits, AreThoseOfTheCodeGenerator) {
  for (const CpuInfo& cpu : CpuTable()) {
    const absl::StatusOr<Target> target = ParseTarget(absl::StrCat("cpu:", std::string(cpu.name)));
    if (!target.ok()) continue;  // a level below what kernels need
    const absl::StatusOr<llvm::TargetMachine*> machine = MachineFor(*target, /*optimize=*/true);
    ASSERT_TRUE(machine.ok()) << machine.status();
    llvm::LLVMContext context;
    llvm::Module module("masks", context);
    module.setTargetTriple((*machine)->getTargetTriple().str());
    module.setDataLayout((*machine)->createDataLayout());
    llvm::Function* function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
                                                      llvm::GlobalValue::ExternalLinkage, "f", module);
    function->addFnAttr("target-cpu", (*machine)->getTargetCPU());
    function->addFnAttr("target-features", (*machine)->getTargetFeatureString());
    const llvm::TargetTransformInfo info = (*machine)->getTargetTransformInfo(*function);
    for (const int bits : {8, 16, 32, 64}) {
      llvm::Type* vector = llvm::FixedVectorType::get(llvm::IntegerType::get(context, static_cast<unsigned>(bits)),
                                                      static_cast<unsigned>(target->lanes(bits)));
      const llvm::Align align(static_cast<uint64_t>(bits / 8));
      const bool has = info.isLegalMaskedLoad(vector, align) && info.isLegalMaskedStore(vector, align);
      EXPECT_EQ(target->masked_bits() != 0 && bits >= target->masked_bits(), has) << target->text << ", " << bits;
    }
  }
}

}  // namespace
}  // namespace hone
