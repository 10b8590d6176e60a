// Operations that the threads of a warp do together, on registers of each of them, mma.sync, and from rows of shared
// memory that they name to registers, ldmatrix.
//
// The operation of a warp (ir/thread_axes.h) runs when all its threads have come to it, in one iteration of the loops
// around; what it computes is the intrinsic's meaning, run on the registers of all lanes as one tensor.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/thread.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::interp {

absl::StatusOr<bool> Machine::RunCollectives(const std::vector<std::unique_ptr<Thread>>& threads) {
  Thread* first = nullptr;
  int64_t size_x = 1, size_y = 1;
  for (const auto& thread : threads) {
    if (thread->state == Thread::State::kAtCollective && first == nullptr) first = thread.get();
    size_x = std::max(size_x, thread->coordinates.At(0) + 1);
    size_y = std::max(size_y, thread->coordinates.At(1) + 1);
  }
  if (first == nullptr) return false;
  std::map<int64_t, Thread*> by_number;
  for (const auto& thread : threads) {
    if (thread->parted) continue;
    const Coordinates& at = thread->coordinates;
    by_number[at.At(0) + size_x * (at.At(1) + size_y * at.At(2))] = thread.get();
  }
  for (const auto& [number, thread] : by_number) {
    if (thread->state != Thread::State::kAtCollective) continue;
    const CollectiveCode& collective = code_.collectives[thread->at->aux];
    const int lanes = collective.intrinsic->threads;
    Warp warp;
    for (int64_t lane = number / lanes * lanes; lane < (number / lanes + 1) * lanes; ++lane) {
      const auto found = by_number.find(lane);
      warp.push_back(found == by_number.end() ? nullptr : found->second);
    }
    HONE_RETURN_IF_ERROR(CheckAllThere(collective, warp, *thread));
    HONE_RETURN_IF_ERROR(RunCollective(collective, warp));
    for (Thread* lane : warp) {
      ++lane->at;
      lane->state = Thread::State::kReady;
    }
  }
  return true;
}

absl::Status Machine::CheckAllThere(const CollectiveCode& collective, const Warp& warp, const Thread& first) const {
  for (size_t lane = 0; lane < warp.size(); ++lane) {
    std::string elsewhere;
    if (warp[lane] == nullptr) {
      elsewhere = "is none of the block's threads";
    } else if (warp[lane]->state == Thread::State::kEnded) {
      elsewhere = "has ended";
    } else if (warp[lane]->state == Thread::State::kAtBarrier) {
      elsewhere = "waits at a barrier";
    } else if (warp[lane]->at != first.at) {
      elsewhere = "is at another operation";
    } else {
      elsewhere = OtherIteration(collective.meeting, *warp[lane], first);
    }
    if (elsewhere.empty()) continue;
    return At(collective.meeting.place,
              absl::FailedPreconditionError(absl::StrCat("incomplete warp: thread ", first.Name(), " is at ",
                                                         collective.intrinsic->name, ", which takes all ", warp.size(),
                                                         " lanes of its warp, and lane ", lane, " ", elsewhere)));
  }
  return absl::OkStatus();
}

