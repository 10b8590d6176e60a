// A real honed in a folder of its own, with the fake search beside it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tuner/service/client.h"

namespace hone {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class HonedProcess {
 public:
  // Starts it and waits for its readiness line; `arguments` without the program, which is beside the others. `ready` is
  // false when it ended instead.
  explicit HonedProcess(const std::vector<std::string>& arguments, const std::string& program = "honed");
  ~HonedProcess();  // kills it when it still runs

  bool ready() const { return !address_.empty(); }
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }
  void Signal(int number);
  int Wait();            // its exit code, or 128 + signal
  std::string Errors();  // all it wrote to standard error; after Wait

 private:
  pid_t pid_ = -1;
  int errors_ = -1;
  std::string address_;
};

}  // namespace hone
