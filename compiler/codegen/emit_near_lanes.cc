// Vector loads whose lanes lie at constant distances from each other, and near: the input channels of a group for the
// output channels of several, every other element of a row. A load or two and a shuffle take the place of a gather.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/codegen/emitter.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/sum.h"

namespace hone {
namespace {

// Elements that a vector is put together of by choosing; and how many are better chosen than shuffled.
constexpr int64_t kMostChosen = 4, kBetterChosen = 2;

// A vector of indices: base + offsets[lane].
struct LaneOffsets {
  Expr base;  // a scalar; absent: 0
  std::vector<int64_t> offsets;
};

std::optional<LaneOffsets> LaneOffsetsOf(const Expr& index, size_t lanes);

// The constant that every lane holds.
std::optional<int64_t> ConstantOfLanes(const Expr& e) {
  const Broadcast* broadcast = e.As<Broadcast>();
  return broadcast != nullptr ? ConstantValue(broadcast->value) : std::nullopt;
}

std::optional<LaneOffsets> OffsetsOfBinary(const Binary& binary, size_t lanes) {
  std::optional<LaneOffsets> a = LaneOffsetsOf(binary.a, lanes);
  if (!a.has_value()) return std::nullopt;
  if (binary.op == BinaryOp::kAdd) {
    const std::optional<LaneOffsets> b = LaneOffsetsOf(binary.b, lanes);
    if (!b.has_value()) return std::nullopt;
    if (b->base) a->base = a->base ? a->base + b->base : b->base;
    for (size_t i = 0; i < lanes; ++i) a->offsets[i] += b->offsets[i];
    return a;
  }
  const std::optional<int64_t> b = ConstantOfLanes(binary.b);
  if (!b.has_value()) return std::nullopt;
  switch (binary.op) {
    case BinaryOp::kSub:
      for (int64_t& offset : a->offsets) offset -= *b;
      return a;
    case BinaryOp::kMul:
      if (a->base) a->base = a->base * IntConst(*b, a->base.type());
      for (int64_t& offset : a->offsets) offset *= *b;
      return a;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      if (a->base || *b <= 0) return std::nullopt;
      for (int64_t& offset : a->offsets) {
        const int64_t quotient = FloorDivide(offset, *b);
        offset = binary.op == BinaryOp::kFloorDiv ? quotient : offset - quotient * *b;
      }
      return a;
    default: return std::nullopt;
  }
}

std::optional<LaneOffsets> LaneOffsetsOf(const Expr& index, size_t lanes) {
  LaneOffsets found{Expr(), std::vector<int64_t>(lanes, 0)};
  const auto start_at = [&](const Expr& scalar) {
    if (const std::optional<int64_t> value = ConstantValue(scalar)) {
      for (int64_t& offset : found.offsets) offset += *value;
    } else {
      found.base = scalar;
    }
  };
  if (const Broadcast* broadcast = index.As<Broadcast>()) {
    start_at(broadcast->value);
    return found;
  }
  if (const Ramp* ramp = index.As<Ramp>()) {
    const std::optional<int64_t> stride = ConstantValue(ramp->stride);
    if (!stride.has_value()) return std::nullopt;
    for (size_t i = 0; i < lanes; ++i) found.offsets[i] = *stride * static_cast<int64_t>(i);
    start_at(ramp->base);
    return found;
  }
  const Binary* binary = index.As<Binary>();
  return binary != nullptr ? OffsetsOfBinary(*binary, lanes) : std::nullopt;
}

}  // namespace

// A load whose lanes fall near each other: at `offsets` from a place of the buffer that `base` says.
struct Emitter::NearLanes {
  const Load& load;
  DType type;
  llvm::Value* mask;  // absent: all lanes
  LaneOffsets lanes;
  const BufferMemory& memory;
};

Emitter::Address Emitter::PlaceOf(const NearLanes& near, int64_t offset) {
  const Expr constant = IntConst(offset, near.load.indices[0].type().element());
  return AddressOf(near.load.buffer, near.lanes.base ? near.lanes.base + constant : constant);
}

// The elements from the offset on, as many as there are lanes; those alone that lanes read, where there is a mask.
llvm::Value* Emitter::VectorAt(const NearLanes& near, int64_t offset) {
  const int64_t width = near.type.lanes;
  const Address at = PlaceOf(near, offset);
  llvm::Type* vector = MemoryTypeOf(near.type);
  if (near.mask == nullptr) {
    llvm::LoadInst* value = b_.CreateAlignedLoad(vector, at.pointer, llvm::Align(at.align));
    Annotate(value, near.memory);
    return value;
  }
  llvm::SmallVector<int> lane_of(static_cast<size_t>(width), static_cast<int>(width));  // no lane: 0 of the second
  for (int lane = 0; lane < width; ++lane) {
    const int64_t element = near.lanes.offsets[static_cast<size_t>(lane)] - offset;
    if (element >= 0 && element < width) lane_of[static_cast<size_t>(element)] = lane;
  }
  llvm::Value* wanted = b_.CreateShuffleVector(near.mask, llvm::Constant::getNullValue(near.mask->getType()), lane_of);
  llvm::CallInst* value =
      b_.CreateMaskedLoad(vector, at.pointer, llvm::Align(at.align), wanted, llvm::Constant::getNullValue(vector));
  Annotate(value, near.memory);
  return value;
}

// Each element is loaded by itself, and every lane chooses its own.
llvm::Value* Emitter::ChooseAmong(const NearLanes& near, const std::set<int64_t>& elements) {
  llvm::Value* value = nullptr;
  for (const int64_t element : elements) {
    const Address at = PlaceOf(near, element);
    llvm::LoadInst* loaded = b_.CreateAlignedLoad(MemoryTypeOf(near.type.element()), at.pointer, llvm::Align(at.align));
    Annotate(loaded, near.memory);
    llvm::Value* everywhere = Splat(loaded, near.type.lanes);
    llvm::SmallVector<llvm::Constant*> here;
    for (const int64_t offset : near.lanes.offsets) here.push_back(b_.getInt1(offset == element));
    value = value == nullptr ? everywhere : b_.CreateSelect(llvm::ConstantVector::get(here), everywhere, value);
  }
  return value;
}

// No byte is read that is not inside the buffer, of two kinds of ranges:
//   blocks      [W * b, W * (b + 1)) of a buffer of a multiple of W elements, where the index is a multiple of W but
//               for its constants, so that the lanes tell which blocks they fall into: one for every tap of a window
//               and every channel of a group, which the optimiser then loads once
//   from ends   [first, first + W) and [last - W + 1, last + 1), which touch or overlap; under a mask the elements of
//               lanes that it lets through alone
// Lanes of few different elements are chosen among these, each loaded by itself.
llvm::Value* Emitter::EmitLoadOfNearLanes(const Load& load, DType type, llvm::Value* mask) {
  const Expr& index = load.indices[0];
  const int64_t width = type.lanes;
  if (width < 4 || (width & (width - 1)) != 0) return nullptr;
  const std::optional<LaneOffsets> lanes = LaneOffsetsOf(index, static_cast<size_t>(width));
  if (!lanes.has_value()) return nullptr;
  const NearLanes near{load, type, mask, *lanes, frame_.buffers.at(load.buffer)};
  const std::set<int64_t> elements(lanes->offsets.begin(), lanes->offsets.end());
  const auto [least, most] = std::minmax_element(lanes->offsets.begin(), lanes->offsets.end());
  const int64_t first = *least, last = *most;

  if (mask == nullptr && std::ssize(elements) <= kBetterChosen) return ChooseAmong(near, elements);

  const Sum sum = lanes->base ? SumOf(lanes->base) : Sum();
  bool in_blocks = load.buffer.NumElements().value_or(1) % width == 0;
  for (const Term& term : sum.terms) in_blocks = in_blocks && term.coefficient % width == 0;
  const int64_t first_block = FloorDivide(sum.constant + first, width) * width - sum.constant;
  const int64_t last_block = FloorDivide(sum.constant + last, width) * width - sum.constant;

  llvm::Value* low = nullptr;
  llvm::Value* high = nullptr;
  int64_t low_start = first, high_start = last - width + 1;
  // Under a mask a block that no lane reads may lie outside: of two, nobody knows which.
  if (in_blocks && last_block - first_block <= (mask == nullptr ? width : 0)) {
    low_start = first_block;
    high_start = last_block;
    if (mask != nullptr) {
      llvm::Value* any = b_.CreateOrReduce(mask);
      llvm::Value* pointer = b_.CreateSelect(any, PlaceOf(near, first_block).pointer, near.memory.pointer);
      llvm::LoadInst* value =
          b_.CreateAlignedLoad(MemoryTypeOf(type), pointer, llvm::Align(static_cast<uint64_t>(type.element().bytes())));
      Annotate(value, near.memory);
      low = value;
    } else {
      low = VectorAt(near, low_start);
    }
  } else if (last - first + 1 >= width && last - first + 1 <= 2 * width) {
    if (mask != nullptr && std::ssize(elements) < width) return nullptr;  // two lanes would let one element through
    low = VectorAt(near, low_start);
  } else {
    return mask == nullptr && std::ssize(elements) <= kMostChosen ? ChooseAmong(near, elements) : nullptr;
  }
  if (high_start != low_start) high = VectorAt(near, high_start);
  llvm::SmallVector<int> from;
  for (const int64_t offset : lanes->offsets) {
    const bool in_low = high == nullptr || offset < low_start + width;
    from.push_back(static_cast<int>(in_low ? offset - low_start : offset - high_start + width));
  }
  llvm::Value* value = high == nullptr ? b_.CreateShuffleVector(low, from) : b_.CreateShuffleVector(low, high, from);
  return mask == nullptr ? value : b_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()));
}

}  // namespace hone
