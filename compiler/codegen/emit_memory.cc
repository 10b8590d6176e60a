// Loads and stores.
#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/codegen/emitter.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "llvm/TargetParser/Triple.h"

namespace hone {
namespace {

// The stride-1 ramp's base when the elements are contiguous.
const Ramp* Contiguous(const Expr& index) {
  const Ramp* ramp = index.As<Ramp>();
  return ramp != nullptr && IsConst(ramp->stride, 1) ? ramp : nullptr;
}

// Whether all lanes of an access, those that are switched off as well, surely lie in a buffer that is kept in
// registers: then a mask chooses among values, and needs no access to memory.
bool IsWholeInRegisters(const Buffer& buffer, const BufferMemory& memory, const Expr& index) {
  const Ramp* ramp = Contiguous(index);
  if (ramp == nullptr || !llvm::isa<llvm::AllocaInst>(memory.pointer)) return false;
  const int64_t first = ConstantValue(ramp->base).value_or(-1);
  return first >= 0 && first + index.type().lanes <= buffer.NumElements().value_or(0);
}

// Whether the index can be computed although nothing is read there: it reads no memory and divides by constants alone.
bool SafeWhereItIsNotUsed(const Expr& index) {
  bool safe = IsPure(index);
  ForEachExpr(index, [&](const Expr& e) {
    const Binary* binary = e.As<Binary>();
    if (binary != nullptr && IsDivision(binary->op)) safe = safe && ConstantValue(binary->b).value_or(0) != 0;
    return safe;
  });
  return safe;
}

}  // namespace

// The vector with lanes of zero behind its own.
llvm::Value* Emitter::Widened(llvm::Value* vector, int lanes) {
  const int own = static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  if (own == lanes) return vector;
  std::vector<int> from(static_cast<size_t>(lanes), own);
  std::iota(from.begin(), from.begin() + own, 0);
  return b_.CreateShuffleVector(vector, llvm::Constant::getNullValue(vector->getType()), from);
}

// Pointers to the elements that a vector of indices names; lanes behind those of the index are given element 0, or the
// first of the others.
llvm::Value* Emitter::VectorAddress(const Buffer& buffer, const Expr& index, int lanes) {
  const auto found = frame_.buffers.find(buffer);
  HONE_CHECK(found != frame_.buffers.end()) << buffer.name() << " is not in scope";
  llvm::Type* element = MemoryTypeOf(buffer.type());
  if (const Ramp* ramp = index.As<Ramp>()) {  // a scalar base, so that the offsets are constants
    if (const std::optional<int64_t> stride = ConstantValue(ramp->stride)) {
      std::vector<llvm::Constant*> offsets;
      const bool narrow = std::abs(*stride) * index.type().lanes < (int64_t{1} << 31);
      for (int i = 0; i < lanes; ++i) {
        const int64_t offset = i < index.type().lanes ? *stride * i : 0;
        offsets.push_back(narrow ? b_.getInt32(static_cast<uint32_t>(offset)) : Int64(offset));
      }
      return b_.CreateGEP(element, AddressOf(buffer, ramp->base).pointer, llvm::ConstantVector::get(offsets));
    }
  }
  return b_.CreateGEP(element, found->second.pointer, Widened(EmitExpr(index), lanes));
}

// LLVM makes a number of lanes that is no power of two one, with indices that it leaves undefined. Where such lanes
// fill a register of indices, it may be the register of results, and x86 has no gather with one register for both: the
// instruction is illegal. So these lanes have an index here, under a mask that leaves them out.
llvm::Value* Emitter::EmitGather(const Load& load, DType type, llvm::Value* mask) {
  const Expr& index = load.indices[0];
  const bool widens = llvm::Triple(module_.getTargetTriple()).isX86();
  const int lanes = widens ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(type.lanes))) : type.lanes;
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), type.lanes));
  auto* wide = llvm::FixedVectorType::get(MemoryTypeOf(type)->getScalarType(), static_cast<unsigned>(lanes));
  llvm::CallInst* gathered =
      b_.CreateMaskedGather(wide, VectorAddress(load.buffer, index, lanes), llvm::Align(type.bytes()),
                            Widened(mask, lanes), llvm::Constant::getNullValue(wide));
  Annotate(gathered, frame_.buffers.at(load.buffer));
  if (lanes == type.lanes) return gathered;
  std::vector<int> own(static_cast<size_t>(type.lanes));
  std::iota(own.begin(), own.end(), 0);
  return b_.CreateShuffleVector(gathered, own);
}

