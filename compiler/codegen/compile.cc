#include "compiler/codegen/compile.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/features_section.h"
#include "compiler/codegen/machine.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "generator_hash.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace hone {
namespace {

struct Kernel {
  std::string symbol;
  const PrimFunc* func;
};

struct Generated {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
  std::vector<LoweredFunc> lowered;  // of each kernel
};

// The object says which features it needs; the linker passes them on to the image.
void StateFeatures(const Target& target, llvm::Module& module) {
  llvm::Constant* text =
      llvm::ConstantDataArray::getString(module.getContext(), absl::StrJoin(target.features, ","), /*AddNull=*/false);
  auto* global = new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, text, "hone_features");
  global->setSection(kFeaturesSection);
  global->setAlignment(llvm::Align(1));
  llvm::appendToCompilerUsed(module, {global});
}

absl::StatusOr<Generated> Generate(const std::vector<Kernel>& kernels, const Target& target, const LowerOptions& lower,
                                   const EmitOptions& emit, bool optimize) {
  Generated out;
  HONE_ASSIGN_OR_RETURN(out.machine, MachineFor(target, optimize));
  out.context = std::make_unique<llvm::LLVMContext>();
  out.module = std::make_unique<llvm::Module>("hone", *out.context);
  out.module->setTargetTriple(out.machine->getTargetTriple().str());
  out.module->setDataLayout(out.machine->createDataLayout());
  for (const Kernel& kernel : kernels) {
    absl::StatusOr<LoweredFunc> lowered = Lower(*kernel.func, lower);
    if (!lowered.ok()) return Annotate(lowered.status(), absl::StrCat("lowering ", kernel.func->name));
    EmitOptions options = emit;
    options.symbol = kernel.symbol;
    options.features = lower.features;
    EmitKernel(*lowered, options, *out.module);
    out.lowered.push_back(*std::move(lowered));
  }
  if (!optimize) {  // a millisecond that candidates do without
    std::string complaint;
    llvm::raw_string_ostream stream(complaint);
    HONE_CHECK(!llvm::verifyModule(*out.module, &stream)) << complaint;
  }
  for (llvm::Function& function : *out.module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", out.machine->getTargetCPU());
    function.addFnAttr("target-features", out.machine->getTargetFeatureString());
  }
  StateFeatures(target, *out.module);
  if (optimize) CleanUp(*out.module, *out.machine);
  return out;
}

absl::StatusOr<KernelTensor> DescribeTensor(const Buffer& buffer) {
  KernelTensor tensor{.dtype = ToText(buffer.type())};
  const std::optional<int64_t> elements = MostElements(buffer);
  if (!elements.has_value() || *elements > std::numeric_limits<int64_t>::max() / buffer.type().bytes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("parameter ", buffer.name(), " may be larger than memory; give its sizes smaller ranges"));
  }
  Analyzer known;
  for (const Expr& extent : buffer.shape()) tensor.shape.push_back(known.ConstBounds(extent).max);
  tensor.bytes = *elements * buffer.type().bytes();
  return tensor;
}

uint64_t HashOf(const ScheduledProgram& program) {
  uint64_t hash = StructuralHash(program.main);
  for (const Prepare& prepare : program.prepares) {
    hash = hash * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(prepare.param);
    hash = hash * 0x9E3779B97F4A7C15u + StructuralHash(prepare.func);
  }
  return hash;
}

std::vector<Kernel> KernelsOf(const ScheduledProgram& program, const std::string& symbol) {
  std::vector<Kernel> kernels = {{symbol, &program.main}};
  for (size_t i = 0; i < program.prepares.size(); ++i) {
    kernels.push_back({absl::StrCat(symbol, "_prepare", i), &program.prepares[i].func});
  }
  return kernels;
}

