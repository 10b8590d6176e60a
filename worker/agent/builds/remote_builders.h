// Has candidates built by workers that only build: a call to the daemon for each, all at once.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "worker/agent/builds/builders.h"
#include "worker/agent/session/session.h"

namespace hone {

// The longest that a build is waited for: less than the daemon lets a lease be under work.
inline constexpr absl::Duration kLongestBuildWait = absl::Minutes(4);

class RemoteBuilders : public Builders {
 public:
  // `session` outlives it. Calls that fail because the daemon is away, or does not know the session yet, are made again
  // until `wait` is over; that is then an infrastructure failure. What comes back and is not what its digest says is
  // one, too.
  explicit RemoteBuilders(Session& session, absl::Duration wait = kLongestBuildWait) : session_(session), wait_(wait) {}
  // Returns when all are built.
  void Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) override;
  std::optional<Built> Next() override;

 private:
  Session& session_;
  const absl::Duration wait_;
  std::deque<Built> built_;
};

}  // namespace hone
