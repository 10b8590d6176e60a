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

// While it stands, this process and the children it starts can open so many beyond the highest that is open.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{static_cast<rlim_t>(*Descriptors().rbegin() + 1 + more), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace hone
