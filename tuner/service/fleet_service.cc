#include "tuner/service/fleet_service.h"

#include <atomic>

#include "compiler/support/crash_point.h"
#include "proto/rpc/status.h"
#include "tuner/service/auth.h"
#include "tuner/service/core.h"
#include "tuner/service/waiting.h"

namespace hone {
namespace {

// One held Sync. Ends once: by the dispatcher's answer, or because the caller has gone.
class SyncCall : public grpc::ServerUnaryReactor {
 public:
  SyncCall(Core& core, uint64_t tenant, const v1::SyncRequest& request, v1::SyncReply* reply)
      : core_(core), self_(this) {
    // The core may still know of this call after it is over: what it knows is `state`, which outlives the call.
    const std::shared_ptr<State> state = state_;
    state->call = this;
    state->reply = reply;
    to_ = core_.Expect([state](const Message& message) {
      if (state->over.exchange(true)) return;
      if (const v1::SyncReply* answer = std::get_if<v1::SyncReply>(&message)) {
        *state->reply = *answer;
        state->call->Finish(grpc::Status::OK);
      } else if (const Refusal* refusal = std::get_if<Refusal>(&message)) {
        state->call->Finish({static_cast<grpc::StatusCode>(refusal->code), refusal->message});
      } else {
        state->call->Finish({grpc::StatusCode::INTERNAL, "an answer to another question"});
      }
    });
    core_.Post(Sync{to_, request, Core::Utc(), tenant});
  }

  void OnCancel() override {
    core_.Post(SyncGone{to_});
    if (!state_->over.exchange(true)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete self_; }

 private:
  struct State {
    std::atomic<bool> over{false};
    SyncCall* call = nullptr;
    v1::SyncReply* reply = nullptr;
  };
  Core& core_;
  SyncCall* self_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  ReplyTo to_ = 0;
};

class FleetService : public v1::Fleet::WithCallbackMethod_Sync<v1::Fleet::Service> {
 public:
  FleetService(Core& core, Gate& gate) : core_(core), gate_(gate) {}

  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_Hello>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    CrashPoint("fleet.hello");
    return AskCore(core_, context, reply, [&](ReplyTo to) { return hone::Hello{to, *request, caller->tenant.id}; });
  }

  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_Sync>(*context);
    if (!caller.ok()) {
      grpc::ServerUnaryReactor* refused = context->DefaultReactor();
      refused->Finish(ToGrpc(caller.status()));
      return refused;
    }
    CrashPoint("fleet.sync");
    return new SyncCall(core_, caller->tenant.id, *request, reply);
  }

  grpc::Status GetWorkload(grpc::ServerContext* context, const v1::GetWorkloadRequest* request,
                           v1::Workload* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_GetWorkload>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    bool found = false;
    core_.Query([&](const Dispatcher& dispatcher) {
      const v1::Workload* workload = dispatcher.FindWorkload(caller->tenant.id, request->hash());
      found = workload != nullptr;
      if (found) *reply = *workload;
    });
    CrashPoint("fleet.workload");
    if (!found) return {grpc::StatusCode::NOT_FOUND, "no open job has a task of that workload"};
    return grpc::Status::OK;
  }

 private:
  Core& core_;
  Gate& gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFleetService(Core& core, Gate& gate) {
  return std::make_unique<FleetService>(core, gate);
}

}  // namespace hone
