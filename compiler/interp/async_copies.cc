#include "compiler/interp/async_copies.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/machine.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone::interp {

void CopiesInFlight::Add(const Element& to, const Element* from, CopyInFlight* copy) {
  to_.emplace(to, copy);
  if (from != nullptr) from_.emplace(*from, copy);
}

void CopiesInFlight::Remove(const Element& to, const Element* from, CopyInFlight* copy) {
  to_.erase(to);
  if (from == nullptr) return;
  auto [first, last] = from_.equal_range(*from);
  while (first != last && first->second != copy) ++first;
  if (first != last) from_.erase(first);
}

const CopyInFlight* CopiesInFlight::To(const Element& element) const {
  const auto found = to_.find(element);
  return found == to_.end() ? nullptr : found->second;
}
const CopyInFlight* CopiesInFlight::From(const Element& element) const {
  const auto found = from_.find(element);
  return found == from_.end() ? nullptr : found->second;
}

namespace {

std::string Who(const Coordinates& block, const Coordinates& thread) {
  return Touch{.block = block, .thread = thread}.Who();
}

}  // namespace

std::string Machine::StatementText(const Access& access) const {
  const std::string text = ToText(access.statement);
  return absl::StrCat("`", text.substr(0, text.find('\n')), "`");
}

absl::Status Machine::CheckLanded(const Access& access, const Memory& memory, int64_t offset, bool writes) const {
  const CopiesInFlight::Element element{access.buffer, offset};
  const CopyInFlight* to = in_flight_.To(element);
  const CopyInFlight* copy = to == nullptr && writes ? in_flight_.From(element) : to;
  if (copy == nullptr) return absl::OkStatus();
  const std::string name =
      absl::StrCat(code_.buffers[static_cast<size_t>(access.buffer)].buffer.name(), IndexText(memory, offset));
  return At(access.place, absl::FailedPreconditionError(absl::StrCat(
                              Who(place_.block, place_.thread), " ", writes ? "writes " : "reads ", name, " in ",
                              StatementText(access), " before the asynchronous copy ", to != nullptr ? "to" : "from",
                              " it in ", StatementText(code_.accesses[static_cast<size_t>(copy->to_access)]), " by ",
                              Who(copy->block, copy->thread), " has landed; that thread has to wait for it first")));
}

absl::Status Machine::BeginCopy(const Instr& instr, const Slot* frame) {
  if (copies_ == nullptr) {
    return At("", absl::FailedPreconditionError(
                      "an asynchronous copy stands outside of the threads of a launch, which are what makes it"));
  }
  auto copy = std::make_unique<CopyInFlight>();
  copy->to_access = instr.a;
  copy->from_access = instr.b;
  copy->block = place_.block;
  copy->thread = place_.thread;
  absl::Status status;
  const auto element = [&](int index, bool writes) -> int64_t {
    const Access& access = code_.accesses[static_cast<size_t>(index)];
    const Memory& memory = memory_[static_cast<size_t>(access.buffer)];
    const int64_t offset = Offset(access, memory, 0, status);
    if (offset >= 0 && memory.touches != nullptr) status = NoteTouch(access, memory, offset, writes);
    if (status.ok() && !writes && memory.written != nullptr && memory.written[offset] == 0)
      status = Unwritten(access, 0, offset);
    return offset;
  };
  copy->to = element(instr.a, true);
  HONE_RETURN_IF_ERROR(status);
  if (instr.b >= 0) {
    copy->from = element(instr.b, false);
    HONE_RETURN_IF_ERROR(status);
  } else {
    copy->value = frame[instr.dst];
  }
  if (copy->to < 0 || copy->from < 0) return absl::OkStatus();  // out of range, which is not checked
  const CopiesInFlight::Element to{code_.accesses[static_cast<size_t>(instr.a)].buffer, copy->to};
  if (instr.b >= 0) {
    const CopiesInFlight::Element from{code_.accesses[static_cast<size_t>(instr.b)].buffer, copy->from};
    in_flight_.Add(to, &from, copy.get());
  } else {
    in_flight_.Add(to, nullptr, copy.get());
  }
  if (options_.landing == Landing::kEarliest) Land(*copy);
  copies_->open.push_back(std::move(copy));
  LandSome();
  return absl::OkStatus();
}

void Machine::Land(CopyInFlight& copy) {
  if (copy.landed) return;
  copy.landed = true;
  const Memory& to = memory_[static_cast<size_t>(code_.accesses[static_cast<size_t>(copy.to_access)].buffer)];
  if (copy.from_access >= 0) {
    const Memory& from = memory_[static_cast<size_t>(code_.accesses[static_cast<size_t>(copy.from_access)].buffer)];
    std::memcpy(to.data + copy.to * to.bytes, from.data + copy.from * from.bytes, static_cast<size_t>(to.bytes));
  } else {
    WriteElement(to, copy.to, copy.value);
  }
  if (to.written != nullptr) to.written[copy.to] = 1;
}

void Machine::LandSome() {
  if (options_.landing != Landing::kRandom) return;
  in_flight_.ForEach([&](CopyInFlight& copy) {
    if (random_.Chance(0.25)) Land(copy);
  });
}

absl::Status Machine::WaitForGroups(int64_t under_way) {
  LandSome();
  if (copies_ == nullptr) return absl::OkStatus();
  while (static_cast<int64_t>(copies_->groups.size()) > under_way) {
    const ThreadCopies::Group group = std::move(copies_->groups.front());
    copies_->groups.pop_front();
    for (const std::unique_ptr<CopyInFlight>& copy : group) {
      Land(*copy);
      const Access& to = code_.accesses[static_cast<size_t>(copy->to_access)];
      const Access* from = copy->from_access < 0 ? nullptr : &code_.accesses[static_cast<size_t>(copy->from_access)];
      const CopiesInFlight::Element source{from == nullptr ? 0 : from->buffer, copy->from};
      in_flight_.Remove({to.buffer, copy->to}, from == nullptr ? nullptr : &source, copy.get());
      // It may have landed this late: what others touch from here on they touch beside it.
      const Memory& memory = memory_[static_cast<size_t>(to.buffer)];
      if (memory.touches != nullptr) HONE_RETURN_IF_ERROR(NoteTouch(to, memory, copy->to, true));
      if (from == nullptr) continue;
      const Memory& read = memory_[static_cast<size_t>(from->buffer)];
      if (read.touches != nullptr) HONE_RETURN_IF_ERROR(NoteTouch(*from, read, copy->from, false));
    }
  }
  return absl::OkStatus();
}

absl::Status Machine::CheckAllLanded(const ThreadCopies& copies) const {
  const CopyInFlight* left = nullptr;
  if (!copies.open.empty()) left = copies.open.front().get();
  for (const ThreadCopies::Group& group : copies.groups) {
    if (left == nullptr && !group.empty()) left = group.front().get();
  }
  if (left == nullptr || !options_.check_races) return absl::OkStatus();
  const Access& access = code_.accesses[static_cast<size_t>(left->to_access)];
  return At(access.place,
            absl::FailedPreconditionError(absl::StrCat("the asynchronous copy in ", StatementText(access), " by ",
                                                       Who(left->block, left->thread),
                                                       " has not landed when the thread ends: it is never waited "
                                                       "for")));
}

}  // namespace hone::interp
