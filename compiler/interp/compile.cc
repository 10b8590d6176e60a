#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/compiler.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {

absl::StatusOr<Code> Compiler::Whole() {
  HONE_RETURN_IF_ERROR(Parameters());
  HONE_RETURN_IF_ERROR(Statement(f_.body));
  Emit(Op::kReturn);
  return Finish();
}

int Compiler::NewSlots(int n) {
  const int slot = next_;
  next_ += n;
  high_ = std::max(high_, next_);
  return slot;
}

int Compiler::Constant(Slot value) {
  const auto [found, added] = constant_index_.emplace(std::bit_cast<uint64_t>(value), code_.constants.size());
  if (added) code_.constants.push_back(value);
  return -1 - static_cast<int>(found->second);
}

int Compiler::Emit(Op op, int lanes, int dst, int a, int b, int c) {
  code_.instrs.push_back({op, static_cast<uint16_t>(lanes), dst, a, b, c});
  return static_cast<int>(code_.instrs.size()) - 1;
}

int Compiler::TypeIndex(DType type) {
  const DType element = type.element();
  const auto found = std::find(code_.types.begin(), code_.types.end(), element);
  if (found != code_.types.end()) return static_cast<int>(found - code_.types.begin());
  code_.types.push_back(element);
  return static_cast<int>(code_.types.size()) - 1;
}

DType Compiler::Working(DType type) const {
  return options_.double_accumulation && type.is_float() ? DType::Float(64, type.lanes) : type;
}

absl::StatusOr<Code> Compiler::Finish() {
  code_.num_slots = high_;
  const auto place = [&](int& slot) {
    if (slot < 0) slot = high_ + (-1 - slot);
  };
  for (Instr& instr : code_.instrs) {
    const bool refers = instr.op != Op::kAlloc && instr.op != Op::kLoad && instr.op != Op::kStore &&
                        instr.op != Op::kAsyncCopy && instr.op != Op::kWaitGroup;
    place(instr.dst);
    if (refers) {
      place(instr.a);
      place(instr.b);
    }
    if (instr.op == Op::kSelect || instr.op == Op::kCheckDomain || instr.op == Op::kFma || instr.op == Op::kFmaF32) {
      place(instr.c);
    }
  }
  for (Access& access : code_.accesses) {
    for (int& slot : access.indices) place(slot);
  }
  for (BufferInfo& info : code_.buffers) {
    for (int& slot : info.dims) place(slot);
  }
  for (int& slot : code_.dim_slots) place(slot);
  return std::move(code_);
}

absl::Status Compiler::Parameters() {
  for (const Var& dim : f_.dims) {
    const int slot = NewSlots(1);
    vars_[dim.id()] = slot;
    code_.dim_slots.push_back(slot);
  }
  for (size_t i = 0; i < f_.params.size(); ++i) {
    const int buffer = AddBuffer(f_.params[i]);
    code_.buffers[static_cast<size_t>(buffer)].param = static_cast<int>(i);
    if (!f_.params[i].type().is_scalar()) return Error("a parameter of vectors");
  }
  return absl::OkStatus();
}

int Compiler::AddBuffer(const Buffer& buffer) {
  const auto [found, added] = buffers_.emplace(buffer.id(), static_cast<int>(code_.buffers.size()));
  if (added) code_.buffers.push_back({buffer, Working(buffer.type()), {}, -1});
  return found->second;
}

absl::Status Compiler::Shape(int index) {
  const Buffer buffer = code_.buffers[static_cast<size_t>(index)].buffer;
  if (!buffer.type().is_scalar())
    return absl::UnimplementedError(absl::StrCat("buffer ", buffer.name(), " of vectors"));
  std::vector<int> dims;
  if (IsOfSeveralWarps(buffer)) {
    dims.push_back(IntSlot(NumWarps(threads_)));
    of_warps_.insert(buffer.id());
  }
  for (const Expr& extent : buffer.shape()) {
    HONE_ASSIGN_OR_RETURN(const int slot, Expression(extent));
    dims.push_back(slot);
  }
  code_.buffers[static_cast<size_t>(index)].dims = std::move(dims);
  return absl::OkStatus();
}

absl::Status Compiler::Error(std::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat("interpreting ", f_.name, block_.empty() ? "" : ", block ", block_,
                                                 ": ", absl::string_view(message.data(), message.size())));
}

uint16_t Compiler::Place(const std::string& what) {
  const std::string text = what.empty() ? block_ : what;
  const auto found = std::find(code_.places.begin(), code_.places.end(), text);
  if (found != code_.places.end()) return static_cast<uint16_t>(found - code_.places.begin());
  if (code_.places.size() >= 65535) return 0;
  code_.places.push_back(text);
  return static_cast<uint16_t>(code_.places.size() - 1);
}

absl::StatusOr<Code> Compile(const PrimFunc& f, const InterpretOptions& options) {
  return Compiler(f, options).Whole();
}
absl::StatusOr<Code> CompileElements(const PrimFunc& f, const InterpretOptions& options, bool& complete) {
  return Compiler(f, options).Elements(complete);
}

}  // namespace hone::interp
