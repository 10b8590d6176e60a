#include "compiler/codegen/machine.h"

#include <map>
#include <mutex>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/sums_in_place.h"
#include "compiler/support/check.h"
#include "compiler/support/sanitized.h"
#include "compiler/target/cpu_table.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
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
#include "llvm/Transforms/Utils/LoopSimplify.h"

namespace hone {
namespace {

constexpr std::string_view kRiscV = "riscv64";

// Sets a switch of LLVM's that has no place in its interface.
void Switch(const char* name, bool value) {
  const llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(name);
  HONE_CHECK(found != options.end()) << "LLVM " << LLVM_VERSION_STRING << " has no option " << name;
  static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(value);
}

// Sums of integers stay in the order of the schedule. x86's machine combiner shortens chains of additions by adding up
// later terms first, which holds more of them in registers than there are: a tile of 6 x 16 sums by vpmaddwd and
// vpaddd, four steps unrolled, was spilled. (It leaves sums of floats alone, which are not associative.)
void KeepOrderOfSums() { Switch("x86-machine-combiner", false); }

// A tile's sums depend on those of the turn before, each on one: nothing is gained by loading what the next steps
// multiply as early as that chain seems to ask for, or side by side, and a register more than there are is spilled.
void KeepLoadsWhereTheyAre() {
  Switch("misched-cyclicpath", false);
  Switch("misched-cluster", false);
}

// Pointers go along with loops as they are emitted (emit_address.cc). LLVM's strength reduction finds nothing more,
// would take a fifth to a third of the time of code generation, and spills more of what it leaves.
void KeepAddresses() { Switch("disable-lsr", true); }

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
    KeepLoadsWhereTheyAre();
    KeepAddresses();
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

// As LLVMTargetMachine::addPassesToEmitFile puts them together, and one of ours.
void AddPasses(llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type,
               llvm::legacy::PassManager& passes) {
  auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* infos = new llvm::MachineModuleInfoWrapperPass(&target);
  llvm::TargetPassConfig* config = target.createPassConfig(passes);
  config->setDisableVerify(true);
  if (machine.getTargetTriple().isX86()) {
    config->insertPass(&llvm::PHIEliminationID, MakeSumsInPlace());
    // What is looked for in programs with a sanitizer: that a pass of ours leaves what LLVM's own may rely on.
    if (kSanitized) config->insertPass(&llvm::PHIEliminationID, llvm::createMachineVerifierPass("after sums in place"));
    config->disablePass(&llvm::PostRASchedulerID);  // these cores reorder by themselves
  }
  passes.add(config);
  passes.add(infos);
  HONE_CHECK(!config->addISelPasses()) << "LLVM selects no instructions for this target";
  config->addMachinePasses();
  config->setInitialized();
  HONE_CHECK(!target.addAsmPrinter(passes, out, nullptr, type, infos->getMMI().getContext()))
      << "LLVM cannot emit this file type";
  passes.add(llvm::createFreeMachineFunctionPass());
}

std::string Emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  AddPasses(machine, out, type, passes);
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
  passes.addPass(llvm::LoopSimplifyPass());  // with a place in front of every loop, registers are not spilled inside
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