absl::StatusOr<KernelSet> DescribeSet(const ScheduledProgram& program, const std::vector<Kernel>& kernels,
                                      const std::vector<LoweredFunc>& lowered) {
  KernelSet set;
  set.symbol = kernels[0].symbol;
  set.num_outputs = program.main.num_outputs();
  set.scratch_bytes = lowered[0].scratch_bytes;
  set.thread_scratch_bytes = lowered[0].thread_scratch_bytes;
  for (const Var& size : program.main.dims) {
    const SizeRange range = size.range().value_or(SizeRange{});
    set.sizes.push_back({size.name(), range.min, range.max});
  }
  for (const Buffer& param : program.main.params) {
    HONE_ASSIGN_OR_RETURN(KernelTensor tensor, DescribeTensor(param));
    set.params.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < program.prepares.size(); ++i) {
    const Prepare& prepare = program.prepares[i];
    PreparedConstant constant{.param = prepare.param, .symbol = kernels[i + 1].symbol};
    HONE_ASSIGN_OR_RETURN(constant.packed, DescribeTensor(prepare.func.params.at(1)));
    HONE_ASSIGN_OR_RETURN(set.params.at(prepare.param),
                          DescribeTensor(prepare.func.params.at(0)));  // as the task states it
    constant.scratch_bytes = lowered[i + 1].scratch_bytes;
    constant.thread_scratch_bytes = lowered[i + 1].thread_scratch_bytes;
    set.prepared.push_back(std::move(constant));
  }
  return set;
}

EmitOptions ScheduledCode(const CompileOptions& options) {
  return {
      .contract = options.fuse, .precise = options.numeric == NumericLevel::kStrict, .serial = options.threads == 1};
}

absl::StatusOr<CompiledKernel> Compile(const ScheduledProgram& program, const Target& target,
                                       const CompileOptions& options, const LowerOptions& lower,
                                       const EmitOptions& emit) {
  if (!program.main.dims.empty() && !options.symbolic) {
    return absl::FailedPreconditionError(absl::StrCat(program.main.name, " has the symbolic size ",
                                                      program.main.dims[0].name(), "; fix its sizes before compiling"));
  }
  const std::vector<Kernel> kernels = KernelsOf(program, options.symbol);
  HONE_ASSIGN_OR_RETURN(const Generated generated, Generate(kernels, target, lower, emit, options.optimize));
  CompiledKernel compiled;
  HONE_ASSIGN_OR_RETURN(compiled.set, DescribeSet(program, kernels, generated.lowered));
  compiled.object = EmitObject(*generated.module, *generated.machine);
  compiled.program_hash = HashOf(program);
  for (const LoweredFunc& lowered : generated.lowered) {
    const std::vector<std::string> serial = SerialLoops(lowered.func);
    compiled.serial_loops.insert(compiled.serial_loops.end(), serial.begin(), serial.end());
  }
  return compiled;
}

}  // namespace

absl::StatusOr<CompiledKernel> CompileKernel(const ScheduledProgram& program, const Target& target,
                                             const CompileOptions& options) {
  return Compile(program, target, options, LowerOptionsFor(target), ScheduledCode(options));
}

absl::StatusOr<CompiledKernel> CompilePlain(const PrimFunc& func, const Target& target, const CompileOptions& options) {
  LowerOptions lower = LowerOptionsFor(target);
  lower.plain = true;
  return Compile(ScheduledProgram{func, {}}, target, options, lower,
                 EmitOptions{.contract = false, .precise = true, .serial = options.threads <= 1});
}

absl::StatusOr<std::string> CompileToAssembly(const ScheduledProgram& program, const Target& target,
                                              const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Generated generated,
                        Generate(KernelsOf(program, options.symbol), target, LowerOptionsFor(target),
                                 ScheduledCode(options), options.optimize));
  return EmitAssembly(*generated.module, *generated.machine);
}

absl::StatusOr<std::string> CompileToLlvmIr(const ScheduledProgram& program, const Target& target,
                                            const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Generated generated,
                        Generate(KernelsOf(program, options.symbol), target, LowerOptionsFor(target),
                                 ScheduledCode(options), options.optimize));
  std::string text;
  llvm::raw_string_ostream stream(text);
  generated.module->print(stream, /*AAW=*/nullptr);
  return text;
}

std::string GeneratorFingerprint() { return absl::StrCat("hone-cpu-", kGeneratorHash, "/llvm-", LlvmVersion()); }

}  // namespace hone
