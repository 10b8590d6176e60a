// What a worker's candidates and oracles are built by: processes of its own (builder_pool.h), or other workers, through
// the daemon (remote_builders.h).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/build.pb.h"

namespace hone {

class Builders {
 public:
  struct Built {
    size_t request = 0;  // by its place among those of Begin
    v1::BuildOutcome outcome;
  };

  virtual ~Builders() = default;
  // All requests at once; building one may take `limit`. Not before Next has handed out what was begun before.
  virtual void Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) = 0;
  // Waits for one that is built, in any order; nullopt: none is left. Whoever works on one does not hold up the others.
  virtual std::optional<Built> Next() = 0;

  // All of them, in the order of the requests.
  std::vector<v1::BuildOutcome> Build(std::vector<v1::BuildRequest> requests, absl::Duration limit);
};

}  // namespace hone
