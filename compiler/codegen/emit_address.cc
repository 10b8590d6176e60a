// Addresses: pointer + (terms of outer loops) + ... + (terms of the innermost loop) + constant, each sum a pointer of
// its own. What a loop decides is computed at the head of its body, once; loops take pointers along; rows of an
// unrolled tile share everything but the constant, which goes into the instruction. So there is little left for LLVM to
// find equal, to move out of loops or to reduce (machine.cc), which took most of its time.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "compiler/codegen/emitter.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// Pointers that go along with one loop at most: they take half of x86's registers.
constexpr size_t kMostAlong = 8;

// The first place in the expression where the term is mentioned. Terms of one region stand in that order: the order of
// a sum is that in which variables were made, which differs between schedules of one program.
int FirstMention(const Expr& of, const Expr& in) {
  int place = 0;
  bool found = false;
  ForEachExpr(in, [&](const Expr& e) {
    found = found || CompareExprs(e, of) == 0;
    place += found ? 0 : 1;
    return !found;
  });
  return place;
}

}  // namespace

// Where a chain of sums has come to.
struct Emitter::Place {
  llvm::Value* pointer = nullptr;
  int region = 0;
  bool at_head = true;  // of the region; otherwise later in it
};

void Emitter::BeginCode() {
  CodeRegion& function = frame_.regions.emplace_back();
  function.block = b_.GetInsertBlock();
  if (!function.block->empty()) function.head = &function.block->back();
  for (const auto& [var, value] : frame_.vars) function.here.insert(value);
}

llvm::Value* Emitter::AtHead(int region, llvm::function_ref<llvm::Value*()> emit) {
  CodeRegion& at = frame_.regions[static_cast<size_t>(region)];
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(at.block, at.head != nullptr ? std::next(at.head->getIterator()) : at.block->getFirstInsertionPt());
  const auto end = b_.GetInsertPoint();
  const bool first = end == at.block->begin();
  llvm::Instruction* const before = first ? nullptr : &*std::prev(end);
  llvm::Value* value = emit();
  llvm::Instruction* const last = end == at.block->begin() ? nullptr : &*std::prev(end);
  if (last != before) at.head = last;
  if (!llvm::isa<llvm::Constant>(value) && RegionOf(value) < 0) at.here.insert(value);
  return value;
}

int Emitter::RegionOf(llvm::Value* value) const {
  if (llvm::isa<llvm::Constant>(value)) return 0;
  for (int i = static_cast<int>(frame_.regions.size()) - 1; i >= 0; --i) {
    if (frame_.regions[static_cast<size_t>(i)].here.contains(value)) return i;
  }
  return -1;
}

int Emitter::RegionOf(const Expr& e) const {
  if (!IsIndexArithmetic(e)) return -1;
  int region = 0;
  ForEachExpr(e, [&](const Expr& part) {
    if (region < 0) return false;
    if (const VarRef* ref = part.As<VarRef>()) {
      const auto found = frame_.vars.find(ref->var);
      const int of = found == frame_.vars.end() ? -1 : RegionOf(found->second);
      region = of < 0 ? -1 : std::max(region, of);
    }
    // Nothing is divided by 0 where nobody asked.
    const Binary* binary = part.As<Binary>();
    if (binary != nullptr && IsDivision(binary->op) && ConstantValue(binary->b).value_or(0) <= 0) region = -1;
    return region >= 0;
  });
  return region;
}

llvm::Value* Emitter::EmitEarly(const Expr& e, int region) {
  if (region < 0 || e.As<VarRef>() != nullptr || ConstantValue(e).has_value()) return EmitWide(e);
  auto& values = frame_.regions[static_cast<size_t>(region)].values;
  const auto found = values.find(e);
  if (found != values.end()) return found->second;
  llvm::Value* value = AtHead(region, [&] { return EmitWide(e); });
  frame_.regions[static_cast<size_t>(region)].values.emplace(e, value);
  return value;
}

