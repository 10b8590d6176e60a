// A process that runs out of descriptors, and whether it has lost any.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <set>

namespace hone {

// The numbers of those that are open.
inline std::set<int> Descriptors() {
  std::set<int> open;
  for (int fd = 0; fd < 256; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) open.insert(fd);
  }
  return open;
}

// While it stands, this process can open so many more: the limit is on their numbers, and the lowest free ones are
// taken.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit{0, before_.rlim_max};
    for (const std::set<int> open = Descriptors();; ++limit.rlim_cur) {
      if (open.count(static_cast<int>(limit.rlim_cur)) == 0 && more-- == 0) break;
    }
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace hone
