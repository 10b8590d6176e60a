// Who may call: with a token configured, every call carries `authorization: Bearer TOKEN`.
#pragma once

#include <string>

#include "grpcpp/grpcpp.h"

namespace hone {

class Gate {
 public:
  explicit Gate(std::string token) : token_(std::move(token)) {}  // empty: everybody who can reach the socket may call
  // UNAUTHENTICATED without a token, PERMISSION_DENIED with a wrong one. The time it takes does not depend on the
  // token.
  grpc::Status Admit(const grpc::ServerContextBase& context) const;

 private:
  std::string token_;
};

}  // namespace hone
