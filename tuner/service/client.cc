#include "tuner/service/client.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/address.h"

namespace hone {
namespace {

constexpr int kLongestMessage = 256 << 20;  // a plan or a page of records

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonClient>> DaemonClient::Connect(const std::string& address,
                                                                    const std::string& token, absl::Duration timeout) {
  HONE_RETURN_IF_ERROR(CheckAddress(address));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLongestMessage);
  arguments.SetMaxSendMessageSize(kLongestMessage);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a daemon on this network, not the web
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout))) {
    return absl::UnavailableError(absl::StrCat("no daemon answers at ", address, " within ",
                                               absl::FormatDuration(timeout), "; is `honed` running there?"));
  }
  std::unique_ptr<DaemonClient> client(new DaemonClient());
  client->address_ = address;
  client->token_ = token;
  client->tune_ = v1::Tune::NewStub(channel);
  client->fleet_ = v1::Fleet::NewStub(channel);
  return client;
}

std::unique_ptr<grpc::ClientContext> DaemonClient::Context(absl::Duration timeout) const {
  auto context = std::make_unique<grpc::ClientContext>();
  if (!token_.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", token_));
  if (timeout != absl::InfiniteDuration()) context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  return context;
}

absl::StatusOr<v1::JobSnapshot> DaemonClient::Watch(uint64_t job, absl::Duration interval, absl::Duration patience,
                                                    const std::function<bool(const v1::JobSnapshot&)>& seen) {
  v1::JobSnapshot last;
  absl::Time heard = absl::Now();
  for (;;) {
    const std::unique_ptr<grpc::ClientContext> context = Context(absl::InfiniteDuration());
    v1::WatchRequest request;
    request.set_job_id(job);
    request.set_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(interval)));
    const auto reader = tune_->Watch(context.get(), request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
      heard = absl::Now();
      last = event.snapshot();
      if (seen(last)) continue;
      context->TryCancel();
      while (reader->Read(&event)) {}
      reader->Finish();
      return last;
    }
    const grpc::Status status = reader->Finish();
    const bool ended =
        last.state() != v1::JOB_STATE_UNSPECIFIED && last.state() != v1::JOB_WAITING && last.state() != v1::JOB_RUNNING;
    if (status.ok() && ended) return last;
    const bool away = status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                      status.error_code() == grpc::StatusCode::CANCELLED;
    if (!away) return FromGrpc(status);
    if (absl::Now() - heard > patience) {
      return absl::UnavailableError(absl::StrCat("the daemon at ", address_, " has not answered for ",
                                                 absl::FormatDuration(patience), ": ", status.error_message()));
    }
    absl::SleepFor(absl::Milliseconds(200));
  }
}

}  // namespace hone
