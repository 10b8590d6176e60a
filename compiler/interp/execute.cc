// The loop that runs the code, and what single instructions do.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/machine.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {
namespace {

double RoundFast(double value, DType type) {
  return type.bits == 32 ? static_cast<double>(static_cast<float>(value)) : RoundToType(value, type);
}

int64_t SaturatingToInt(double value, DType type) {
  if (std::isnan(value)) return 0;
  const bool is_unsigned = type.code == TypeCode::kUInt;
  const double whole = std::trunc(value);
  const double limit = std::ldexp(1.0, is_unsigned ? type.bits : type.bits - 1);
  const double low = is_unsigned ? 0 : -limit;
  if (whole < low) return is_unsigned ? 0 : WrapToType(static_cast<int64_t>(uint64_t{1} << (type.bits - 1)), type);
  if (whole >= limit)
    return WrapToType(is_unsigned ? -1 : static_cast<int64_t>((uint64_t{1} << (type.bits - 1)) - 1), type);
  return is_unsigned ? WrapToType(static_cast<int64_t>(static_cast<uint64_t>(whole)), type)
                     : static_cast<int64_t>(whole);
}

int64_t Wrap32(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(v))); }

// ---- Instructions that are rare, or long; those that can fail say whether they did not.

void Ramp(int lanes, DType type, Slot* d, Slot first, Slot stride) {
  for (int l = 0; l < lanes; ++l) {
    d[l].i = WrapToType(static_cast<int64_t>(static_cast<uint64_t>(first.i) +
                                             static_cast<uint64_t>(stride.i) * static_cast<uint64_t>(l)),
                        type);
  }
}

bool DivideFloor(const Instr& in, DType type, Slot* d, const Slot* a, const Slot* b) {
  for (int l = 0; l < in.lanes; ++l) {
    if (b[l].i == 0) return false;
    d[l].i = in.op == Op::kFloorDivI ? WrapToType(FloorDivide(a[l].i, b[l].i), type) : FloorModulo(a[l].i, b[l].i);
  }
  return true;
}

bool AnyInt(const Instr& in, DType type, Slot* d, const Slot* a, const Slot* b) {
  for (int l = 0; l < in.lanes; ++l) {
    const std::optional<int64_t> value = EvalInt(static_cast<BinaryOp>(in.aux), a[l].i, b[l].i, type);
    if (!value.has_value()) return false;
    d[l].i = *value;
  }
  return true;
}

bool AnyFloat(const Instr& in, DType type, Slot* d, const Slot* a, const Slot* b) {
  for (int l = 0; l < in.lanes; ++l) {
    const std::optional<double> value = EvalFloat(static_cast<BinaryOp>(in.aux), a[l].f, b[l].f, type);
    if (!value.has_value()) return false;
    d[l].f = *value;
  }
  return true;
}

void Popcount(int lanes, DType type, Slot* d, const Slot* a) {
  const uint64_t mask = type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1;
  for (int l = 0; l < lanes; ++l) d[l].i = std::popcount(static_cast<uint64_t>(a[l].i) & mask);
}

void Absolute(int lanes, DType type, Slot* d, const Slot* a) {
  const bool is_unsigned = type.code == TypeCode::kUInt;
  for (int l = 0; l < lanes; ++l) {
    d[l].i =
        is_unsigned || a[l].i >= 0 ? a[l].i : WrapToType(static_cast<int64_t>(0 - static_cast<uint64_t>(a[l].i)), type);
  }
}

void IntToFloat(int lanes, DType from, DType to, Slot* d, const Slot* a) {
  const bool big = from == DType::UInt(64);
  for (int l = 0; l < lanes; ++l) {
    const int64_t v = a[l].i;
    // Straight to float32: by way of a double it would be rounded twice.
    if (to.bits == 32) {
      d[l].f = big ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
    } else {
      d[l].f = RoundToType(big ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v), to);
    }
  }
}

void Choose(const Instr& in, Slot* d, const Slot* a, const Slot* yes, const Slot* no) {
  for (int l = 0; l < in.lanes; ++l) d[l] = a[in.aux2 == 0 ? 0 : l].i != 0 ? yes[l] : no[l];
}

bool Within(int64_t value, int64_t min, int64_t extent) {
  return value >= min && extent > 0 &&
         static_cast<uint64_t>(value) - static_cast<uint64_t>(min) < static_cast<uint64_t>(extent);
}

}  // namespace

