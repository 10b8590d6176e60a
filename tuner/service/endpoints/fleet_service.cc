#include "tuner/service/endpoints/fleet_service.h"

#include <atomic>
#include <string_view>

#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/status.h"
#include "tuner/dispatch/rules/outcome_check.h"
#include "tuner/service/access/auth.h"
#include "tuner/service/access/silence_limit.h"
#include "tuner/service/core/core.h"
#include "tuner/service/endpoints/build_deposits.h"
#include "tuner/service/endpoints/waiting.h"

namespace hone {
namespace {

// A call that is held until the dispatcher answers the event that `make_event` makes of a ReplyTo. Ends once: by that
// answer, or because the caller has gone.
template <class Answer>
class HeldCall : public grpc::ServerUnaryReactor {
 public:
  template <class MakeEvent>
  HeldCall(Core& core, Answer* reply, MakeEvent make_event) : core_(core), self_(this) {
    // The core may still know of this call after it is over: what it knows is `state`, which outlives the call.
    const std::shared_ptr<State> state = state_;
    state->call = this;
    state->reply = reply;
    to_ = core_.Expect([state](Message message) {
      if (state->over.exchange(true)) return;
      if (Answer* answer = std::get_if<Answer>(&message)) {
        *state->reply = std::move(*answer);
        state->call->Finish(grpc::Status::OK);
      } else if (const Refusal* refusal = std::get_if<Refusal>(&message)) {
        state->call->Finish({static_cast<grpc::StatusCode>(refusal->code), refusal->message});
      } else {
        state->call->Finish({grpc::StatusCode::INTERNAL, "an answer to another question"});
      }
    });
    core_.Post(make_event(to_));
  }

  void OnCancel() override {
    core_.Post(CallGone{to_});
    if (!state_->over.exchange(true)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete self_; }

 private:
  struct State {
    std::atomic<bool> over{false};
    HeldCall* call = nullptr;
    Answer* reply = nullptr;
  };
  Core& core_;
  HeldCall* self_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  ReplyTo to_ = 0;
};

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* refused = context->DefaultReactor();
  refused->Finish(ToGrpc(status));
  return refused;
}

class FleetService
    : public v1::Fleet::WithCallbackMethod_Sync<v1::Fleet::WithCallbackMethod_Build<v1::Fleet::Service>> {
 public:
  FleetService(Core& core, Gate& gate, const CallLimits& limits)
      : core_(core), gate_(gate), silence_limit_(limits.silence) {}

  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_Hello>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    CrashPoint("fleet.hello");
    return AskCore(core_, context, reply, [&](ReplyTo to) {
      return hone::Hello{to, *request, caller->tenant.id, caller->name};
    });
  }

  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_Sync>(*context);
    if (!caller.ok()) return Refuse(context, caller.status());
    CrashPoint("fleet.sync");
    return new HeldCall(core_, reply, [&](ReplyTo to) {
      hone::Sync sync{to, *request, Core::Utc(), caller->tenant.id};
      for (v1::TrialResult& result : *sync.request.mutable_results()) DropOtherObject(*result.mutable_outcome());
      return sync;
    });
  }

  grpc::ServerUnaryReactor* Build(grpc::CallbackServerContext* context, const v1::BuildCall* request,
                                  v1::BuildOutcome* reply) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_Build>(*context);
    if (!caller.ok()) return Refuse(context, caller.status());
    return new HeldCall(core_, reply, [&](ReplyTo to) { return AskBuild{to, *request, caller->tenant.id}; });
  }

  grpc::Status PutBuilt(grpc::ServerContext* context, grpc::ServerReader<v1::BuiltChunk>* reader,
                        v1::PutBuiltReply*) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_PutBuilt>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(ReadDeposit(*caller, *context, *reader));
  }

  grpc::Status TakeBuilt(grpc::ServerContext* context, const v1::TakeBuiltRequest* request,
                         grpc::ServerWriter<v1::BuiltChunk>* writer) override {
    const absl::StatusOr<Caller> caller = gate_.Admit<v1::Fleet::WithAsyncMethod_TakeBuilt>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto deposit = deposits_.Take(caller->tenant.id, request->digest());
    if (!deposit.ok()) return ToGrpc(deposit.status());
    std::string_view left = (*deposit)->bytes();
    v1::BuiltChunk chunk;
    chunk.set_digest(request->digest());
    chunk.set_total_bytes(left.size());
    for (; !left.empty(); left.remove_prefix(chunk.data().size()), chunk.clear_digest(), chunk.clear_total_bytes()) {
      chunk.set_data(std::string(left.substr(0, kChunkBytes)));
      if (const absl::Status again = gate_.CheckAgain(*caller); !again.ok()) return ToGrpc(again);
      const bool sent = silence_limit_.Bound(*context, "take built", [&] { return writer->Write(chunk); });
      if (!sent) return {grpc::StatusCode::CANCELLED, "the caller has gone"};
    }
    return grpc::Status::OK;
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
  absl::Status ReadDeposit(const Caller& caller, grpc::ServerContext& context,
                           grpc::ServerReader<v1::BuiltChunk>& reader) {
    v1::BuiltChunk chunk;
    const auto read = [&] { return silence_limit_.Bound(context, "put built", [&] { return reader.Read(&chunk); }); };
    if (!read()) return absl::InvalidArgumentError("put built: the call has no chunk");
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<BuildDeposits::Deposit> deposit,
                          deposits_.Open(caller.tenant.id, chunk.total_bytes()));
    const std::string digest = chunk.digest();
    do {
      HONE_RETURN_IF_ERROR(gate_.CheckAgain(caller));
      HONE_RETURN_IF_ERROR(deposit->Append(chunk.data()));
    } while (read());
    return deposits_.Put(digest, std::move(deposit));
  }

  Core& core_;
  Gate& gate_;
  BuildDeposits deposits_;
  SilenceLimit silence_limit_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFleetService(Core& core, Gate& gate, const CallLimits& limits) {
  return std::make_unique<FleetService>(core, gate, limits);
}

}  // namespace hone
