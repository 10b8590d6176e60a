// What a worker built for a task lately. Every batch of the task races against its champion, and the duel of a
// challenger follows its batch: in a fresh process each time, of what was built once.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "hone/v1/build.pb.h"

namespace hone {

class KnownBuilds {
 public:
  struct Known {
    v1::BuildOutcome built;
    // The largest error over its bound on the task's inputs, on which it was right: it is not verified again.
    std::optional<double> verified = {};
    int unused = 0;  // batches since it was asked for
  };

  // What no batch has asked for lately is forgotten.
  void NextBatch();
  // nullptr: it is to be built, for the first time or since the request wants the object too.
  Known* Find(const v1::BuildRequest& request);
  void Keep(const v1::BuildRequest& request, v1::BuildOutcome built);
  void Forget(const v1::BuildRequest& request);

 private:
  std::map<std::string, Known> known_;  // by the requests, without what differs from one call to the next
};

}  // namespace hone
