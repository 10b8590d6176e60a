// One thread of a launch: threads.cc runs them, collectives.cc what the threads of a warp do together.
#pragma once

#include <string>
#include <vector>

#include "compiler/interp/machine.h"

namespace hone::interp {

struct Machine::Thread {
  enum class State : uint8_t { kReady, kAtBarrier, kAtCollective, kForked, kEnded };
  Thread* parent = nullptr;
  const ForkCode* fork = nullptr;
  Coordinates coordinates;
  std::vector<Slot> slots;
  std::vector<Memory> buffers;  // those of the fork
  const Instr* at = nullptr;    // where it goes on, or what it waits at
  State state = State::kReady;
  int children = 0;     // that have not ended
  bool parted = false;  // it has had children, which are threads in its place
  ThreadCopies copies;

  std::string Name() const { return coordinates.Name("threadIdx"); }
};

}  // namespace hone::interp
