// Which of several daemons on one database leads: the one whose session holds an advisory lock, which the server drops
// as soon as the process dies. A daemon that is stopped, or whose machine is gone, keeps its session; so the leader's
// session says something twice a second, and others end the sessions of a leader that was silent for three seconds.
//
// The lock says who leads, and fences nothing: what a former leader writes is refused by its epoch. A newer build that
// migrates the database raises the epoch, and so ends the term of the older leader (postgres_schema.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "database/postgres/postgres_connection.h"

namespace hone {

class PostgresLeader {
 public:
  // `application`: the name of all of this daemon's sessions, and of no other's.
  PostgresLeader(std::string url, std::string application)
      : url_(std::move(url)), application_(std::move(application)) {}
  ~PostgresLeader();  // gives the lock back

  // True when this daemon leads, now or already; false for good once another has taken over. By one thread at a time.
  // Unavailable when the server cannot be reached.
  absl::StatusOr<bool> TryLead();
  // The epoch that this daemon has begun as the leader: it has lost as soon as there is another, whoever has the lock.
  void SetEpoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  absl::StatusOr<bool> TryLock();
  void KeepSpeaking();

  const std::string url_, application_;
  std::unique_ptr<PostgresConnection> session_;  // of the thread below once it runs
  bool leads_ = false;
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> epoch_{0};  // 0: none yet
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread speaking_;
};

}  // namespace hone
