// A small HTTP server beside gRPC for those who watch over the daemon: no caller is asked who it is, and nothing of a
// tenant is told.
//
//   /metrics   Prometheus
//   /healthz   200 while the daemon's threads answer; else 503: start it again
//   /readyz    200 while it can also write its database; else 503 with the reason: send nobody there
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tuner/service/core/core.h"

namespace hone {

class HttpServer {
 public:
  // PORT, on the loopback interface, or HOST:PORT; port 0 is any that is free. InvalidArgument for what is neither,
  // Unavailable when it cannot be listened on. `core` outlives it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Core& core);
  ~HttpServer();

  const std::string& address() const { return address_; }  // with the port that was chosen

 private:
  struct Parts;
  HttpServer();
  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace hone
