// Launches: the iterations of loops over threadIdx are threads that wait for one another at barriers, those of loops
// over blockIdx blocks of them, which nothing orders.
//
// Every thread has slots and allocations of its own and runs, in order of its number, to the next barrier or to its
// end. When all have stopped they must have stopped at the same barrier, in the same iteration of the loops around it:
// anything else would hang a device, or be undefined there. A loop over another threadIdx inside makes further threads;
// their parent goes on when all of them have ended.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/thread.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone::interp {

void Machine::BeginLaunch() {
  place_ = Place{.in_launch = true};
  for (size_t b = 0; b < memory_.size(); ++b) {
    const bool touched = options_.check_races && memory_[b].data != nullptr && code_.buffers[b].written;
    memory_[b].touches = touched ? std::make_unique<Touches>(memory_[b].elements) : nullptr;
  }
}

void Machine::EndLaunch() {
  place_ = Place();
  for (Memory& memory : memory_) memory.touches = nullptr;
}

absl::Status Machine::NoteTouch(const Access& access, const Memory& memory, int64_t offset, bool writes) {
  if (!in_flight_.empty()) HONE_RETURN_IF_ERROR(CheckLanded(access, memory, offset, writes));
  const Touch touch{place_.block, place_.thread, place_.epoch, static_cast<int32_t>(&access - code_.accesses.data()),
                    writes,       access.atomic};
  const std::optional<Touch> earlier = memory.touches->Add(offset, touch);
  if (!earlier.has_value()) return absl::OkStatus();
  const auto what = [&](const Touch& t) {
    return absl::StrCat(t.writes ? "writes" : "reads", " it in ",
                        StatementText(code_.accesses[static_cast<size_t>(t.access)]));
  };
  const bool blocks = earlier->block.Differ(touch.block);
  return At(access.place, absl::FailedPreconditionError(absl::StrCat(
                              "data race for ", code_.buffers[static_cast<size_t>(access.buffer)].buffer.name(),
                              IndexText(memory, offset), ": ", earlier->Who(), " ", what(*earlier), ", ", touch.Who(),
                              " ", what(touch), ", ",
                              blocks ? "and nothing orders blocks of one launch" : "and no barrier stands between")));
}

absl::Status Machine::Spawn(std::vector<std::unique_ptr<Thread>>& threads, Thread* parent, const Instr& fork,
                            const Slot* frame) {
  constexpr int64_t kMostThreads = 4096;
  const int64_t begin = frame[fork.a].i, end = frame[fork.b].i;
  if (end - begin > kMostThreads - static_cast<int64_t>(threads.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("interpreting ", f_.name, ": more than ", kMostThreads, " threads wait for one another"));
  }
  for (int64_t number = begin; number < end; ++number) {
    auto thread = std::make_unique<Thread>();
    thread->parent = parent;
    thread->fork = &code_.forks[fork.aux];
    thread->coordinates = (parent == nullptr ? Coordinates() : parent->coordinates).With(thread->fork->thread, number);
    thread->slots.assign(frame, frame + slots_.size());
    thread->slots[static_cast<size_t>(fork.a)].i = number;
    for (const int buffer : thread->fork->buffers) {
      const Memory& like = memory_[static_cast<size_t>(buffer)];
      Memory own;
      own.storage = like.storage;
      own.bytes = like.bytes;
      thread->buffers.push_back(std::move(own));
    }
    thread->at = &fork + 1;
    threads.push_back(std::move(thread));
  }
  return absl::OkStatus();
}

// Puts the buffers of the thread, and of those it comes from, in the place of the machine's, or back.
void Machine::SwapBuffers(Thread& thread) {
  for (Thread* t = &thread; t != nullptr; t = t->parent) {
    for (size_t i = 0; i < t->buffers.size(); ++i)
      std::swap(memory_[static_cast<size_t>(t->fork->buffers[i])], t->buffers[i]);
  }
}

absl::Status Machine::Resume(Thread& thread, Stop& stop) {
  SwapBuffers(thread);
  place_.thread = thread.coordinates;
  copies_ = &thread.copies;
  absl::Status status = Execute(thread.at, thread.slots.data(), &stop);
  copies_ = nullptr;
  place_.thread = Coordinates();
  SwapBuffers(thread);
  return status;
}