void Emitter::Annotate(llvm::Instruction* access, const BufferMemory& memory) const {
  if (memory.scope != nullptr) access->setMetadata(llvm::LLVMContext::MD_alias_scope, memory.scope);
  if (memory.noalias != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, memory.noalias);
  if (memory.read_only && access->mayReadFromMemory()) {
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
}

llvm::Value* Emitter::ToMemory(llvm::Value* value, DType type) {
  if (type.bits >= 8) return value;
  return b_.CreateIntCast(value, MemoryTypeOf(type), /*isSigned=*/type.code == TypeCode::kInt);
}
llvm::Value* Emitter::FromMemory(llvm::Value* value, DType type) {
  if (type.is_bool()) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return type.bits < 8 ? b_.CreateTrunc(value, TypeOf(type)) : value;
}

// For reading, into every level of cache. Registers need none; a vector of places is asked for by its first.
void Emitter::EmitPrefetch(const Load& element) {
  const Expr& index = element.indices[0];
  const Ramp* ramp = index.As<Ramp>();
  if (element.buffer.scope() == Scope::kRegister || (ramp == nullptr && !index.type().is_scalar())) return;
  llvm::Value* address = AddressOf(element.buffer, ramp != nullptr ? ramp->base : index).pointer;
  constexpr int kRead = 0, kKeep = 3, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                     {address, b_.getInt32(kRead), b_.getInt32(kKeep), b_.getInt32(kData)});
}

llvm::Value* Emitter::EmitLoad(const Load& load, DType type) {
  HONE_CHECK(load.indices.size() == 1) << load.buffer.name() << ": not flattened";
  const Expr& index = load.indices[0];
  const BufferMemory& memory = frame_.buffers.at(load.buffer);
  llvm::Type* memory_type = MemoryTypeOf(type);
  llvm::Value* mask = load.mask ? EmitExpr(load.mask) : nullptr;
  if (index.type().is_scalar() && mask == nullptr) {
    const Address at = AddressOf(load.buffer, index);
    llvm::LoadInst* value = b_.CreateAlignedLoad(memory_type, at.pointer, llvm::Align(at.align));
    Annotate(value, memory);
    return FromMemory(value, type);
  }
  llvm::Constant* zero = llvm::Constant::getNullValue(memory_type);
  const Ramp* ramp = Contiguous(index);
  if (index.type().is_scalar()) {  // a scalar under a scalar mask
    llvm::Value* chosen = b_.CreateSelect(mask, AddressOf(load.buffer, index).pointer, memory.pointer);
    llvm::LoadInst* value = b_.CreateAlignedLoad(memory_type, chosen, llvm::Align(type.bytes()));
    Annotate(value, memory);
    return FromMemory(b_.CreateSelect(mask, value, zero), type);
  }
  if (ramp != nullptr && (mask == nullptr || IsWholeInRegisters(load.buffer, memory, index))) {
    const Address at = AddressOf(load.buffer, ramp->base);
    llvm::LoadInst* value = b_.CreateAlignedLoad(memory_type, at.pointer, llvm::Align(at.align));
    Annotate(value, memory);
    return FromMemory(mask == nullptr ? value : b_.CreateSelect(mask, value, zero), type);
  }
  if (ramp != nullptr) {
    const Address at = AddressOf(load.buffer, ramp->base);
    llvm::CallInst* value = b_.CreateMaskedLoad(memory_type, at.pointer, llvm::Align(at.align), mask, zero);
    Annotate(value, memory);
    return FromMemory(value, type);
  }
  if (llvm::Value* near = EmitLoadOfNearLanes(load, type, mask)) return FromMemory(near, type);
  return FromMemory(EmitGather(load, type, mask), type);
}

// A place in the module where the constant lies, one for all who ask for it.
llvm::GlobalVariable* Emitter::PlaceOfConstant(llvm::Constant* value, llvm::Align align) {
  llvm::GlobalVariable*& place = constants_[value];
  if (place == nullptr) {
    place = new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                     value, "constant");
    place->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);  // its address says nothing
  }
  place->setAlignment(std::max(align, place->getAlign().valueOrOne()));
  return place;
}

