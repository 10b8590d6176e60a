// Named places at which a test ends the process as `kill -9` would, to see what a restart makes of it
// (tests/crash). In a header of its own without a library, because hone-runner links none of Hone's.
//
//   HONE_CRASH_AT=NAME:N:FILE    the process that comes N-th by the point NAME ends there. FILE holds the number of
//                                visits, 8 bytes that all processes share: it happens once, however often they are
//                                started again.
//   HONE_CRASH_BY=19             by this signal in place of SIGKILL: SIGSTOP holds it there until it may go on.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace hone {
namespace internal {

struct CrashPlan {
  std::string name;
  int64_t visit = 0;
  int signal = SIGKILL;
  std::atomic<int64_t>* visits = nullptr;  // nullptr: no process is to end

  static CrashPlan FromEnvironment() {
    CrashPlan plan;
    const char* at = std::getenv("HONE_CRASH_AT");
    if (at == nullptr) return plan;
    const std::string text = at;
    const size_t name = text.find(':'), visit = text.find(':', name + 1);
    if (name == std::string::npos || visit == std::string::npos) return plan;
    const int file = ::open(text.c_str() + visit + 1, O_RDWR | O_CLOEXEC);
    void* shared = ::mmap(nullptr, sizeof(*plan.visits), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) ::close(file);
    if (shared == MAP_FAILED) return plan;
    plan.name = text.substr(0, name);
    plan.visit = std::atoll(text.c_str() + name + 1);
    plan.visits = static_cast<std::atomic<int64_t>*>(shared);
    if (const char* by = std::getenv("HONE_CRASH_BY")) plan.signal = std::atoi(by);
    return plan;
  }
};

}  // namespace internal

// The first one in a process that locks itself in is passed before it does: afterwards there are no files.
inline void CrashPoint(std::string_view name) {
  static const internal::CrashPlan plan = internal::CrashPlan::FromEnvironment();
  if (plan.visits == nullptr || name != plan.name || plan.visits->fetch_add(1) + 1 != plan.visit) return;
  ::kill(::getpid(), plan.signal);
  if (plan.signal == SIGKILL)
    ::_exit(128 + SIGKILL);  // the first process of a pid namespace takes no signal from itself
}

}  // namespace hone
