// Which values are made of unwritten elements: every slot has a flag, undefined_ slots behind it, which
// goes from operands to results, and through buffers as elements that are not written (Seward and Nethercote, "Using
// Valgrind to detect undefined value errors with bit-precision", 2005; here with the precision of a lane).
#include "absl/strings/str_cat.h"
#include "compiler/interp/machine.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {

absl::Status Machine::Undefined(const std::string& place, const std::string& what) const {
  return At(place, absl::FailedPreconditionError(absl::StrCat(what, " is made of an element before it is written")));
}

absl::Status Machine::FollowAccess(const Access& access, const Slot* undefined) const {
  const auto of = [&] { return code_.buffers[static_cast<size_t>(access.buffer)].buffer.name(); };
  for (int lane = 0; lane < access.lanes; ++lane) {
    if (access.mask >= 0) {
      if (undefined[access.mask + lane].i != 0)
        return Undefined(access.place, absl::StrCat("lane ", lane, " of a mask of ", of()));
      if (frame_[access.mask + lane].i == 0) continue;
    }
    for (size_t d = 0; d < access.indices.size(); ++d) {
      if (undefined[access.indices[d] + lane * access.strides[d]].i != 0)
        return Undefined(access.place, absl::StrCat("index ", d, " of ", of()));
    }
  }
  return absl::OkStatus();
}

absl::Status Machine::FollowUndefined(const Instr& in, Slot* s) const {
  Slot* const undefined = s + undefined_;
  Slot* const d = undefined + in.dst;
  const Slot *const a = undefined + in.a, *const b = undefined + in.b;
  const auto access = [this](int number) -> const Access& { return code_.accesses[static_cast<size_t>(number)]; };
  switch (in.op) {
    case Op::kJump:
    case Op::kAlloc:
    case Op::kLaunch:
    case Op::kLaunchEnd:
    case Op::kBlockIndex:
    case Op::kThreadEnd:
    case Op::kBarrier:
    case Op::kCommitGroup:
    case Op::kWaitGroup:
    case Op::kWhileNext:
    case Op::kCollective:  // refuses elements that are not written
    case Op::kReturn: return absl::OkStatus();
    case Op::kJumpIfZero: return a->i == 0 ? absl::OkStatus() : Undefined("", "a condition");
    case Op::kJumpIfNotEqual:
    case Op::kLoopTest:
    case Op::kLoopNext:
    case Op::kCheckDomain:
    case Op::kFork: return (a->i | b->i) == 0 ? absl::OkStatus() : Undefined("", "the bound of a loop");
    case Op::kAsyncCopy:
      HONE_RETURN_IF_ERROR(FollowAccess(access(in.a), undefined));
      if (in.b >= 0) return FollowAccess(access(in.b), undefined);
      return d->i == 0 ? absl::OkStatus() : Undefined(access(in.a).place, "what is copied");
    case Op::kStore: return FollowAccess(access(in.a), undefined);
    case Op::kLoad:
      for (int l = 0; l < in.lanes; ++l) d[l].i = 0;
      return FollowAccess(access(in.a), undefined);
    default: FollowValue(in, s); return absl::OkStatus();
  }
}

void Machine::FollowValue(const Instr& in, Slot* s) const {
  Slot* const undefined = s + undefined_;
  Slot* const d = undefined + in.dst;
  const Slot *const a = undefined + in.a, *const b = undefined + in.b, *const c = undefined + in.c;
#define HONE_LANES(flag)                              \
  for (int l = 0; l < in.lanes; ++l) d[l].i = (flag); \
  break
  switch (in.op) {
    case Op::kSplat: HONE_LANES(a->i);
    case Op::kRamp: HONE_LANES(a->i | b->i);
    case Op::kSelect: {
      const int step = in.aux2 == 0 ? 0 : 1;  // a condition for each lane
      HONE_LANES(a[l * step].i | (s[in.a + l * step].i != 0 ? b[l].i : c[l].i));
    }
    case Op::kFma:
    case Op::kFmaF32: HONE_LANES(a[l].i | b[l].i | c[l].i);
    case Op::kMove:
    case Op::kNot:
    case Op::kRound:
    case Op::kCall1:
    case Op::kIsNan:
    case Op::kIsInf:
    case Op::kPopcount:
    case Op::kAbsI:
    case Op::kIntToFloat:
    case Op::kFloatToInt:
    case Op::kFloatToBool:
    case Op::kWrap: HONE_LANES(a[l].i);
    default: HONE_LANES(a[l].i | b[l].i);
  }
#undef HONE_LANES
}

absl::Status Machine::StoreUndefined(const Access& access, const Memory& memory, int64_t offset) const {
  const BufferInfo& info = code_.buffers[static_cast<size_t>(access.buffer)];
  if (info.param >= 0) return Undefined(access.place, absl::StrCat(info.buffer.name(), IndexText(memory, offset)));
  if (memory.written != nullptr) memory.written[offset] = 0;
  return absl::OkStatus();
}

}  // namespace hone::interp
