// Several hone-builder processes. A builder that crashes, hangs or eats memory fails the request it was given and is
// replaced; nothing else happens.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "compiler/support/child_process.h"
#include "hone/v1/build.pb.h"

namespace hone {

class BuilderPool {
 public:
  // Builders are started when they are needed. `program` "": hone-builder beside this program.
  explicit BuilderPool(int builders, std::string program = "");

  struct Built {
    v1::BuildReply reply;         // `error` says what went wrong
    bool infrastructure = false;  // no builder could be started: the candidate is not to blame
    bool timed_out = false;
  };
  // All requests, on all builders at once; answers in the order of the requests. A request may take `limit`.
  std::vector<Built> Build(const std::vector<v1::BuildRequest>& requests, absl::Duration limit);

 private:
  Built BuildOn(size_t builder, const v1::BuildRequest& request, absl::Duration limit);

  std::string program_;
  std::vector<std::unique_ptr<ChildProcess>> builders_;
};

}  // namespace hone