std::string Machine::OtherIteration(const BarrierCode& meeting, const Thread& thread, const Thread& first) {
  for (size_t i = 0; i < meeting.loops.size(); ++i) {
    const size_t slot = static_cast<size_t>(meeting.loops[i]);
    if (thread.slots[slot].i == first.slots[slot].i) continue;
    return absl::StrCat("is there with ", meeting.names[i], " = ", thread.slots[slot].i, ", not ", first.slots[slot].i);
  }
  return "";
}

absl::Status Machine::MeetAtBarrier(const std::vector<std::unique_ptr<Thread>>& threads) const {
  const Thread* first = nullptr;
  for (const auto& thread : threads) {
    if (thread->state == Thread::State::kAtBarrier && first == nullptr) first = thread.get();
  }
  const BarrierCode& barrier = code_.barriers[first->at->aux];
  for (const auto& thread : threads) {
    std::string elsewhere;
    if (thread->state == Thread::State::kEnded) {
      // A thread of a fork that has been joined need not come.
      const bool joined = thread->parent != nullptr && thread->parent->state != Thread::State::kForked;
      if (!joined) elsewhere = "has ended";
    } else if (thread->state == Thread::State::kAtBarrier && thread->at != first->at) {
      const std::string& place = code_.barriers[thread->at->aux].place;
      elsewhere = absl::StrCat("waits at another", place.empty() ? "" : absl::StrCat(", in block ", place));
    } else if (thread->state == Thread::State::kAtBarrier) {
      elsewhere = OtherIteration(barrier, *thread, *first);
    }
    if (elsewhere.empty()) continue;
    return At(barrier.place,
              absl::FailedPreconditionError(absl::StrCat("divergent barrier: thread ", first->Name(),
                                                         " waits at it, thread ", thread->Name(), " ", elsewhere)));
  }
  return absl::OkStatus();
}

absl::Status Machine::RunThreads(const Instr& fork, Slot* frame) {
  std::vector<std::unique_ptr<Thread>> threads;
  HONE_RETURN_IF_ERROR(Spawn(threads, nullptr, fork, frame));
  while (true) {
    bool ran = false;
    for (size_t i = 0; i < threads.size(); ++i) {  // grows
      Thread& thread = *threads[i];
      if (thread.state != Thread::State::kReady) continue;
      ran = true;
      Stop stop;
      HONE_RETURN_IF_ERROR(Resume(thread, stop));
      thread.at = stop.at;
      if (stop.why == Stop::Why::kBarrier) {
        thread.state = Thread::State::kAtBarrier;
      } else if (stop.why == Stop::Why::kCollective) {
        thread.state = Thread::State::kAtCollective;
      } else if (stop.why == Stop::Why::kFork) {
        const size_t before = threads.size();
        HONE_RETURN_IF_ERROR(Spawn(threads, &thread, *stop.at, thread.slots.data()));
        thread.children = static_cast<int>(threads.size() - before);
        thread.parted = true;
        if (thread.children > 0) {
          thread.state = Thread::State::kForked;
        } else {
          thread.at = code_.instrs.data() + stop.at->c;
        }
      } else {
        thread.state = Thread::State::kEnded;
        HONE_RETURN_IF_ERROR(CheckAllLanded(thread.copies));
        Thread* parent = thread.parent;
        if (parent != nullptr && --parent->children == 0) {
          parent->at = code_.instrs.data() + parent->at->c;
          parent->state = Thread::State::kReady;
        }
      }
    }
    if (ran) continue;
    HONE_ASSIGN_OR_RETURN(const bool collective, RunCollectives(threads));
    if (collective) continue;
    bool waiting = false;
    for (const auto& thread : threads) waiting |= thread->state == Thread::State::kAtBarrier;
    if (!waiting) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(MeetAtBarrier(threads));
    ++place_.epoch;
    LandSome();
    for (const auto& thread : threads) {
      if (thread->state != Thread::State::kAtBarrier) continue;
      ++thread->at;
      thread->state = Thread::State::kReady;
    }
  }
}

}  // namespace hone::interp
