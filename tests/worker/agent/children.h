// The processes that this one started and nobody has waited for.
#pragma once

#include <dirent.h>

#include <fstream>
#include <set>
#include <string>

namespace hone::testing {

inline std::set<std::string> Children() {
  std::set<std::string> children;
  DIR* threads = ::opendir("/proc/self/task");
  while (const dirent* thread = ::readdir(threads)) {
    std::ifstream file(std::string("/proc/self/task/") + thread->d_name + "/children");
    for (std::string pid; file >> pid;) children.insert(pid);
  }
  ::closedir(threads);
  return children;
}

}  // namespace hone::testing
