// HONE_CHECK: a broken promise of our own ends the process with a message. A failure that a caller can meet is a
// Status.
#pragma once

#include <sstream>

namespace hone::internal {

class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();  // prints and aborts
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace hone::internal

#define HONE_CHECK(condition) \
  while (!(condition)) ::hone::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()
#define HONE_UNREACHABLE() ::hone::internal::CheckFailure(__FILE__, __LINE__, "unreachable").stream()
