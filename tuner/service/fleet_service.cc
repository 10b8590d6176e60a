#include "tuner/service/fleet_service.h"

#include <atomic>

#include "proto/rpc/status.h"
#include "tuner/service/auth.h"
#include "tuner/service/core.h"
#include "tuner/service/waiting.h"

namespace hone {
namespace {

// One held Sync. Ends once: by the dispatcher's answer, or because the caller has gone.
class SyncCall : public grpc::ServerUnaryReactor {
 public:
  SyncCall(Core& core, const v1::SyncRequest& request, v1::SyncReply* reply) : core_(core), self_(this) {
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
    core_.Post(Sync{to_, request, Core::Utc()});
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
  FleetService(Core& core, const Gate& gate) : core_(core), gate_(gate) {}

  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override {
    if (const grpc::Status admitted = gate_.Admit(*context); !admitted.ok()) return admitted;
    return AskCore(core_, context, reply, [&](ReplyTo to) { return hone::Hello{to, *request}; });
  }

  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    if (const grpc::Status admitted = gate_.Admit(*context); !admitted.ok()) {
      grpc::ServerUnaryReactor* refused = context->DefaultReactor();
      refused->Finish(admitted);
      return refused;
    }
    return new SyncCall(core_, *request, reply);
  }

  grpc::Status GetWorkload(grpc::ServerContext* context, const v1::GetWorkloadRequest* request,
                           v1::Workload* reply) override {
    if (const grpc::Status admitted = gate_.Admit(*context); !admitted.ok()) return admitted;
    absl::StatusOr<v1::Workload> workload = core_.store().GetWorkload(request->hash());
    if (!workload.ok()) return ToGrpc(workload.status());
    *reply = *std::move(workload);
    return grpc::Status::OK;
  }

 private:
  Core& core_;
  const Gate& gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFleetService(Core& core, const Gate& gate) {
  return std::make_unique<FleetService>(core, gate);
}

}  // namespace hone
