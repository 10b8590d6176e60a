// A control group (cgroup) of a process and all that it starts: limits of memory and of processes that hold for them
// together, and an end that none of them outlives. Unlike the limits that a process sets itself (enter.h), it is made
// by the parent process, and counts what no limit of address space does: pages of files in memory, stacks, the kernel's
// own.
//
//   std::optional<ControlGroup> group = ControlGroup::Make({.memory_bytes = 1 << 30, .processes = 64});
//   const bool holds = group.has_value() && group->Add(child.pid());   // before the child is given anything to do
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hone {

class ControlGroup {
 public:
  struct Limits {
    int64_t memory_bytes = 0;
    int processes = 0;  // with their threads
  };

  // Below the group of this process: by version 2 of the interface where that group may be divided (it is delegated to
  // this user, and this process was alone in it or it is divided already), else by version 1 where its folders of
  // memory and pids may be written. nullopt where the system gives neither.
  static std::optional<ControlGroup> Make(const Limits& limits);
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&& other) noexcept;
  ~ControlGroup();  // kills the processes in it, and removes it

  // The process, and what it starts from now on. False when it is not in all of it.
  bool Add(pid_t pid);
  // The processes in it; empty when all have ended.
  std::vector<pid_t> Members() const;

 private:
  ControlGroup() = default;
  void End();
  std::vector<std::string> folders_;  // one of version 2, or one for each of version 1's hierarchies
};

}  // namespace hone
