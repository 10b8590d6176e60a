#include "tests/bench/load/look_ups.h"

#include <algorithm>
#include <cstdio>

#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.grpc.pb.h"
#include "tests/bench/load/loaded_daemon.h"

namespace hone {
namespace {

constexpr int kKernels = 20;  // of a model
constexpr int kCallers = 8;

}  // namespace

LookUps::LookUps(const LoadBenchOptions& options) : options_(options) {
  for (int i = 0; i < options.jobs; ++i) workloads_.push_back(WorkloadOf(i).hash());
  began_ = absl::Now();
  for (int i = 0; i < kCallers; ++i) callers_.emplace_back([this, i] { Call(i); });
}

LookUps::~LookUps() {
  stop_ = true;
  for (std::thread& caller : callers_) caller.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began_);
  std::printf("look-ups %7.0f a second of %d wanted, %d a call, %.0f %% found; call: %s\n",
              static_cast<double>(answered_) / seconds, options_.look_ups, kKernels,
              100.0 * static_cast<double>(found_) / static_cast<double>(std::max<int64_t>(1, answered_)),
              calls_.Text().c_str());
}

void LookUps::Call(int caller) {
  const auto stub = v1::Tune::NewStub(grpc::CreateChannel(options_.load.address, grpc::InsecureChannelCredentials()));
  Random random(static_cast<uint64_t>(caller));
  for (int64_t number = caller; !stop_; number += kCallers) {
    const absl::Time due = began_ + absl::Seconds(1) * number * kKernels / options_.look_ups;
    absl::SleepFor(due - absl::Now());
    v1::BestRecordsRequest request;
    for (int i = 0; i < kKernels; ++i) {
      v1::BestKey& key = *request.add_keys();
      key.set_workload_hash(workloads_[random.Below(workloads_.size())]);
      key.set_device_class(kSimulatedDevice);
      key.set_threads(2);
      key.set_numeric(v1::NUMERIC_DEFAULT);
    }
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    v1::BestRecordsReply reply;
    const grpc::Status status = stub->BestRecords(&context, request, &reply);
    HONE_CHECK(status.ok()) << status.error_message();
    calls_.Add(absl::Now() - due);
    answered_ += reply.answers_size();
    for (const v1::BestAnswer& answer : reply.answers()) found_ += answer.has_record();
  }
}

}  // namespace hone
