#include "tuner/service/client.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "database/store/rows.h"
#include "proto/rpc/address.h"
#include "tuner/service/endpoints/submit_pieces.h"

namespace hone {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(150);
constexpr absl::Duration kWatchCall = absl::Minutes(10);  // then it is made again

// A watch under way, read by gRPC's threads, so that whoever waits for its messages can do something else meanwhile.
class WatchStream : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  WatchStream(v1::Tune::Stub& tune, grpc::ClientContext* context, const v1::WatchRequest& request) {
    tune.async()->Watch(context, &request, this);
    StartRead(&event_);
    StartCall();
  }
  // True when there is a snapshot that was not taken yet: it is put into `snapshot`.
  bool Wait(absl::Duration timeout, v1::JobSnapshot* snapshot) {
    std::unique_lock<std::mutex> lock(mutex_);
    news_.wait_for(lock, absl::ToChronoMilliseconds(timeout), [this] { return has_next_ || over_; });
    if (!has_next_) return false;
    *snapshot = std::move(next_);
    has_next_ = false;
    return true;
  }
  bool over() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over_;
  }
  const grpc::Status& status() const { return status_; }  // once it is over

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next_ = std::move(*event_.mutable_snapshot());
      has_next_ = true;
      news_.notify_all();
    }
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
    over_ = true;
    news_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable news_;
  v1::JobEvent event_;
  v1::JobSnapshot next_;
  bool has_next_ = false, over_ = false;
  grpc::Status status_;
};

// A submission under way: gRPC's threads send one piece after another. It must not end before its call is over, nor on
// one of those threads: with its context the channel may go, which waits for them.
class SubmitCall : public grpc::ClientWriteReactor<v1::SubmitRequest> {
 public:
  SubmitCall(v1::Tune::Stub& tune, std::unique_ptr<grpc::ClientContext> context, std::vector<v1::SubmitRequest> pieces)
      : context_(std::move(context)), pieces_(std::move(pieces)) {
    tune.async()->Submit(context_.get(), &reply_, this);
    SendNext();
    StartCall();
  }
  // Whether the call is over by then.
  bool Wait(absl::Duration timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    return ended_.wait_for(lock, absl::ToChronoMilliseconds(timeout), [this] { return over_; });
  }
  void Cancel() { context_->TryCancel(); }
  const v1::SubmitReply& reply() const { return reply_; }  // once it is over
  const grpc::Status& status() const { return status_; }

 private:
  void SendNext() {
    const v1::SubmitRequest& piece = pieces_[next_++];
    if (next_ == pieces_.size()) return StartWriteLast(&piece, grpc::WriteOptions());
    StartWrite(&piece);
  }
  void OnWriteDone(bool ok) override {
    if (ok && next_ < pieces_.size()) SendNext();
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
    over_ = true;
    ended_.notify_all();
  }

  const std::unique_ptr<grpc::ClientContext> context_;
  const std::vector<v1::SubmitRequest> pieces_;
  size_t next_ = 0;
  v1::SubmitReply reply_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  grpc::Status status_;
};

// A call that is cancelled is over when the connection has taken, or lost, what was being sent, which may be after
// seconds. It is kept, so that nobody waits for that: until another one is given up, or the process ends.
void GiveUp(std::unique_ptr<SubmitCall> call) {
  static std::mutex& mutex = *new std::mutex;
  static auto& given_up = *new std::vector<std::unique_ptr<SubmitCall>>;
  call->Cancel();
  const std::lock_guard<std::mutex> lock(mutex);
  std::erase_if(given_up, [](const auto& earlier) { return earlier->Wait(absl::ZeroDuration()); });
  given_up.push_back(std::move(call));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonClient>> DaemonClient::Connect(const std::string& address,
                                                                    const Credentials& credentials,
                                                                    absl::Duration timeout) {
  HONE_RETURN_IF_ERROR(CheckAddress(address));
  const std::shared_ptr<grpc::Channel> channel = OpenChannel(address, credentials);
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout))) {
    const char* else_than_away = IsUnixAddress(address)    ? ""
                                 : credentials.tls.empty() ? " (one with TLS wants --tls-ca, --tls-cert, --tls-key)"
                                                           : " with TLS, by that name, of the same authority";
    return absl::UnavailableError(absl::StrCat("no daemon answers at ", address, " within ",
                                               absl::FormatDuration(timeout), "; is `honed` running there",
                                               else_than_away, "?"));
  }
  std::unique_ptr<DaemonClient> client(new DaemonClient());
  client->address_ = address;
  client->credentials_ = credentials;
  client->channel_ = channel;
  client->tune_ = v1::Tune::NewStub(channel);
  client->fleet_ = v1::Fleet::NewStub(channel);
  return client;
}

