// Who is locked in and how: one row for each kind of process that runs or reads what a stranger wrote.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

enum class ProcessKind : uint8_t {
  kRunner,        // hone-runner: executes one candidate
  kBuilder,       // hone-builder: parses, replays and compiles
  kOracle,        // hone-oracle: parses and interprets a workload
  kSearch,        // hone-search: parses workloads and traces, trains cost models
  kDeviceRunner,  // hone-device-runner: has a device execute one candidate, through a third party's driver
};

// What the filter of system calls lets through.
enum class SystemCalls : uint8_t {
  kKernel,   // a loaded kernel: messages, futex, time; memory is refused, all else ends the process
  kProgram,  // a program that computes: also memory that is not executable, threads, pipes; files are refused, what
             // reaches for other processes or the kernel ends it
  kDriver,   // a driver, its compiler and the programs that this starts: what reaches for other processes, the network
             // or the kernel's own affairs is refused or ends it, all else is let through
};

struct SandboxPolicy {
  ProcessKind kind;
  const char* program;
  SystemCalls system_calls;
  int64_t memory_bytes;  // of address space
  int cpu_seconds;       // all threads together; 0: no limit of its own, each request has one
  int max_descriptors;   // the first number that no new descriptor gets
  int namespaces;        // that it is started in: CLONE_NEWUSER and its like
  int niceness;          // of EnterAndLock: it gives way to whoever verifies a candidate beside it
};
const SandboxPolicy& SandboxPolicyOf(ProcessKind kind);
const SandboxPolicy* FindSandboxPolicy(std::string_view program);  // by its file's name; nullptr: none of these

// What landlock leaves of the files: everything beneath a folder, to read and run, or to write too. What is not there
// is passed over.
struct OpenFolder {
  const char* path;
  bool writable = false;
};
// Of a kDeviceRunner, besides a folder of its own and that of a driver which is none of the system's.
std::span<const OpenFolder> DriverFolders();

}  // namespace hone
