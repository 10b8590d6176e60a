// The way to a daemon: a channel, and what every call on it carries.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls.h"

namespace hone {

// Of one message, either way. What may be larger goes in several: records as a stream of chunks, a job that is
// submitted as a stream of pieces, jobs page by page, results over several Syncs, what was built as a stream of chunks.
inline constexpr int kLongestMessage = 4 << 20;
inline constexpr size_t kChunkBytes = 1 << 20;

// What a caller shows.
struct Credentials {
  std::string token;  // empty: none
  TlsFiles tls;       // of a HOST:PORT alone: a Unix socket is its owner's
};

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Credentials& credentials);

// With the token, and a deadline: every call has one.
std::unique_ptr<grpc::ClientContext> MakeContext(const Credentials& credentials, absl::Duration timeout);

}  // namespace hone