absl::Status Machine::OutOfSteps() const {
  return absl::DeadlineExceededError(
      absl::StrCat("interpreting ", f_.name, ": gave up after ", steps_, " loop iterations"));
}

absl::Status Machine::NoResult(const Instr& in) const {
  if (in.op == Op::kAnyFloat) return absl::InvalidArgumentError("a bit operation on floats");
  return At(code_.places[in.aux2],
            absl::InvalidArgumentError(in.op == Op::kAnyInt ? "a division by zero, or a shift by more than the width"
                                                            : "a division by zero"));
}

absl::Status Machine::EndlessWhile(const Instr& in) const {
  return At(code_.places[in.aux],
            absl::DeadlineExceededError(absl::StrCat("a while was left by nothing in ", options_.max_rounds,
                                                     " rounds; see that its body changes what its condition reads")));
}

absl::Status Machine::OutsideOfDomain(const Instr& in, int64_t value, int64_t min, int64_t extent) const {
  const uint64_t end = static_cast<uint64_t>(min) + static_cast<uint64_t>(extent);
  return absl::OutOfRangeError(absl::StrCat("interpreting ", f_.name, ", block ", code_.places[in.aux], " is ", value,
                                            ", outside of its domain [", min, ", ", static_cast<int64_t>(end), ")"));
}

inline float* Machine::PlainElement(const Access& access, bool store) const {
  const Memory& memory = memory_[static_cast<size_t>(access.buffer)];
  if (access.lanes != 1 || access.mask >= 0 || memory.storage != Storage::kF32 || memory.data == nullptr ||
      memory.touches != nullptr || undefined_ != 0) {
    return nullptr;
  }
  int64_t offset = 0;
  const size_t rank = access.indices.size();
  const int* const indices = access.indices.data();
  const int64_t* const dims = memory.dims.data();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t index = frame_[indices[d]].i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(dims[d])) return nullptr;
    offset = offset * dims[d] + index;
  }
  if (memory.written != nullptr) {
    if (store) {
      memory.written[offset] = 1;
    } else if (memory.written[offset] == 0) {
      return nullptr;
    }
  }
  return reinterpret_cast<float*>(memory.data) + offset;
}

inline bool Machine::LoadPlain(const Access& access, Slot* dst) const {
  const float* element = PlainElement(access, false);
  if (element != nullptr) dst->f = static_cast<double>(*element);
  return element != nullptr;
}

inline bool Machine::StorePlain(const Access& access, Slot value) const {
  float* element = PlainElement(access, true);
  if (element != nullptr) *element = static_cast<float>(value.f);
  return element != nullptr;
}

absl::Status Machine::Run(int entry) { return Execute(code_.instrs.data() + entry, slots_.data(), nullptr); }

