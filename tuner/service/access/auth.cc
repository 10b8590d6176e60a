#include "tuner/service/access/auth.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "proto/rpc/address.h"
#include "proto/rpc/tls.h"
#include "tuner/service/core/clock.h"

namespace hone {
namespace {

absl::Status IsRevoked(const std::string& certificate) {
  return absl::PermissionDeniedError(absl::StrCat(certificate, " was revoked; ask for another one (hone ca issue)"));
}

absl::Status UnknownToken() {
  return absl::PermissionDeniedError("the token is none of the daemon's: check --token-file");
}

// Whom the authority issued a certificate to. The handshake has verified it.
absl::StatusOr<Caller> HolderOf(const std::string& pem, const RevocationList& revoked) {
  HONE_ASSIGN_OR_RETURN(const CertificateSubject subject, SubjectOf(pem));
  if (revoked.Has(subject.serial)) return IsRevoked(absl::StrCat("the certificate of ", subject.name));
  const std::optional<Role> role = RoleFromName(subject.role);
  if (role.has_value() && MayBeOf(*role, subject.tenant)) {
    const std::string name = absl::StrCat("certificate of ", subject.name, ", ", subject.role, " of ", subject.tenant);
    return Caller{*role, TenantOf(subject.tenant), name, nullptr, subject.serial, ""};
  }
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate of ", subject.name, " names no role and tenant (OU \"", subject.role, "\", O \"",
                   subject.tenant, "\"): show a token, or a certificate that hone ca issue --role made"));
}

// A call may last as long as its deadline says, and a handler may wait for its caller as long.
absl::Status CheckDeadline(const grpc::ServerContextBase& context, int longest_seconds) {
  constexpr std::chrono::seconds kRounding(60);  // of the deadline on its way here
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a call has to have a deadline, at most ", longest_seconds, " s away for this one"));
  }
  const auto left = deadline - std::chrono::system_clock::now();
  if (left <= std::chrono::seconds(longest_seconds) + kRounding) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the call's deadline is ", std::chrono::duration_cast<std::chrono::seconds>(left).count(),
                   " s away, and this call may have ", longest_seconds, "; make it again with a nearer one"));
}

}  // namespace

void Gate::SetTokens(TokenTable tokens) {
  auto table = std::make_shared<const TokenTable>(std::move(tokens));
  const std::lock_guard<std::mutex> guard(mutex_);
  tokens_ = std::move(table);
}

void Gate::SetRevoked(RevocationList revoked) {
  auto list = std::make_shared<const RevocationList>(std::move(revoked));
  const std::lock_guard<std::mutex> guard(mutex_);
  revoked_ = std::move(list);
}

absl::StatusOr<Caller> Gate::WhoCalls(const grpc::ServerContextBase& context) const {
  const auto [tokens, revoked] = Known();
  const auto shown = context.client_metadata().find("authorization");
  if (!tokens->empty() && shown != context.client_metadata().end()) {
    constexpr std::string_view kScheme = "Bearer ";
    const std::string_view value(shown->second.data(), shown->second.size());
    const Caller* caller =
        value.substr(0, kScheme.size()) == kScheme ? tokens->Find(value.substr(kScheme.size())) : nullptr;
    if (caller != nullptr) return *caller;
    return UnknownToken();
  }
  if (IsUnixAddress(context.peer())) return Caller{Role::kAdmin, TenantOf("local"), "", nullptr, "", ""};
  const std::vector<grpc::string_ref> certificates =
      context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (certificates.size() == 1) return HolderOf(std::string(certificates[0].data(), certificates[0].size()), *revoked);
  return absl::UnauthenticatedError("this daemon wants a token: give it with --token-file FILE");
}

absl::StatusOr<Caller> Gate::Admit(const grpc::ServerContextBase& context, const MethodPolicy& policy) {
  HONE_ASSIGN_OR_RETURN(Caller caller, WhoCalls(context));
  if (!caller.name.empty()) HONE_RETURN_IF_ERROR(meter_.Charge(caller.name, caller.tenant.name, SteadyMicros()));
  if (!policy.roles.Has(caller.role)) {
    return absl::PermissionDeniedError(absl::StrCat("a caller of role ", RoleName(caller.role),
                                                    " may not do this; show the token or certificate of another role"));
  }
  HONE_RETURN_IF_ERROR(CheckDeadline(context, policy.longest_seconds));
  if (policy.streams) {
    HONE_ASSIGN_OR_RETURN(caller.stream, meter_.OpenStream(caller.name, caller.tenant.name, policy.holds_thread));
  }
  return caller;
}

absl::Status Gate::CheckAgain(const Caller& caller) const {
  const auto [tokens, revoked] = Known();
  if (!caller.token_digest.empty() && tokens->FindDigest(caller.token_digest) == nullptr) return UnknownToken();
  return revoked->Has(caller.serial) ? IsRevoked("the " + caller.name) : absl::OkStatus();
}

Gate::Lists Gate::Known() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return {tokens_, revoked_};
}

}  // namespace hone
