// A port of the network: takes connections and hands them to gRPC as long as there are descriptors for them.
//
// The listener of gRPC 1.51 is not used for that: the first connection that it cannot take for want of a descriptor
// ends it for good (CVE-2023-4785). This one closes a connection beyond the limit at once, and goes on.
//
// Whose tenant's a connection is shows in the TLS handshake, or in its first call: before that there is no limit by
// tenant, and none by role. Until then a connection costs a descriptor, for as long as a handshake may take, and the
// peer's address alone says who has how many.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "tuner/service/access/peer_connections.h"

namespace hone {

struct ConnectionLimits {
  int all = 10'000;
  int of_peer = 2'500;  // of one (PeerConnections); never more than half of those that there can be
};

class Listener {
 public:
  // Listens at every address of HOST:PORT; port 0 is any that is free. Unavailable when one is in use or none is of
  // this machine.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& address);
  ~Listener();  // stops

  const std::string& address() const { return address_; }  // with the port that was chosen
  // Starts to hand over connections, at most that many at a time beside the descriptors in use now, and never the last
  // ones that the process may have.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor, const ConnectionLimits& limits);
  void Stop();

 private:
  Listener() = default;
  void Run();
  void Take(int listener);
  const char* WhyRefused(int fd, const sockaddr_storage& peer);  // nullptr: it is taken, and counted

  std::string address_;
  std::vector<int> listeners_;
  int wake_ = -1;  // an eventfd: written to stop
  // The kernel gives out the lowest free descriptor: those of connections are above the eventfd's.
  ConnectionLimits limits_;
  PeerConnections peers_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread thread_;
};

}  // namespace hone