// The place of the loop's first value, in front of the loop, then on by the coefficient each time around. nullptr: the
// loop takes enough pointers along, or this one follows from more than its variable.
llvm::Value* Emitter::PointerAlong(const PlaceKey& by, int region) {
  CodeRegion& loop = frame_.regions[static_cast<size_t>(region)];
  if (by.terms.size() != 1 || by.terms[0].first != loop.variable) return nullptr;
  if (loop.along.size() >= kMostAlong) return nullptr;
  const int64_t coefficient = by.terms[0].second;
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::BasicBlock* before = loop.variable->getIncomingBlock(0);
  b_.SetInsertPoint(before->getTerminator());
  llvm::Value* begin = loop.variable->getIncomingValue(0);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(begin);
  llvm::Value* first = by.pointer;
  if (known == nullptr || !known->isZero()) {
    llvm::Value* offset = coefficient == 1 ? begin : b_.CreateNSWMul(begin, Int64(coefficient));
    first = b_.CreateGEP(by.element, by.pointer, offset);
  }
  b_.SetInsertPoint(loop.block, loop.block->getFirstNonPHIIt());
  llvm::PHINode* pointer = b_.CreatePHI(b_.getPtrTy(), 2);
  pointer->addIncoming(first, before);
  loop.here.insert(pointer);
  loop.along.emplace_back(pointer, by);
  return pointer;
}

// At the end of the body of the loop whose region is the innermost.
void Emitter::AdvancePointers(int64_t step) {
  for (const auto& [pointer, by] : frame_.regions.back().along) {
    llvm::Value* next = b_.CreateGEP(by.element, pointer, Int64(by.terms[0].second * step));
    pointer->addIncoming(next, b_.GetInsertBlock());
  }
}

Emitter::Place Emitter::Moved(const Place& from, PlaceKey by, int region) {
  by.pointer = from.pointer;
  const int innermost = static_cast<int>(frame_.regions.size()) - 1;
  for (int i = innermost; i >= 0; --i) {
    const CodeRegion& open = frame_.regions[static_cast<size_t>(i)];
    const auto found = open.places.find(by);
    if (found != open.places.end()) return {found->second, i, open.here.contains(found->second)};
  }
  const auto emit = [&] {
    llvm::Value* offset = by.constant != 0 ? Int64(by.constant) : nullptr;
    for (const auto& [value, coefficient] : by.terms) {
      llvm::Value* product = coefficient == 1 ? value : b_.CreateNSWMul(value, Int64(coefficient));
      offset = offset == nullptr ? product : b_.CreateNSWAdd(offset, product);
    }
    return b_.CreateGEP(by.element, by.pointer, offset);
  };
  Place to;
  const int deepest = std::max(region, from.region);
  to.at_head = region >= 0 && (from.at_head || region > from.region);
  to.region = to.at_head ? deepest : innermost;
  if (to.at_head && region > from.region) to.pointer = PointerAlong(by, region);
  if (to.pointer == nullptr) to.pointer = to.at_head ? AtHead(to.region, emit) : emit();
  frame_.regions[static_cast<size_t>(to.region)].places.emplace(std::move(by), to.pointer);
  return to;
}

Emitter::Address Emitter::AddressOf(const Buffer& buffer, const Expr& index) {
  const auto found = frame_.buffers.find(buffer);
  HONE_CHECK(found != frame_.buffers.end()) << buffer.name() << " is not in scope";
  const BufferMemory& memory = found->second;
  const Sum sum = SumOf(index);
  struct Part {
    int region;  // the greatest number: none
    int mention;
    const Term* term;
  };
  constexpr int kHere = std::numeric_limits<int>::max();
  absl::InlinedVector<Part, 8> parts;
  for (const Term& term : sum.terms) {
    const int region = RegionOf(term.atom);
    parts.push_back({region < 0 ? kHere : region, sum.terms.size() == 1 ? 0 : FirstMention(term.atom, index), &term});
  }
  std::ranges::sort(parts, {}, [](const Part& part) { return std::pair(part.region, part.mention); });

  const int64_t bytes = buffer.type().bytes();
  uint64_t align = std::gcd(memory.align, static_cast<uint64_t>(std::abs(sum.constant * bytes)));
  llvm::Type* element = MemoryTypeOf(buffer.type());
  Place place{.pointer = memory.pointer};
  for (size_t i = 0; i < parts.size();) {
    const int region = parts[i].region == kHere ? -1 : parts[i].region;
    PlaceKey by{.element = element};
    for (; i < parts.size() && (region < 0 ? parts[i].region == kHere : parts[i].region == region); ++i) {
      const int64_t coefficient = parts[i].term->coefficient;
      align = std::gcd(align, static_cast<uint64_t>(std::abs(coefficient * bytes)));
      by.terms.emplace_back(EmitEarly(parts[i].term->atom, region), coefficient);
    }
    place = Moved(place, std::move(by), region);
  }
  if (sum.constant != 0) place = Moved(place, {.element = element, .constant = sum.constant}, -1);
  return {place.pointer, align};
}

}  // namespace hone
