// A worker says hello: what may be said, whose session and whose name it is, and what is known of its device.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/state/device_facts.h"

namespace hone {
namespace {

constexpr uint32_t kProtocolVersion = 2;        // 2: reports are answered by lease and secret
constexpr size_t kMostProfileBytes = 16 << 10;  // some of each class are kept
// What a worker says of itself is shown to others beside that of all workers, in one message.
constexpr size_t kMostHelloBytes = 24 << 10;

Refusal RefusalOf(absl::StatusCode code, std::string message) { return {static_cast<int>(code), std::move(message)}; }

// What makes a Hello one that can never be taken.
std::optional<Refusal> CheckHello(const v1::HelloRequest& request) {
  if (request.session().empty() || request.session().size() > 64 || request.worker_name().empty() ||
      request.profile().device_class().empty() || request.profile().device_class().size() > kLongestName) {
    return RefusalOf(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("hello: session (1 to 64 bytes), worker_name and profile.device_class (1 to ",
                                  kLongestName, " bytes) are needed"));
  }
  if (const size_t bytes = request.profile().ByteSizeLong(); bytes > kMostProfileBytes) {
    return RefusalOf(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("hello: the device's profile has ", bytes, " bytes, and ", kMostProfileBytes, " are allowed"));
  }
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMostHelloBytes) {
    return RefusalOf(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("hello: it has ", bytes, " bytes, and ", kMostHelloBytes, " are allowed"));
  }
  if (request.worker_name().find('\n') != std::string::npos) {
    return RefusalOf(absl::StatusCode::kInvalidArgument, "hello: worker_name has a line feed");
  }
  const bool states_range = request.has_version() && request.version().max() != 0;
  if (states_range && (request.version().min() > kProtocolVersion || request.version().max() < kProtocolVersion)) {
    return RefusalOf(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("hello: the worker speaks versions ", request.version().min(), " to ", request.version().max(),
                     ", this daemon speaks ", kProtocolVersion, "; install the same release on both"));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> Dispatcher::Impl::TakeName(const Hello& event) {
  const v1::HelloRequest& request = event.request;
  const uint64_t tenant = event.tenant;
  const LostNames::Owner* owner = lost_names.Find(now, tenant, request.worker_name());
  const auto is_its_host = [&](const std::string& name_key) {
    return !request.name_key().empty() && request.name_key() == name_key;
  };
  if (owner != nullptr && owner->principal != event.principal && !is_its_host(owner->name_key)) {
    return RefusalOf(absl::StatusCode::kAlreadyExists,
                     absl::StrCat("hello: ", request.worker_name(), " is the name of another caller's worker that was ",
                                  "lost; for ", (owner->until - now) / kSecond, " s more nobody else is called so"));
  }
  std::vector<uint64_t> over;
  for (auto next = workers_by_name.lower_bound({tenant, request.worker_name(), 0});
       next != workers_by_name.end() && std::get<1>(*next) == request.worker_name() && std::get<0>(*next) == tenant;
       ++next) {
    const uint64_t id = std::get<2>(*next);
    const Worker& other = workers.at(id);
    if (!is_its_host(other.hello.name_key())) {
      return RefusalOf(absl::StatusCode::kAlreadyExists,
                       absl::StrCat("hello: another worker has the name ", request.worker_name(), " and was heard of ",
                                    (now - other.last_seen) / kSecond, " s ago; while it lives the name is its own"));
    }
    if (!other.waiting.has_value()) over.push_back(id);
  }
  for (const uint64_t id : over) LoseWorker(id);
  Forgive(tenant, request.session());
  std::erase_if(lost_workers, [&](const LostWorker& lost) {
    return lost.tenant == tenant && lost.info.name() == request.worker_name();
  });
  return std::nullopt;
}

void Dispatcher::Impl::On(const Hello& event) {
  const v1::HelloRequest& request = event.request;
  if (const std::optional<Refusal> refusal = CheckHello(request)) return ReplyNow(event.to, *refusal);
  Worker* worker = FindSession(event.tenant, request.session());
  if (worker == nullptr && worker_by_session.count(request.session()) != 0) {
    return ReplyNow(event.to, RefusalOf(absl::StatusCode::kPermissionDenied, "hello: the session is another tenant's"));
  }
  if (worker != nullptr && worker->hello.worker_name() != request.worker_name()) {
    return ReplyNow(event.to,
                    RefusalOf(absl::StatusCode::kInvalidArgument,
                              absl::StrCat("hello: the session is that of worker ", worker->hello.worker_name(),
                                           "; another name needs a session of its own")));
  }
  if (worker == nullptr) {
    if (const std::optional<Refusal> refusal = TakeName(event)) return ReplyNow(event.to, *refusal);
    const uint64_t id = next_worker++;
    worker = &workers[id];
    worker->id = id;
    worker->tenant = event.tenant;
    worker_by_session[request.session()] = id;
  }
  workers_by_name.erase({worker->tenant, worker->hello.worker_name(), worker->id});
  workers_by_name.emplace(worker->tenant, request.worker_name(), worker->id);
  touched.workers.insert(worker->id);
  NoteGenerator(*worker, false);  // of an earlier Hello
  worker->reporter =
      std::make_shared<const Reporter>(Reporter{.principal = event.principal, .worker = request.worker_name()});
  worker->hello = request;
  worker->hello.set_threads(std::max(1, request.threads()));
  worker->hello.set_measure_protocol(std::max<uint32_t>(1, request.measure_protocol()));
  worker->kind = worker->MakeKind();
  NoteGenerator(*worker, true);
  worker->last_seen = now;
  worker->silent_until = now + Micros{options.lease_ms} * 1000;
  if (!worker->waiting.has_value()) worker->silent_since = now;
  v1::HelloReply reply;
  reply.set_version(kProtocolVersion);
  reply.set_worker_id(worker->id);
  reply.set_lease_ms(options.lease_ms);
  reply.set_sync_hold_ms(options.sync_hold_ms);
  if (worker->role() == WorkerRole::kBuild) return ReplyNow(event.to, reply);  // nothing is measured on its device
  v1::DeviceProfile& profile = profiles[worker->hello.profile().device_class()];
  v1::DeviceProbe probe;
  probe.set_tenant(worker->tenant);
  probe.set_worker(ToText(*worker->reporter));
  probe.set_threads(worker->hello.threads());
  *probe.mutable_profile() = worker->hello.profile();
  profile = AfterProbe(profile, std::move(probe));
  CommitThen({PutDeviceClass{{profile.device_class(), profile}}},
             [this, to = event.to, reply] { ReplyNow(to, reply); });
}

Worker* Dispatcher::Impl::FindSession(uint64_t tenant, const std::string& session) {
  const auto found = worker_by_session.find(session);
  if (found == worker_by_session.end()) return nullptr;
  Worker& worker = workers.at(found->second);
  return worker.tenant == tenant ? &worker : nullptr;
}

}  // namespace hone