// One switch over all that is frequent: telling the kinds of instructions apart first would cost every one of them a
// branch more.
absl::Status Machine::Execute(const Instr* at, Slot* const s, Stop* stop) {
  frame_ = s;
  const Instr* const base = code_.instrs.data();
  const DType* const types = code_.types.data();
  while (true) {
    const Instr& in = *at++;
    if (undefined_ != 0) HONE_RETURN_IF_ERROR(FollowUndefined(in, s));
    const int lanes = in.lanes;
    Slot* const d = s + in.dst;
    Slot* const a = s + in.a;
    const Slot* const b = s + in.b;
#define HONE_LANES(statement)                \
  for (int l = 0; l < lanes; ++l) statement; \
  break
    switch (in.op) {
      case Op::kMove: HONE_LANES(d[l] = a[l]);
      case Op::kSplat: HONE_LANES(d[l] = *a);
      case Op::kRamp: Ramp(lanes, types[in.c], d, *a, *b); break;
      case Op::kAddI64:
        HONE_LANES(d[l].i = static_cast<int64_t>(static_cast<uint64_t>(a[l].i) + static_cast<uint64_t>(b[l].i)));
      case Op::kSubI64:
        HONE_LANES(d[l].i = static_cast<int64_t>(static_cast<uint64_t>(a[l].i) - static_cast<uint64_t>(b[l].i)));
      case Op::kMulI64:
        HONE_LANES(d[l].i = static_cast<int64_t>(static_cast<uint64_t>(a[l].i) * static_cast<uint64_t>(b[l].i)));
      case Op::kAddI32: HONE_LANES(d[l].i = Wrap32(a[l].i + b[l].i));
      case Op::kSubI32: HONE_LANES(d[l].i = Wrap32(a[l].i - b[l].i));
      case Op::kMulI32: HONE_LANES(d[l].i = Wrap32(a[l].i * b[l].i));
      case Op::kFloorDivI:
      case Op::kFloorModI:
        if (!DivideFloor(in, types[in.c], d, a, b)) return NoResult(in);
        break;
      case Op::kMinI: HONE_LANES(d[l].i = std::min(a[l].i, b[l].i));
      case Op::kMaxI: HONE_LANES(d[l].i = std::max(a[l].i, b[l].i));
      case Op::kEqI: HONE_LANES(d[l].i = a[l].i == b[l].i);
      case Op::kNeI: HONE_LANES(d[l].i = a[l].i != b[l].i);
      case Op::kLtI: HONE_LANES(d[l].i = a[l].i < b[l].i);
      case Op::kLeI: HONE_LANES(d[l].i = a[l].i <= b[l].i);
      case Op::kGtI: HONE_LANES(d[l].i = a[l].i > b[l].i);
      case Op::kGeI: HONE_LANES(d[l].i = a[l].i >= b[l].i);
      case Op::kAnd: HONE_LANES(d[l].i = a[l].i & b[l].i);
      case Op::kOr: HONE_LANES(d[l].i = a[l].i | b[l].i);
      case Op::kNot: HONE_LANES(d[l].i = a[l].i == 0);
      case Op::kAnyInt:
        if (!AnyInt(in, types[in.c], d, a, b)) return NoResult(in);
        break;
      case Op::kAddF64: HONE_LANES(d[l].f = a[l].f + b[l].f);
      case Op::kSubF64: HONE_LANES(d[l].f = a[l].f - b[l].f);
      case Op::kMulF64: HONE_LANES(d[l].f = a[l].f * b[l].f);
      case Op::kDivF64: HONE_LANES(d[l].f = a[l].f / b[l].f);
      // A double holds enough digits for one rounding to float32 to be the right one (Figueroa 1995).
      case Op::kAddF32: HONE_LANES(d[l].f = static_cast<float>(a[l].f + b[l].f));
      case Op::kSubF32: HONE_LANES(d[l].f = static_cast<float>(a[l].f - b[l].f));
      case Op::kMulF32: HONE_LANES(d[l].f = static_cast<float>(a[l].f * b[l].f));
      case Op::kDivF32: HONE_LANES(d[l].f = static_cast<float>(a[l].f / b[l].f));
      case Op::kMinF: HONE_LANES(d[l].f = *EvalFloat(BinaryOp::kMin, a[l].f, b[l].f, DType::Float(64)));
      case Op::kMaxF: HONE_LANES(d[l].f = *EvalFloat(BinaryOp::kMax, a[l].f, b[l].f, DType::Float(64)));
      case Op::kEqF: HONE_LANES(d[l].i = a[l].f == b[l].f);
      case Op::kNeF: HONE_LANES(d[l].i = a[l].f != b[l].f);
      case Op::kLtF: HONE_LANES(d[l].i = a[l].f < b[l].f);
      case Op::kLeF: HONE_LANES(d[l].i = a[l].f <= b[l].f);
      case Op::kGtF: HONE_LANES(d[l].i = a[l].f > b[l].f);
      case Op::kGeF: HONE_LANES(d[l].i = a[l].f >= b[l].f);
      case Op::kAnyFloat:
        if (!AnyFloat(in, types[in.c], d, a, b)) return NoResult(in);
        break;
      case Op::kRound: HONE_LANES(d[l].f = RoundFast(a[l].f, types[in.c]));
      case Op::kCall1: {
        double (*const function)(double) = code_.calls1[static_cast<size_t>(in.c)];
        HONE_LANES(d[l].f = function(a[l].f));
      }
      case Op::kCall2: {
        double (*const function)(double, double) = code_.calls2[static_cast<size_t>(in.c)];
        HONE_LANES(d[l].f = function(a[l].f, b[l].f));
      }
      case Op::kFma: HONE_LANES(d[l].f = std::fma(a[l].f, b[l].f, s[in.c + l].f));
      case Op::kFmaF32:
        HONE_LANES(d[l].f = std::fmaf(static_cast<float>(a[l].f), static_cast<float>(b[l].f),
                                      static_cast<float>(s[in.c + l].f)));
      case Op::kIsNan: HONE_LANES(d[l].i = std::isnan(a[l].f));
      case Op::kIsInf: HONE_LANES(d[l].i = std::isinf(a[l].f));
      case Op::kPopcount: Popcount(lanes, types[in.c], d, a); break;
      case Op::kAbsI: Absolute(lanes, types[in.c], d, a); break;
      case Op::kIntToFloat: IntToFloat(lanes, code_.types[in.aux], types[in.c], d, a); break;
      case Op::kFloatToInt: HONE_LANES(d[l].i = SaturatingToInt(a[l].f, types[in.c]));
      case Op::kFloatToBool: HONE_LANES(d[l].i = a[l].f != 0);
      case Op::kWrap: HONE_LANES(d[l].i = WrapToType(a[l].i, types[in.c]));
      case Op::kSelect: Choose(in, d, a, b, s + in.c); break;
      case Op::kLoad:
        if (const Access& access = code_.accesses[in.a]; !LoadPlain(access, d)) HONE_RETURN_IF_ERROR(Load(access, d));
        break;
      case Op::kStore:
        if (const Access& access = code_.accesses[in.a]; !StorePlain(access, *d))
          HONE_RETURN_IF_ERROR(Store(access, d));
        break;
      case Op::kJump: at = base + in.c; break;
      case Op::kJumpIfZero:
        if (a->i == 0) at = base + in.c;
        break;
      case Op::kJumpIfNotEqual:
        if (a->i != b->i) at = base + in.c;
        break;
      case Op::kLoopTest:
        if (a->i >= b->i) at = base + in.c;
        break;
      case Op::kLoopNext:
        if (++steps_ == options_.max_steps) return OutOfSteps();
        if (a->i < b->i && ++a->i < b->i) at = base + in.c;
        break;
      case Op::kWhileNext:
        if (++steps_ == options_.max_steps) return OutOfSteps();
        if (++a->i == options_.max_rounds) return EndlessWhile(in);
        at = base + in.c;
        break;
      case Op::kCheckDomain:
        if (!Within(a->i, b->i, s[in.c].i)) return OutsideOfDomain(in, a->i, b->i, s[in.c].i);
        break;
      case Op::kAlloc:
        HONE_RETURN_IF_ERROR(Sizes(in.a));
        HONE_RETURN_IF_ERROR(Allocate(in.a, true));
        break;
      case Op::kReturn: return absl::OkStatus();
      default: {
        HONE_ASSIGN_OR_RETURN(at, ExecuteOfThreads(in, s, stop));
        if (at == nullptr) return absl::OkStatus();
        break;
      }
    }
#undef HONE_LANES
  }
}