absl::StatusOr<v1::SubmitReply> DaemonClient::Submit(const v1::SubmitRequest& request, absl::Duration timeout,
                                                     const std::function<bool()>& go_on) {
  HONE_ASSIGN_OR_RETURN(std::vector<v1::SubmitRequest> pieces, SplitSubmit(request));
  const absl::Duration sending = absl::Seconds(static_cast<int64_t>(request.ByteSizeLong() >> 20));
  auto call = std::make_unique<SubmitCall>(*tune_, Context(timeout + sending), std::move(pieces));
  while (!call->Wait(kLook)) {
    if (go_on()) continue;
    GiveUp(std::move(call));
    return absl::CancelledError("the submission was given up");
  }
  HONE_RETURN_IF_ERROR(FromGrpc(call->status()));
  return call->reply();
}

absl::StatusOr<v1::JobSnapshot> DaemonClient::GetJob(uint64_t job, absl::Duration timeout) {
  const absl::Time end = MonotonicNow() + timeout;
  v1::GetJobRequest request;
  request.set_job_id(job);
  v1::JobSnapshot whole;
  HONE_RETURN_IF_ERROR(FromGrpc(tune_->GetJob(Context(timeout).get(), request, &whole)));
  HONE_RETURN_IF_ERROR(GetTasksThatFollow(whole, end - MonotonicNow()));
  return whole;
}

absl::Status DaemonClient::GetTasksThatFollow(v1::JobSnapshot& job, absl::Duration timeout) {
  const absl::Time end = MonotonicNow() + timeout;
  v1::GetJobRequest request;
  request.set_job_id(job.job_id());
  while (job.next_task() != 0) {
    request.set_after_task(job.next_task());
    v1::JobSnapshot page;
    HONE_RETURN_IF_ERROR(FromGrpc(tune_->GetJob(Context(end - MonotonicNow()).get(), request, &page)));
    for (v1::TaskSnapshot& task : *page.mutable_tasks()) *job.add_tasks() = std::move(task);
    job.set_next_task(page.next_task());
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSnapshot> DaemonClient::Watch(uint64_t job, absl::Duration interval,
                                                    const std::function<bool(const Sight&)>& seen) {
  v1::JobSnapshot last;
  Sight sight;
  absl::Time heard = MonotonicNow();
  const auto look = [&](bool fresh) {
    if (fresh) heard = MonotonicNow();
    sight.snapshot = last.state() == v1::JOB_STATE_UNSPECIFIED ? nullptr : &last;
    sight.fresh = fresh;
    sight.silence = MonotonicNow() - heard;
    return seen(sight);
  };
  for (;;) {
    const std::unique_ptr<grpc::ClientContext> context = Context(kWatchCall);
    v1::WatchRequest request;
    request.set_job_id(job);
    request.set_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(interval)));
    WatchStream stream(*tune_, context.get(), request);
    bool more = true;
    for (;;) {
      const bool fresh = stream.Wait(kLook, &last);
      if (fresh) sight.away.clear();
      if (more && (fresh || !stream.over())) more = look(fresh);
      if (!more) context->TryCancel();
      if (!fresh && stream.over()) break;
    }
    if (!more) return last;
    const grpc::Status status = stream.status();
    const bool ended = last.state() != v1::JOB_STATE_UNSPECIFIED && !IsOpen(last.state());
    if (status.ok() && ended) {
      // Without the rest the job is no less over.
      GetTasksThatFollow(last).IgnoreError();
      return last;
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) continue;
    const bool away = status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                      status.error_code() == grpc::StatusCode::CANCELLED;
    if (!away) return FromGrpc(status);
    sight.away = status.ok() ? "it has ended" : status.error_message();
    if (!look(false)) return last;
    absl::SleepFor(kLook);
  }
}

}  // namespace hone
