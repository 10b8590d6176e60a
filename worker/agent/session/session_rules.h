// What the network side of a worker says next, and what it makes of the answers: when it says Hello and Sync, how long
// it waits before another try, when the session is over. No clock, thread or network inside: Session carries it out,
// and so does the simulation of the fleet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/fleet.pb.h"
#include "worker/agent/session/session_work.h"

namespace hone {

inline constexpr absl::Duration kCallTimeout = absl::Seconds(20);  // beyond the time that the daemon holds a call

// What a worker does for the daemon: see --role.
enum class AgentRole { kBoth, kBuild, kMeasure };

struct SessionOptions {
  std::string name;      // stable over restarts
  std::string name_key;  // what the daemon knows us by when we say Hello again
  v1::DeviceProfile profile;
  AgentRole role = AgentRole::kBoth;
  int threads = 1;
  std::string generator;                          // what makes its code; "": not known
  std::vector<std::string> missing_layers;        // of the sandbox
  int capacity = 32;                              // leases held at most: one batch at work, one waiting
  bool exit_with_daemon = false;                  // end when the daemon is gone, instead of waiting for it
  absl::Duration drain_limit = absl::Minutes(1);  // once told to stop: what is under work then goes back
};

// ---- what to do now ----
struct SayHello {
  v1::HelloRequest request;
};
struct SaySync {
  uint64_t call = 0;
  std::shared_ptr<const v1::SyncRequest> request;
  absl::Duration timeout;
};
struct WaitForNews {  // there is something new to tell, an answer came, or so long is over
  absl::Duration at_most;
};
struct Pause {  // whatever happens
  absl::Duration time;
};
struct EndSession {
  absl::Status status;  // as Session::Run returns it
};
using SessionStep = std::variant<SayHello, SaySync, WaitForNews, Pause, EndSession>;

class SessionRules {
 public:
  // `session`: 16 random bytes. `work` outlives it.
  SessionRules(SessionOptions options, std::string session, SessionWork& work, absl::Time now);

  const std::string& session() const { return session_; }
  // `stop`: the worker was asked to end. Not to be called while a Hello is out.
  SessionStep Next(absl::Time now, bool stop);
  void HelloAnswered(absl::Time now, const absl::StatusOr<v1::HelloReply>& reply);
  // Answers of several calls may come in any order; the second one of a call counts for nothing.
  void SyncAnswered(absl::Time now, uint64_t call, absl::StatusOr<v1::SyncReply> reply);

 private:
  struct Call {
    uint64_t id = 0;
    std::shared_ptr<const v1::SyncRequest> request;
    uint64_t finished = 0;  // results there were when it was made
    bool late = false;      // made when the drain limit was over
    std::optional<absl::StatusOr<v1::SyncReply>> reply;
  };
  v1::HelloRequest MakeHello() const;
  SessionStep NextHello(absl::Time now, bool draining);
  SessionStep NextSync(absl::Time now, bool draining);
  SessionStep StartSync(absl::Time now, bool draining);
  // Does what an answer says. `newest`: no later call is out.
  void Follow(absl::Time now, const Call& call, bool newest);
  // While it drains: gives back what is to go back. True when it is time to leave without another word.
  bool DrainIsOver(absl::Time now, bool daemon_answers);

  SessionOptions options_;
  const std::string session_;
  SessionWork& work_;
  std::optional<absl::Status> end_;
  bool greeted_ = false;  // the daemon knows this session
  absl::Status hello_error_;
  absl::Time hello_at_;   // the next one, after one that failed
  absl::Duration pause_;  // after the next one that fails
  absl::Duration hold_ = absl::Seconds(10);
  absl::Time last_answer_;
  uint64_t seq_ = 0;
  std::deque<Call> calls_;  // two as a rule: a newer one makes the daemon answer the older
  absl::Time news_since_ = absl::InfiniteFuture();
  bool asked_to_drain_ = false;  // by the daemon
  bool told_draining_ = false;   // and answered
  absl::Time drain_by_ = absl::InfiniteFuture();
};

}  // namespace hone
