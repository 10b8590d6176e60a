#include "tests/compiler/codegen/tiles/compile_emulated.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/machine.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace hone::testing {
namespace {

constexpr char kX86[] = "llvm.x86.", kEveryX86[] = "llvm.x86.sse";  // x86-64 has SSE and SSE2 itself

//   R emulated(A a, B b) { R result; const void* args[] = {&a, &b}; body(&result, args); return result; }
// The body is called by its address, since an image has no undefined symbols.
llvm::Function* FunctionAround(X86Body body, llvm::Function& function) {
  llvm::FunctionType* const type = function.getFunctionType();
  auto* around = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "emulated." + function.getName(),
                                        function.getParent());
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(function.getContext(), "", around));
  llvm::Type* const result_type = type->getReturnType();
  const bool returns = !result_type->isVoidTy();
  llvm::Value* const result =
      returns ? b.CreateAlloca(result_type) : static_cast<llvm::Value*>(llvm::ConstantPointerNull::get(b.getPtrTy()));
  llvm::Value* const args = b.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), type->getNumParams() + 1));
  for (llvm::Argument& arg : around->args()) {
    llvm::Value* const at = b.CreateAlloca(arg.getType());
    b.CreateStore(&arg, at);
    b.CreateStore(at, b.CreateConstGEP1_64(b.getPtrTy(), args, arg.getArgNo()));
  }
  llvm::FunctionType* const body_type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
  b.CreateCall(body_type, b.CreateIntToPtr(b.getInt64(reinterpret_cast<uint64_t>(body)), b.getPtrTy()), {result, args});
  if (returns) {
    b.CreateRet(b.CreateLoad(result_type, result));
  } else {
    b.CreateRetVoid();
  }
  return around;
}

// In line: vectors of bfloat16 are no arguments without instructions for them.
void ReplaceCalls(llvm::Function& function, llvm::Function& by) {
  std::vector<llvm::CallBase*> calls;
  for (llvm::User* user : function.users()) calls.push_back(llvm::cast<llvm::CallBase>(user));
  function.replaceAllUsesWith(&by);
  for (llvm::CallBase* call : calls) {
    llvm::InlineFunctionInfo info;
    HONE_CHECK(llvm::InlineFunction(*call, info).isSuccess()) << by.getName().str();
  }
  function.eraseFromParent();
  by.eraseFromParent();
}

absl::Status ReplaceFunctions(llvm::Module& module, X86Body (*find)(std::string_view),
                              std::map<std::string, int>& calls) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module) {
    const bool of_target = function.getName().starts_with(kX86) && !function.getName().starts_with(kEveryX86);
    if (of_target && !function.use_empty()) functions.push_back(&function);
  }
  for (llvm::Function* function : functions) {
    const std::string name = function->getName().str();
    X86Body const body = find(name);
    if (body == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("the code calls ", name,
                       ", which has no body in tests/compiler/codegen/machine_code/x86_functions.cc: add one"));
    }
    calls[name] = static_cast<int>(function->getNumUses());
    ReplaceCalls(*function, *FunctionAround(body, *function));
  }
  return absl::OkStatus();
}

// The code needs no feature that this machine lacks, and uses those that it has.
void CompileForMachine(llvm::Module& module, const llvm::TargetMachine& machine) {
  for (const char* stated : {"llvm.compiler.used", "hone_features"}) module.getNamedGlobal(stated)->eraseFromParent();
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
}

}  // namespace

absl::StatusOr<EmulatedKernel> CompileEmulated(const ScheduledProgram& program, const Target& target,
                                               const CompileOptions& options, X86Body (*find)(std::string_view)) {
  EmulatedKernel emulated;
  HONE_ASSIGN_OR_RETURN(emulated.kernel, CompileKernel(program, target, options));
  HONE_ASSIGN_OR_RETURN(const std::string text, CompileToLlvmIr(program, target, options));
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  HONE_CHECK(module != nullptr) << diagnostic.getMessage().str() << "\n" << text;
  HONE_RETURN_IF_ERROR(ReplaceFunctions(*module, find, emulated.calls));
  HONE_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, MachineFor(HostTarget(), options.optimize));
  CompileForMachine(*module, *machine);
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  HONE_CHECK(!llvm::verifyModule(*module, &stream)) << complaint;
  emulated.kernel.object = EmitObject(*module, *machine);
  return emulated;
}

}  // namespace hone::testing
