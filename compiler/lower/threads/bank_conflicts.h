// How often the accesses of a kernel ask the banks of shared memory: a count of its lane program, without a device.
//
// Shared memory has 32 banks of 4 bytes, neighbouring words in neighbouring banks. Lanes of a warp that ask one bank
// for different words are answered in turn; those that ask for one word are answered together (CUDA C++ Programming
// Guide 12.6, section 16.4.3, "Shared Memory"). Accesses of 8 and 16 bytes are made by halves and quarters of a warp,
// and ldmatrix by the 8 rows of a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/lower/threads/device_program.h"

namespace hone {

inline constexpr int64_t kBanks = 32, kBankBytes = 4;

struct BankCount {
  std::string statement;  // the first line of its text
  int64_t requests = 0;   // times that a warp comes to it
  int64_t turns = 0;      // in which the banks answer
  int64_t least = 0;      // turns if no two words were in one bank

  int64_t conflicts() const { return turns - least; }
};

// Of one block of the launch, the first: each statement that touches shared memory, in the order of the program. Loops
// are run through, so the count is exact. An access to several elements is one as wide as all lanes' addresses allow,
// 16 bytes at most. FailedPrecondition where what is touched depends on data.
absl::StatusOr<std::vector<BankCount>> CountBankConflicts(const Launch& launch, const DeviceKernel& kernel);

}  // namespace hone