absl::StatusOr<const Instr*> Machine::ExecuteOfThreads(const Instr& in, Slot* s, Stop* stop) {
  const auto stops = [&](Stop::Why why) -> const Instr* {
    *stop = {why, &in};
    return nullptr;
  };
  switch (in.op) {
    case Op::kLaunch: BeginLaunch(); break;
    case Op::kLaunchEnd: EndLaunch(); break;
    case Op::kBlockIndex: place_.block = place_.block.With(code_.places[in.aux], s[in.a].i); break;
    case Op::kFork:
      if (stop != nullptr) return stops(Stop::Why::kFork);
      HONE_RETURN_IF_ERROR(RunThreads(in, s));
      frame_ = s;
      return code_.instrs.data() + in.c;
    case Op::kThreadEnd: return stops(Stop::Why::kThreadEnd);
    case Op::kBarrier:
      if (stop == nullptr) break;  // a single thread does not wait
      return stops(Stop::Why::kBarrier);
    case Op::kAsyncCopy: HONE_RETURN_IF_ERROR(BeginCopy(in, s)); break;
    case Op::kCommitGroup:
      LandSome();
      if (copies_ != nullptr) copies_->groups.push_back(std::exchange(copies_->open, {}));
      break;
    case Op::kWaitGroup: HONE_RETURN_IF_ERROR(WaitForGroups(in.a)); break;
    case Op::kCollective: return stops(Stop::Why::kCollective);
    default: HONE_CHECK(false) << "instruction " << static_cast<int>(in.op) << " is none of threads";
  }
  return &in + 1;
}

}  // namespace hone::interp
