#include "database/postgres/postgres_leader.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "database/postgres/postgres_locks.h"

namespace hone {
namespace {

constexpr auto kSpeakEvery = std::chrono::milliseconds(500);
constexpr int kSilentSeconds = 3;

// Ends all sessions of the leader whose session was silent for too long; how many there were. Sessions are told apart
// by the name of their daemon. By the server's clock alone. 0 when the leader's user is another than ours: then the
// server does not say when it spoke.
std::string EndSilentLeader() {
  return absl::StrCat(
      "SELECT count(pg_terminate_backend(s.pid)) FROM pg_stat_activity s WHERE s.datname = current_database() AND "
      "s.application_name IN (SELECT h.application_name FROM pg_locks l JOIN pg_stat_activity h ON h.pid = l.pid "
      "JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND l.locktype = 'advisory' AND "
      "l.granted AND l.classid = ",
      kLeaderLock >> 32, " AND l.objid = ", kLeaderLock & 0xffffffff,
      " AND clock_timestamp() - h.state_change > interval '", kSilentSeconds, " seconds')");
}

}  // namespace

PostgresLeader::~PostgresLeader() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (speaking_.joinable()) speaking_.join();
}

absl::StatusOr<bool> PostgresLeader::TryLock() {
  if (session_ == nullptr || !session_->usable()) {
    HONE_ASSIGN_OR_RETURN(session_, PostgresConnection::Open(url_, application_));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t locked, session_->Number(absl::StrCat("SELECT CASE WHEN pg_try_advisory_lock(",
                                                                            kLeaderLock, ") THEN 1 ELSE 0 END")));
  return locked != 0;
}

absl::StatusOr<bool> PostgresLeader::TryLead() {
  if (leads_) return !lost_;
  HONE_ASSIGN_OR_RETURN(leads_, TryLock());
  if (!leads_) {
    HONE_ASSIGN_OR_RETURN(const int64_t ended, session_->Number(EndSilentLeader()));
    if (ended == 0) return false;
    HONE_ASSIGN_OR_RETURN(leads_, TryLock());  // at the next try where the server has not ended them yet
    if (!leads_) return false;
  }
  speaking_ = std::thread([this] { KeepSpeaking(); });
  return true;
}

void PostgresLeader::KeepSpeaking() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_.wait_for(lock, kSpeakEvery, [&] { return stopping_; })) {
    if (session_ != nullptr && session_->usable()) {
      const uint64_t ours = epoch_;  // before the question: a term that begins meanwhile would look like another's
      const absl::StatusOr<int64_t> epoch = session_->Number("SELECT epoch FROM term");
      if (epoch.ok() && ours != 0 && static_cast<uint64_t>(*epoch) != ours) lost_ = true;
      continue;
    }
    // The server, or another daemon, has ended the session. The lock is taken again, if nobody else has it.
    const absl::StatusOr<bool> locked = TryLock();
    if (locked.ok() && !*locked) lost_ = true;
  }
}

}  // namespace hone
