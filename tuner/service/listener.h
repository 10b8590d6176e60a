// A port of the network: takes connections and hands them to gRPC as long as there are descriptors for them.
//
// The listener of gRPC 1.51 is not used for that: the first connection that it cannot take for want of a descriptor
// ends it for good (CVE-2023-4785). This one closes a connection beyond the limit at once, and goes on.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"

namespace hone {

class Listener {
 public:
  // Listens at every address of HOST:PORT; port 0 is any that is free. Unavailable when one is in use or none is of
  // this machine.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& address);
  ~Listener();  // stops

  const std::string& address() const { return address_; }  // with the port that was chosen
  // Starts to hand over connections, at most that many at a time beside the descriptors in use now, and never the last
  // ones that the process may have.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor, int max_connections);
  void Stop();

 private:
  Listener() = default;
  void Run();
  void Take(int listener);

  std::string address_;
  std::vector<int> listeners_;
  int wake_ = -1;  // an eventfd: written to stop
  int below_ = 0;  // descriptors of connections are below that number
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread thread_;
};

}  // namespace hone
