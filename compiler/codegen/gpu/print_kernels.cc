#include "compiler/codegen/gpu/print_kernels.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Words that kernels may not use as names, in any dialect: of C and its descendants, types, and what printed text calls
// without a helper, beside the functions of ir/math_functions.h.
constexpr absl::string_view kTaken[] = {
    "auto",    "bool",   "break",    "case",   "char",   "const",    "continue", "default",  "do",        "double",
    "else",    "enum",   "extern",   "false",  "float",  "for",      "goto",     "half",     "if",        "inline",
    "int",     "long",   "kernel",   "global", "local",  "private",  "constant", "register", "restrict",  "return",
    "short",   "signed", "sizeof",   "static", "struct", "switch",   "true",     "typedef",  "uchar",     "uint",
    "ulong",   "union",  "unsigned", "ushort", "void",   "volatile", "while",    "min",      "max",       "shared",
    "barrier", "this",   "new",      "delete", "class",  "template", "typename", "operator", "namespace", "asm",
    "event_t", "image",  "sampler",  "size_t", "pipe",   "abs",      "fma",      "fmaf",     "fmod",      "fmodf",
    "isnan",   "isinf",  "popcount", "y0",     "y1",     "j0",       "j1",       "gamma",    "select",    "all",
    "any",     "dot",    "mix",      "step",   "sign",   "length",   "cross",    "main",     "clamp",     "round",
    "index",
};

// Space between the type and the name of a pointer's declaration.
std::string Pointer(absl::string_view address, absl::string_view type, bool read_only, absl::string_view restricted) {
  return absl::StrCat(address, read_only ? "const " : "", type, "* ", restricted);
}

}  // namespace

LanePrinter::LanePrinter(const Dialect& dialect, const std::set<std::string>& features, Helpers& helpers)
    : dialect_(dialect), helpers_(helpers) {
  if (dialect.intrinsic_helper != nullptr) copies_ = FindAsyncCopies(features);
  uint64_t id = ~uint64_t{0};  // of no variable: they are counted from below
  for (const absl::string_view word : kTaken) names_.Define(id--, word);
  for (const MathFunction& function : MathFunctions()) {
    const std::string name = dialect.name_of_math(function);
    if (name.empty()) continue;
    names_.Define(id--, name);
    if (!dialect.float_suffix.empty()) names_.Define(id--, absl::StrCat(name, dialect.float_suffix));
  }
}

const std::string& LanePrinter::NameOf(const Var& var) { return names_.Lookup(var.id(), var.name()); }
const std::string& LanePrinter::NameOf(const Buffer& buffer) { return names_.Lookup(buffer.id(), buffer.name()); }

std::string LanePrinter::PrintKernel(const Launch& launch, const DeviceKernel& kernel) {
  out_ = absl::StrReplaceAll(dialect_.kernel,
                             {{"{x}", absl::StrCat(launch.block[0])},
                              {"{y}", absl::StrCat(launch.block[1])},
                              {"{z}", absl::StrCat(launch.block[2])},
                              {"{threads}", absl::StrCat(launch.block[0] * launch.block[1] * launch.block[2])}});
  absl::StrAppend(&out_, launch.kernel, "(");
  for (const DeviceKernel::Argument& argument : kernel.arguments) {
    absl::StrAppend(
        &out_, &argument == kernel.arguments.data() ? "" : ", ",
        Pointer(dialect_.global, MemoryType(dialect_, argument.buffer.type()), !argument.written, dialect_.restricted),
        NameOf(argument.buffer));
  }
  absl::StrAppend(&out_, ") {\n");
  depth_ = 1;
  if (launch.shared_bytes > 0) {
    const bool at_launch = IsSharedGivenAtLaunch(dialect_, launch.shared_bytes);
    Line(absl::StrReplaceAll(at_launch ? dialect_.dynamic_shared_memory : dialect_.shared_memory,
                             {{"{bytes}", absl::StrCat(launch.shared_bytes)}}));
  }
  for (const DeviceKernel::Shared& shared : kernel.shared) {
    const std::string type = Pointer(dialect_.shared, MemoryType(dialect_, shared.buffer.type()), false, "");
    Line(absl::StrCat(type, "const ", NameOf(shared.buffer), " = (", type.substr(0, type.size() - 1), ")",
                      shared.offset == 0 ? "shared" : absl::StrCat("(shared + ", shared.offset, ")"), ";"));
  }
  const auto bind = [&](const Var& var, int64_t extent, absl::string_view word) {
    if (!var) return;
    known_.Bind(var, Range{IntConst(0, var.type()), IntConst(extent, var.type())});
    const std::string type(ValueType(dialect_, var.type()));
    Line(absl::StrCat("const ", type, " ", NameOf(var), " = (", type, ")", word, ";"));
  };
  for (size_t axis = 0; axis < 3; ++axis) bind(kernel.block_index[axis], launch.grid[axis], dialect_.block_index[axis]);
  for (size_t axis = 0; axis < 3; ++axis)
    bind(kernel.thread_index[axis], launch.block[axis], dialect_.thread_index[axis]);
  OnStmt(kernel.body);
  Close();
  return out_;
}

absl::StatusOr<std::string> PrintKernels(const DeviceProgram& program, const Dialect& dialect,
                                         const std::set<std::string>& features) {
  Helpers helpers(dialect);
  std::string kernels;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    LanePrinter printer(dialect, features, helpers);
    absl::StrAppend(&kernels, "\n", printer.PrintKernel(program.launches[i], program.kernels[i]));
    HONE_RETURN_IF_ERROR(printer.status());
  }
  return absl::StrCat(dialect.head, helpers.Text(), kernels);
}

}  // namespace hone
