// Attempts in processes of their own, each locked in under chosen layers by the policy of a kind of process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <ostream>

#include "compiler/sandbox/policy.h"
#include "gtest/gtest.h"

namespace hone {

struct LockedIn {
  const char* name;
  ProcessKind kind;
  uint32_t never;  // layers that it is not to have
};
inline void PrintTo(const LockedIn& kind, std::ostream* out) { *out << kind.name; }

// What became of an attempt, in memory that a filter lets its process write to.
struct Tried {
  uint32_t layers;  // that held
  bool ready;       // it came so far
  bool escaped;
};

struct Attempt {
  bool (*succeeds)() = [] { return false; };
  uint32_t walls = 0;   // it is made where one of them holds
  bool anyway = false;  // or, since it harms nobody, anyway
};

inline constexpr int kMostProcesses = 24;           // of an attempt's control group
inline constexpr int kEscaped = 42, kRefused = 43;  // exit codes of an attempt

// A test of one way to be locked in, while there is something outside (outside.h).
class LockedInTest : public ::testing::TestWithParam<LockedIn> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // One attempt under the layers of `wanted`; nothing when this machine cannot start it in those namespaces. In a
  // control group are those alone that it would refuse, since to move into one takes long.
  std::optional<Tried> Try(uint32_t wanted, const Attempt& attempt);

  uint32_t available_ = 0;  // layers that this machine gives

 private:
  void WaitForAttempt(pid_t pid, int gate, bool in_group);

  Tried* shared_ = nullptr;
};

}  // namespace hone
