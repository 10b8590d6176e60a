#include "proto/rpc/channel.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "grpc/support/log.h"
#include "proto/rpc/address.h"

namespace hone {
namespace {

// What gRPC itself says of a connection that fails is not for users: they get one message, ours.
void QuietGrpc() {
  static const bool once = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Credentials& credentials) {
  QuietGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLongestMessage);
  arguments.SetMaxSendMessageSize(kLongestMessage);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // what an attempt may take, its handshake included
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a daemon on this network, not the web
  const bool local = IsUnixAddress(address);
  return grpc::CreateCustomChannel(
      address, local ? grpc::InsecureChannelCredentials() : MakeChannelCredentials(credentials.tls), arguments);
}

std::unique_ptr<grpc::ClientContext> MakeContext(const Credentials& credentials, absl::Duration timeout) {
  HONE_CHECK(timeout < absl::Hours(24)) << "a call without an end";
  auto context = std::make_unique<grpc::ClientContext>();
  if (!credentials.token.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", credentials.token));
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  return context;
}

}  // namespace hone
