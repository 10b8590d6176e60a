// What is seen of a process from outside, and a port for one.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

#include "compiler/support/check.h"

namespace hone {

// Those that it started and nobody has waited for, by whichever of its threads.
inline std::set<pid_t> ChildrenOf(pid_t pid) {
  std::set<pid_t> children;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.insert(child);
  }
  return children;
}

inline int DescriptorsOf(pid_t pid) {
  std::error_code gone;
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(pid) + "/fd", gone);
  return static_cast<int>(std::distance(begin(open), end(open)));
}

// "VmRSS" or another of its sizes; 0 where the system does not tell.
inline int64_t KiBOf(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == field + ":" && status >> kib) return kib;
  }
  return 0;
}

// One that nobody has now.
inline int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  HONE_CHECK(::bind(socket, reinterpret_cast<const sockaddr*>(&name), length) == 0);
  HONE_CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) == 0);
  ::close(socket);
  return ntohs(name.sin_port);
}

}  // namespace hone
