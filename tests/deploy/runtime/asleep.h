// Whether a thread of this process sleeps, as the system has it: a test that holds what a thread will wait for knows by
// it when the thread has come there.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace hone {

inline bool IsAsleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S';
}

}  // namespace hone