// What a padding reads, A[i] if 0 <= i else 0: outside, the load takes the constant from a place where it lies, which
// is an address chosen in place of a branch. nullptr where the expression is not of this form.
llvm::Value* Emitter::EmitGuardedLoad(const IfThenElseExpr& e, DType type) {
  const Load* load = e.yes.As<Load>();
  if (load == nullptr || load->mask || type.bits < 8) return nullptr;
  const Expr& index = load->indices[0];
  const Ramp* ramp = Contiguous(index);
  if ((ramp == nullptr && !index.type().is_scalar()) || !SafeWhereItIsNotUsed(index)) return nullptr;
  const Broadcast* everywhere = e.no.As<Broadcast>();
  const Expr& element = everywhere != nullptr ? everywhere->value : e.no;
  if (element.As<IntImm>() == nullptr && element.As<FloatImm>() == nullptr) return nullptr;
  const BufferMemory& memory = frame_.buffers.at(load->buffer);
  if (llvm::isa<llvm::AllocaInst>(memory.pointer)) return nullptr;
  auto* outside = llvm::dyn_cast<llvm::Constant>(ToMemory(EmitExpr(e.no), type));
  if (outside == nullptr) return nullptr;
  const Address at = AddressOf(load->buffer, ramp != nullptr ? ramp->base : index);
  llvm::GlobalVariable* place = PlaceOfConstant(outside, llvm::Align(at.align));
  llvm::Value* chosen = b_.CreateSelect(EmitExpr(e.condition), at.pointer, place);
  llvm::LoadInst* value = b_.CreateAlignedLoad(outside->getType(), chosen, llvm::Align(at.align));
  Annotate(value, memory);
  return FromMemory(value, type);
}

// x86 has such stores of vectors that are aligned to their size; others of the buffer go through the caches.
bool Emitter::GoesPastCaches(const Buffer& buffer, const Address& at, llvm::Type* type) const {
  constexpr uint64_t kLeastVector = 16, kMostVector = 64;
  if (streamed_.count(buffer) == 0 || !type->isVectorTy()) return false;
  const uint64_t bytes = type->getPrimitiveSizeInBits() / 8;
  return llvm::Triple(module_.getTargetTriple()).isX86() && bytes >= kLeastVector && std::has_single_bit(bytes) &&
         std::min(bytes, kMostVector) <= at.align;
}

void Emitter::EmitMemoryStore(const Buffer& buffer, const Expr& index, llvm::Value* value, llvm::Value* mask,
                              DType type) {
  const auto found = frame_.buffers.find(buffer);
  HONE_CHECK(found != frame_.buffers.end()) << buffer.name() << " is not in scope";
  const BufferMemory& memory = found->second;
  value = ToMemory(value, type);
  const Ramp* ramp = Contiguous(index);
  if (index.type().is_scalar() || (ramp != nullptr && (mask == nullptr || IsWholeInRegisters(buffer, memory, index)))) {
    HONE_CHECK(!index.type().is_scalar() || mask == nullptr)
        << buffer.name() << ": a scalar store is guarded by a branch";
    const Address at = AddressOf(buffer, ramp != nullptr ? ramp->base : index);
    if (mask != nullptr) {  // a register keeps its old lanes: no branch, no memory
      value = b_.CreateSelect(mask, value, b_.CreateAlignedLoad(value->getType(), at.pointer, llvm::Align(at.align)));
    }
    llvm::StoreInst* store = b_.CreateAlignedStore(value, at.pointer, llvm::Align(at.align));
    Annotate(store, memory);
    if (GoesPastCaches(buffer, at, value->getType())) {
      store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
      frame_.streams = true;
    }
    return;
  }
  if (ramp != nullptr) {
    const Address at = AddressOf(buffer, ramp->base);
    Annotate(b_.CreateMaskedStore(value, at.pointer, llvm::Align(at.align), mask), memory);
    return;
  }
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), type.lanes));
  llvm::Value* places = VectorAddress(buffer, index, index.type().lanes);
  Annotate(b_.CreateMaskedScatter(value, places, llvm::Align(type.bytes()), mask), memory);
}

}  // namespace hone
