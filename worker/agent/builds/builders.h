// What a worker's candidates and oracles are built by: processes of its own (builder_pool.h), or other workers, through
// the daemon (remote_builders.h).
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "hone/v1/build.pb.h"

namespace hone {

class Builders {
 public:
  virtual ~Builders() = default;
  // All requests at once; outcomes in the order of the requests. Building one may take `limit`. One call at a time.
  virtual std::vector<v1::BuildOutcome> Build(const std::vector<v1::BuildRequest>& requests, absl::Duration limit) = 0;
};

}  // namespace hone
