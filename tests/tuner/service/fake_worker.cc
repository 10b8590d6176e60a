#include "tests/tuner/service/fake_worker.h"

#include <mutex>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hone {
namespace {

std::mutex tried_mutex;
std::multiset<std::string> tried;
std::string latest_session;

using Token = std::tuple<uint64_t, uint32_t, uint64_t>;
Token TokenOfId(const v1::LeaseId& id) { return {id.trial(), id.attempt(), id.epoch()}; }

}  // namespace

double FakeTime(const std::string& trace) {
  uint64_t hash = 1469598103934665603u;
  for (const char c : trace) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return 100 + static_cast<double>((hash ^ hash >> 31) % 1000);
}

v1::Outcome GoodOutcome(const v1::Lease& lease) {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_OK);
  const double us = FakeTime(lease.trace());
  outcome.mutable_timing()->set_median_us(us);
  for (int i = 0; i < 5; ++i) outcome.mutable_timing()->add_samples_us(static_cast<float>(us));
  outcome.set_build_seconds(0.01);
  outcome.set_measure_seconds(0.02);
  outcome.set_generator("fake");
  if (lease.duel()) outcome.set_duel_ratio(us / FakeTime(lease.champion_trace()));
  return outcome;
}

std::multiset<std::string> FakeWorker::Tried() {
  const std::lock_guard<std::mutex> guard(tried_mutex);
  return tried;
}
std::string FakeWorker::LatestSession() {
  const std::lock_guard<std::mutex> guard(tried_mutex);
  return latest_session;
}
void FakeWorker::Reset() {
  const std::lock_guard<std::mutex> guard(tried_mutex);
  tried.clear();
}

FakeWorker::FakeWorker(std::string name, std::string address, Credentials credentials, Judge judge)
    : name_(std::move(name)),
      address_(std::move(address)),
      credentials_(std::move(credentials)),
      judge_(judge ? std::move(judge) : Judge(GoodOutcome)),
      thread_([this] { Run(); }) {}

FakeWorker::~FakeWorker() {
  stop_ = true;
  thread_.join();
}

void FakeWorker::Run() {
  static std::atomic<int> lives{0};
  const std::string session = absl::StrCat(name_, " life ", ++lives);
  {
    const std::lock_guard<std::mutex> guard(tried_mutex);
    latest_session = session;
  }
  std::map<Token, v1::TrialResult> results;
  uint64_t seq = 0;
  std::unique_ptr<DaemonClient> client;
  bool known = false;
  while (!stop_ && !shut_down_) {
    if (client == nullptr) {
      absl::StatusOr<std::unique_ptr<DaemonClient>> connected =
          DaemonClient::Connect(address_, credentials_, absl::Milliseconds(200));
      if (!connected.ok()) continue;
      client = *std::move(connected);
      known = false;
    }
    if (!known) {
      v1::HelloRequest hello;
      hello.set_worker_name(name_);
      hello.set_name_key("key of " + name_);
      hello.set_session(session);
      hello.set_threads(2);
      hello.mutable_profile()->set_device_class("fake/c2");
      hello.mutable_profile()->set_target("cpu:fake");
      hello.mutable_profile()->set_cores(2);
      v1::HelloReply reply;
      const auto context = client->Context(absl::Seconds(5));
      known = client->fleet().Hello(context.get(), hello, &reply).ok();
      if (!known) absl::SleepFor(absl::Milliseconds(20));
      continue;
    }
    v1::SyncRequest request;
    request.set_session(session);
    request.set_seq(++seq);
    request.set_credits(8);
    for (const auto& [token, result] : results) *request.add_results() = result;
    v1::SyncReply reply;
    const auto context = client->Context(absl::Milliseconds(500));
    const grpc::Status status = client->fleet().Sync(context.get(), request, &reply);
    if (!status.ok()) {
      if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) absl::SleepFor(absl::Milliseconds(20));
      continue;
    }
    if (reply.shut_down()) shut_down_ = true;
    if (reply.unknown_session()) {
      known = false;
      continue;
    }
    for (const v1::LeaseId& id : reply.acked()) done_ += static_cast<int64_t>(results.erase(TokenOfId(id)));
    for (const v1::RefusedReport& refused : reply.refused()) results.erase(TokenOfId(refused.id()));
    for (const v1::Lease& lease : reply.want()) {
      if (results.count(TokenOfId(lease.id())) != 0) continue;
      if (!lease.duel()) {
        const std::lock_guard<std::mutex> guard(tried_mutex);
        tried.insert(lease.trace());
      }
      v1::TrialResult& result = results[TokenOfId(lease.id())];
      *result.mutable_id() = lease.id();
      *result.mutable_outcome() = judge_(lease);
    }
  }
}

}  // namespace hone