absl::Status Machine::RunCollective(const CollectiveCode& collective, const Warp& warp) {
  const PrimFunc& meaning = collective.intrinsic->meaning;
  std::unique_ptr<Code>& code = meanings_[collective.intrinsic];
  if (code == nullptr) {
    HONE_ASSIGN_OR_RETURN(Code compiled, Compile(meaning, options_));
    code = std::make_unique<Code>(std::move(compiled));
  }
  InterpretOptions options = options_;
  options.check_uninitialised = false;  // of lanes' registers that is asked below
  Machine machine(meaning, *code, options);
  std::vector<NdArray> whole;
  for (const Buffer& param : meaning.params)
    whole.emplace_back(param.type(),
                       std::vector<int64_t>{*ConstantValue(param.shape()[0]), *ConstantValue(param.shape()[1])});
  HONE_RETURN_IF_ERROR(machine.Bind(whole));
  const size_t outputs = static_cast<size_t>(meaning.num_outputs()), inputs = meaning.params.size() - outputs;
  const auto memory_of = [&](size_t operand) -> Memory& {
    const int param = static_cast<int>(operand < outputs ? inputs + operand : operand - outputs);
    size_t b = 0;
    while (code->buffers[b].param != param) ++b;
    return machine.memory_[b];
  };
  const auto move = [&](size_t first, size_t end, Direction direction) -> absl::Status {
    for (size_t lane = 0; lane < warp.size(); ++lane) {
      SwapBuffers(*warp[lane]);
      frame_ = warp[lane]->slots.data();
      place_.thread = warp[lane]->coordinates;
      const Coordinates other = warp[(lane + 1) % warp.size()]->coordinates;
      absl::Status status;
      for (size_t i = first; i < end && status.ok(); ++i)
        status = MoveElements(collective.operands[i], lane, other, direction, memory_of(i));
      place_.thread = Coordinates();
      SwapBuffers(*warp[lane]);
      HONE_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  };
  const size_t first_read = collective.intrinsic->accumulates ? 0 : outputs;
  HONE_RETURN_IF_ERROR(move(first_read, collective.operands.size(), Direction::kToMeaning));
  HONE_RETURN_IF_ERROR(machine.Run(code->entry));
  return move(0, outputs, Direction::kFromMeaning);
}

absl::Status Machine::CheckRow(const Access& access, const Memory& memory, int64_t offset) const {
  const Buffer& buffer = code_.buffers[static_cast<size_t>(access.buffer)].buffer;
  const int64_t elements = kMatrixRowBytes / buffer.type().bytes();
  if (offset % elements == 0) return absl::OkStatus();
  return At(access.place, absl::InvalidArgumentError(absl::StrCat(
                              "misaligned row: ", place_.thread.Name("threadIdx"), " names ", buffer.name(),
                              IndexText(memory, offset), " in ", StatementText(access), ", and rows begin at multiples",
                              " of ", elements, " elements of a buffer")));
}

absl::Status Machine::NoteRow(const Access& access, const Memory& memory, int64_t offset, const Coordinates& other) {
  HONE_RETURN_IF_ERROR(NoteTouch(access, memory, offset, false));
  const Coordinates named = std::exchange(place_.thread, other);
  const absl::Status status = NoteTouch(access, memory, offset, false);
  place_.thread = named;
  return status;
}

absl::Status Machine::MoveElements(const CollectiveCode::Operand& operand, size_t lane, const Coordinates& other,
                                   Direction direction, Memory& whole) {
  if (static_cast<int64_t>(lane) >= whole.dims[0]) return absl::OkStatus();  // what it names does not count
  const Access& access = code_.accesses[static_cast<size_t>(operand.access)];
  Memory& own = memory_[static_cast<size_t>(access.buffer)];
  HONE_CHECK(own.storage == whole.storage);
  const bool is_row = code_.buffers[static_cast<size_t>(access.buffer)].buffer.scope() == Scope::kShared;
  const size_t rank = operand.extents.size();
  std::vector<int64_t> at(rank, 0);
  for (int64_t n = 0; n < whole.dims[1]; ++n) {  // the elements of the operand, in row-major order
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t index = frame_[static_cast<size_t>(access.indices[d])].i + at[d];
      if (index < 0 || index >= own.dims[d]) {
        return At(access.place,
                  absl::OutOfRangeError(
                      absl::StrCat("index ", d, " of ", code_.buffers[static_cast<size_t>(access.buffer)].buffer.name(),
                                   " is ", index, ", outside of [0, ", own.dims[d], "), in ", StatementText(access))));
      }
      offset = offset * own.dims[d] + index;
    }
    if (is_row && n == 0) HONE_RETURN_IF_ERROR(CheckRow(access, own, offset));
    if (is_row && own.touches != nullptr) HONE_RETURN_IF_ERROR(NoteRow(access, own, offset, other));
    char* const in_whole = whole.data + (static_cast<int64_t>(lane) * whole.dims[1] + n) * whole.bytes;
    char* const in_own = own.data + offset * own.bytes;
    if (direction == Direction::kToMeaning) {
      if (own.written != nullptr && own.written[offset] == 0) HONE_RETURN_IF_ERROR(Unwritten(access, 0, offset));
      std::memcpy(in_whole, in_own, static_cast<size_t>(own.bytes));
    } else {
      if (own.written != nullptr) own.written[offset] = 1;
      std::memcpy(in_own, in_whole, static_cast<size_t>(own.bytes));
    }
    for (size_t d = rank; d-- > 0 && ++at[d] == operand.extents[d];) at[d] = 0;
  }
  return absl::OkStatus();
}

}  // namespace hone::interp
