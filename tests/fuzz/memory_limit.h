// What one input may take: 64 MiB of memory at once. The sanitizers' own memory does not count.
#pragma once

namespace hone {

// Stands while one input is read. More memory at once ends the program with the peak, as a crash that libFuzzer keeps.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
};

}  // namespace hone
