// Who calls, and whether that role may call that method. A handler gets its Caller, and with it the tenant whose data
// it works on, from the gate alone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/revocation.h"
#include "tuner/service/access/call_meter.h"
#include "tuner/service/access/policy.h"
#include "tuner/service/access/token_table.h"

namespace hone {

class Gate {
 public:
  Gate(TokenTable tokens, const CallLimits& limits)
      : meter_(limits), tokens_(std::make_shared<const TokenTable>(std::move(tokens))) {}

  // The caller of a method. The first that is there says who it is:
  //   `authorization: Bearer TOKEN`, where there are tokens; an unknown one is PermissionDenied, whatever else is shown
  //   the Unix socket it came through: whoever may open that is the owner, admin of the local tenant
  //   the certificate it showed in the TLS handshake: tenant and role are its O and OU; a revoked one is
  //   PermissionDenied
  // Unauthenticated when none is; PermissionDenied for a role that may not call the method; InvalidArgument for a call
  // without a deadline, or with one beyond the method's; ResourceExhausted for a caller beyond its limits or its
  // tenant's, which the owner does not have, and for a stream beyond those that all callers may have together. The time
  // it takes does not depend on the tokens it is compared with.
  template <template <class> class Method>
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context) {
    return Admit(context, PolicyOf<Method>::kPolicy);
  }

  // Of a caller that was admitted and whose call goes on, before each message of a stream: PermissionDenied when its
  // certificate has been revoked meanwhile, or its token has left the file.
  absl::Status CheckAgain(const Caller& caller) const;

  // From the next call, and the next message of a stream, on; on connections that are open too.
  void SetTokens(TokenTable tokens);
  void SetRevoked(RevocationList revoked);

 private:
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context, const MethodPolicy& policy);
  absl::StatusOr<Caller> WhoCalls(const grpc::ServerContextBase& context) const;
  struct Lists {
    std::shared_ptr<const TokenTable> tokens;
    std::shared_ptr<const RevocationList> revoked;
  };
  Lists Known() const;  // as they are now

  CallMeter meter_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TokenTable> tokens_;
  std::shared_ptr<const RevocationList> revoked_ = std::make_shared<const RevocationList>();
};

}  // namespace hone
