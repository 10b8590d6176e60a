// A program of ours in a terminal of its own, as a user sees and interrupts it.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/harness.h"

namespace hone::system_test {

class Terminal {
 public:
  Terminal(const TempFolder& folder, const std::string& program, const Arguments& arguments, int columns = 100,
           const std::map<std::string, std::string>& environment = {});
  ~Terminal();  // kills what still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& keys);  // "\x03" is Ctrl-C
  int Wait(double seconds = 150);      // as Process::Wait
  bool running();
  std::string Screen() const;              // all that was written to it, so far
  std::vector<std::string> Lines() const;  // what was written between line feeds and carriage returns
  bool Shows(const std::string& text) const { return Screen().find(text) != std::string::npos; }

 private:
  pid_t pid_ = -1;
  int master_ = -1, code_ = -1;
  mutable std::mutex mutex_;
  std::string screen_;
  std::thread reader_;
};

}  // namespace hone::system_test
