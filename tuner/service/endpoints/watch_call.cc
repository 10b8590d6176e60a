#include "tuner/service/endpoints/watch_call.h"

#include <mutex>
#include <optional>

#include "proto/rpc/status.h"
#include "tuner/service/access/auth.h"
#include "tuner/service/core/core.h"
#include "tuner/service/endpoints/task_pages.h"

namespace hone {
namespace {

class WatchCall : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  WatchCall(Core& core, const Gate& gate, const Caller& caller, const v1::WatchRequest& request)
      : core_(core), gate_(gate), caller_(caller) {
    const uint64_t tenant = caller.tenant.id;
    const absl::StatusOr<v1::JobSnapshot> first = core.Snapshot(tenant, request.job_id(), false);
    if (!first.ok()) {
      over_ = true;
      Finish(ToGrpc(first.status()));
      return;
    }
    watch_ = core.AddWatch(tenant, request.job_id(), Micros{request.interval_ms()} * 1000,
                           [this](const v1::JobSnapshot& snapshot, bool last) { Offer(snapshot, last); });
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    writing_ = false;
    if (!ok) return End(grpc::Status::CANCELLED);
    WriteNext();
  }
  void OnCancel() override {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!writing_) End(grpc::Status::CANCELLED);
    cancelled_ = true;
  }
  void OnDone() override {
    if (watch_ != 0) core_.RemoveWatch(watch_);
    delete this;
  }

 private:
  void Offer(const v1::JobSnapshot& snapshot, bool last) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (over_) return;
    next_ = snapshot;  // replaces one that could not be sent yet
    last_ = last_ || last;
    if (!writing_) WriteNext();
  }
  void WriteNext() {
    if (over_) return;
    if (cancelled_) return End(grpc::Status::CANCELLED);
    if (const absl::Status status = gate_.CheckAgain(caller_); !status.ok()) return End(ToGrpc(status));
    if (!next_.has_value()) {
      if (last_) End(grpc::Status::OK);
      return;
    }
    event_.set_seq(++seq_);
    *event_.mutable_snapshot() = *std::move(next_);
    next_.reset();
    KeepTaskPage(0, *event_.mutable_snapshot());
    writing_ = true;
    StartWrite(&event_);
  }
  void End(const grpc::Status& status) {
    if (over_) return;
    over_ = true;
    Finish(status);
  }

  Core& core_;
  const Gate& gate_;
  const Caller caller_;  // with its stream, one of those it may have open
  uint64_t watch_ = 0;
  std::mutex mutex_;
  bool writing_ = false, last_ = false, over_ = false, cancelled_ = false;
  std::optional<v1::JobSnapshot> next_;
  v1::JobEvent event_;
  uint64_t seq_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(Core& core, const Gate& gate, const Caller& caller,
                                                   const v1::WatchRequest& request) {
  return new WatchCall(core, gate, caller, request);
}

}  // namespace hone
