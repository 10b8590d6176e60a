// The dispatcher, which is told things by workers and clients: any messages in any order end no process, and after each
// every invariant holds. Requests are any bytes that parse; some are let past the door, with the session, the lease or
// the hash that is right, as a hostile client would.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/support/sha256.h"
#include "tests/fuzz/memory_limit.h"
#include "tests/tuner/dispatch/desk.h"

namespace {

constexpr int kMostEvents = 32;  // the invariants are checked after each, in the time of all that is there
constexpr char kUtc[] = "2026-01-01T00:00:00Z";

class Caller {
 public:
  // There is a worker, with candidates of a job.
  explicit Caller(FuzzedDataProvider& bytes) : bytes_(bytes) {
    desk_.Hello("w");
    desk_.Submit({"conv2d_1", "dense_2"}, 8);
    desk_.Take("w", 2);
  }

  void Call() {
    const hone::ReplyTo to = desk_.NewCall();
    switch (bytes_.ConsumeIntegralInRange<int>(0, 9)) {
      case 0: return desk_.Do(hone::Submit{to, Request(to), kUtc});
      case 1: return desk_.Do(hone::Hello{to, Greeting(), tenant()});
      case 2: return desk_.Do(hone::Sync{to, Report(), kUtc, tenant()});
      case 3: return desk_.Do(hone::AskBuild{to, Any<hone::v1::BuildCall>(), tenant()});
      case 4: return desk_.Do(hone::StopJob{to, bytes_.ConsumeIntegralInRange<uint64_t>(0, 4), tenant()});
      case 5: return desk_.Do(hone::PauseJob{to, bytes_.ConsumeIntegralInRange<uint64_t>(0, 4), bytes_.ConsumeBool()});
      case 6: return desk_.Do(hone::DrainWorkers{to, bytes_.ConsumeRandomLengthString(8), tenant()});
      case 7: return desk_.Do(hone::SearchDone{Proposal()});
      case 8: return desk_.Wait(bytes_.ConsumeIntegral<uint32_t>());
      default: return desk_.Restart();
    }
  }

 private:
  template <class Message>
  Message Any() {
    Message message;
    message.ParsePartialFromString(bytes_.ConsumeRandomLengthString(4096));
    return message;
  }
  uint64_t tenant() { return bytes_.ConsumeBool() ? hone::kLocalTenant : hone::kAllTenants; }

  hone::v1::SubmitRequest Request(hone::ReplyTo to) {
    auto request = Any<hone::v1::SubmitRequest>();
    if (bytes_.ConsumeBool()) return request;
    if (request.request_id().empty()) request.set_request_id(std::to_string(to));
    if (request.tasks().empty()) request.add_tasks();
    for (hone::v1::TaskSpec& task : *request.mutable_tasks()) {
      if (task.workload().text().empty()) task.mutable_workload()->set_text("text of conv2d_1");
      if (task.default_trace().empty()) task.set_default_trace(bytes_.ConsumeRandomLengthString(4));
    }
    request.set_threads(bytes_.ConsumeIntegralInRange<int>(0, 2));
    for (hone::v1::TaskSpec& task : *request.mutable_tasks()) {
      task.mutable_workload()->set_hash(hone::Sha256(task.workload().text()));
    }
    if (!hone::v1::NumericLevel_IsValid(request.numeric())) request.set_numeric(hone::v1::NUMERIC_DEFAULT);
    return request;
  }
  hone::v1::HelloRequest Greeting() {
    auto request = Any<hone::v1::HelloRequest>();
    if (bytes_.ConsumeBool()) return request;
    request.clear_version();
    if (request.session().empty()) request.set_session("w");
    if (request.worker_name().empty()) request.set_worker_name("w");
    if (request.name_key().empty()) request.set_name_key("its host's");
    request.set_generator(bytes_.ConsumeBool() ? "build 1" : "build 2");
    if (request.profile().device_class().empty()) request.mutable_profile()->set_device_class("fake/c2");
    return request;
  }
  // Of leases that were given out: what is held, results of any kind and some times, what goes back.
  hone::v1::SyncRequest Report() {
    auto request = Any<hone::v1::SyncRequest>();
    if (bytes_.ConsumeBool()) return request;
    request.set_session("w");
    request.set_seq(++seq_);
    request.set_credits(bytes_.ConsumeIntegralInRange<uint32_t>(0, 4));
    for (int i = bytes_.ConsumeIntegralInRange<int>(0, 3); i > 0; --i) {
      const hone::v1::Lease lease = AnyLease();
      switch (bytes_.ConsumeIntegralInRange<int>(0, 3)) {
        case 0: *request.add_given_back() = lease.id(); break;
        case 1: {
          hone::v1::LeaseState& held = *request.add_held();
          *held.mutable_id() = lease.id();
          held.set_phase(static_cast<hone::v1::Phase>(bytes_.ConsumeIntegralInRange<int>(0, 4)));
          break;
        }
        default: {
          hone::v1::TrialResult& result = *request.add_results();
          *result.mutable_id() = lease.id();
          *result.mutable_outcome() = AnyOutcome(lease);
        }
      }
    }
    return request;
  }
  hone::v1::Lease AnyLease() {
    std::vector<hone::v1::Lease> leases;
    for (const auto& [to, message] : desk_.replies) {
      const auto* reply = std::get_if<hone::v1::SyncReply>(&message);
      if (reply != nullptr) leases.insert(leases.end(), reply->want().begin(), reply->want().end());
    }
    if (leases.empty()) return {};
    return leases[bytes_.ConsumeIntegralInRange<size_t>(0, leases.size() - 1)];
  }
  hone::v1::Outcome AnyOutcome(const hone::v1::Lease& lease) {
    auto outcome = Any<hone::v1::Outcome>();
    if (bytes_.ConsumeBool()) return outcome;
    outcome = hone::Desk::Good(bytes_.ConsumeIntegralInRange<int>(1, 100));
    outcome.set_kind(static_cast<hone::v1::OutcomeKind>(bytes_.ConsumeIntegralInRange<int>(0, 10)));
    outcome.set_generator(bytes_.ConsumeBool() ? "build 1" : "build 2");
    outcome.set_object_digest(bytes_.ConsumeBool() ? lease.measured_digest() : bytes_.ConsumeRandomLengthString(2));
    outcome.set_duel_ratio(bytes_.ConsumeIntegralInRange<int>(0, 20) * 0.1);
    return outcome;
  }
  hone::v1::SearchReply Proposal() {
    auto reply = Any<hone::v1::SearchReply>();
    if (!desk_.searches.empty()) reply.set_request_id(desk_.searches.back().request_id());
    if (reply.candidates().empty()) reply.add_candidates()->set_trace(bytes_.ConsumeRandomLengthString(4));
    return reply;
  }

  FuzzedDataProvider& bytes_;
  hone::Desk desk_{hone::DispatchOptions{}};
  uint64_t seq_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  FuzzedDataProvider bytes(data, size);
  Caller caller(bytes);
  for (int event = 0; event < kMostEvents && bytes.remaining_bytes() > 0; ++event) caller.Call();
  return 0;
}
