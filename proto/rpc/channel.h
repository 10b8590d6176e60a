// The way to a daemon: a channel, and what every call on it carries.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls.h"

namespace hone {

inline constexpr int kLongestMessage = 256 << 20;  // either way: a plan or a page of records

// What a caller shows.
struct Credentials {
  std::string token;  // empty: none
  TlsFiles tls;       // of a HOST:PORT alone: a Unix socket is its owner's
};

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Credentials& credentials);

// With the token, and a deadline: every call has one.
std::unique_ptr<grpc::ClientContext> MakeContext(const Credentials& credentials, absl::Duration timeout);

}  // namespace hone
