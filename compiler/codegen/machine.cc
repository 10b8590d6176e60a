#include "compiler/codegen/machine.h"

#include <map>
#include <mutex>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/target/cpu_table.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace hone {
namespace {

constexpr std::string_view kRiscV = "riscv64";

// Sums of integers stay in the order of the schedule. x86's machine combiner shortens chains of additions by adding up
// later terms first, which holds more of them in registers than there are: a tile of 6 x 16 sums by vpmaddwd and
// vpaddd, four steps unrolled, was spilled. (It leaves sums of floats alone, which are not associative.)
void KeepOrderOfSums() {
  const llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("x86-machine-combiner");
  HONE_CHECK(found != options.end()) << "LLVM " << LLVM_VERSION_STRING << " has no option x86-machine-combiner";
  static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(false);
}

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
    KeepOrderOfSums();
  });
}

// Every feature we know is stated, so that the code uses what the target says and nothing that only the core's name
// implies.
std::string FeatureText(const Target& target) {
  std::string text = target.arch == kRiscV ? "+m,+a,+f,+d,+c" : "";  // RV64GC, what systems for RISC-V want
  for (const std::string_view feature : KnownFeatures(target.arch)) {
    const std::string name(feature);
    absl::StrAppend(&text, text.empty() ? "" : ",", target.has(name) ? "+" : "-", name);
  }
  return text;
}

std::string Emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  HONE_CHECK(!machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
      << "LLVM cannot emit this file type";
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

absl::StatusOr<llvm::TargetMachine*> MachineFor(const Target& target, bool optimize) {
  InitializeOnce();
  using Key = std::tuple<std::string, std::string, std::string, bool>;
  thread_local std::map<Key, std::unique_ptr<llvm::TargetMachine>> machines;
  const Key key(target.arch, target.cpu, FeatureText(target), optimize);
  std::unique_ptr<llvm::TargetMachine>& machine = machines[key];
  if (machine != nullptr) return machine.get();

  const std::string triple = target.arch + "-unknown-linux-gnu";
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found == nullptr) {
    machines.erase(key);
    return absl::InvalidArgumentError(
        absl::StrCat("target ", target.text, ": this build's LLVM cannot generate code for it: ", error));
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only what is marked `contract` in the program
  options.FunctionSections = false;
  if (target.arch == kRiscV) options.MCOptions.ABIName = "lp64d";
  machine.reset(found->createTargetMachine(triple, target.cpu, std::get<2>(key), options, llvm::Reloc::PIC_,
                                           llvm::CodeModel::Small,
                                           optimize ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
  HONE_CHECK(machine != nullptr) << "no machine for " << triple;
  return machine.get();
}

void CleanUp(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

std::string EmitObject(llvm::Module& module, llvm::TargetMachine& machine) {
  return Emit(module, machine, llvm::CodeGenFileType::ObjectFile);
}
std::string EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine) {
  return Emit(module, machine, llvm::CodeGenFileType::AssemblyFile);
}

std::string LlvmVersion() { return LLVM_VERSION_STRING; }

}  // namespace hone
