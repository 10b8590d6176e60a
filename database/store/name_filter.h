// The expression by which a caller picks workloads. It is anybody's, so what it may cost is bounded: RE2 takes time in
// proportion to the name, without recursion, and refuses an expression that needs more memory than it may have. The
// syntax is RE2's, which has that of POSIX extended expressions, and no back-references.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace re2 {
class RE2;
}

namespace hone {

class NameFilter {
 public:
  // An empty expression matches every name. InvalidArgument for one that cannot be read, is longer than 1024 bytes, or
  // needs more than 64 KiB.
  static absl::StatusOr<NameFilter> Make(const std::string& expression);
  NameFilter(NameFilter&& other) noexcept;
  ~NameFilter();

  bool Matches(const std::string& name) const;  // somewhere in the name

 private:
  NameFilter();
  std::unique_ptr<const re2::RE2> expression_;  // nullptr: matches every name
};

}  // namespace hone
