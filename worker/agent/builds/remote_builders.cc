#include "worker/agent/builds/remote_builders.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sha256.h"
#include "proto/rpc/status.h"
#include "worker/agent/builds/build_deposit.h"
#include "worker/agent/builds/build_reply.h"

namespace hone {
namespace {

constexpr size_t kCallsAtOnce = 32;  // of the 64 that a daemon holds for a worker
constexpr absl::Duration kPause = absl::Milliseconds(500);

bool MayHelpToAskAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsNotFound(status) || absl::IsResourceExhausted(status);
}

v1::BuildOutcome Failed(const std::string& error) {
  v1::BuildOutcome outcome;
  outcome.mutable_reply()->set_error(error);
  outcome.set_infrastructure(true);
  return outcome;
}

// The builder may be wrong or evil, and what carried its answer too; what it built is verified before it is measured.
bool IsWhatItSays(const v1::BuildReply& reply, bool image_only) {
  if (!IsBuildReply(reply)) return false;
  return !reply.error().empty() || image_only || reply.object_digest() == Sha256(reply.object());
}

struct BuildCall {
  std::unique_ptr<grpc::ClientContext> context;
  v1::BuildCall request;
  v1::BuildOutcome outcome;
  absl::Status status;
};

// Makes the calls of a batch; those that fail and may be made again come back.
class Calls {
 public:
  Calls(Session& session, absl::Time give_up) : session_(session), give_up_(give_up) {}

  void Start(BuildCall& call) {
    call.outcome.Clear();
    call.context = session_.Context(TimeLeft());
    call.request.set_session(session_.id());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++out_;
    }
    session_.stub().async()->Build(call.context.get(), &call.request, &call.outcome,
                                   [this, &call](const grpc::Status& status) {
                                     const std::lock_guard<std::mutex> lock(mutex_);
                                     call.status = FromGrpc(status);
                                     if (status.ok() && !call.outcome.deposit().empty()) deposited_.push_back(&call);
                                     --out_;
                                     changed_.notify_all();
                                   });
  }
  // Meanwhile what was deposited is taken: until then others may have no room for theirs.
  void WaitForLessThan(size_t out) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return out_ < out || !deposited_.empty(); });
      if (deposited_.empty()) return;
      BuildCall& call = *deposited_.front();
      deposited_.pop_front();
      lock.unlock();
      call.status = TakeDeposit(session_, TimeLeft(), &call.outcome);
      lock.lock();
    }
  }

 private:
  absl::Duration TimeLeft() const { return std::max(give_up_ - MonotonicNow(), kPause); }

  Session& session_;
  const absl::Time give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t out_ = 0;
  std::deque<BuildCall*> deposited_;  // answered, by the name of what is to be taken
};

}  // namespace

void RemoteBuilders::Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) {
  const absl::Time give_up = MonotonicNow() + wait_;
  std::vector<BuildCall> calls(requests.size());
  std::vector<BuildCall*> to_make;
  for (size_t i = 0; i < calls.size(); ++i) {
    *calls[i].request.mutable_request() = std::move(requests[i]);
    calls[i].request.set_limit_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(limit)));
    to_make.push_back(&calls[i]);
  }
  Calls out(session_, give_up);
  while (!to_make.empty()) {
    for (BuildCall* call : to_make) {
      out.WaitForLessThan(kCallsAtOnce);
      out.Start(*call);
    }
    out.WaitForLessThan(1);
    const bool late = MonotonicNow() + kPause >= give_up || session_.ends();
    std::erase_if(to_make, [&](const BuildCall* call) { return late || !MayHelpToAskAgain(call->status); });
    if (!to_make.empty()) absl::SleepFor(kPause);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    BuildCall& call = calls[i];
    if (!call.status.ok()) {
      call.outcome = Failed(absl::StrCat("no worker built it: ", std::string(call.status.message())));
    } else if (!IsWhatItSays(call.outcome.reply(), call.request.request().image_only())) {
      call.outcome = Failed("what a worker built is no program, or came with another digest than its own");
    }
    call.outcome.mutable_reply()->set_id(call.request.request().id());
    built_.push_back({i, std::move(call.outcome)});
  }
}

std::optional<Builders::Built> RemoteBuilders::Next() {
  if (built_.empty()) return std::nullopt;
  Built built = std::move(built_.front());
  built_.pop_front();
  return built;
}

}  // namespace hone
