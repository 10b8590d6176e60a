#include "tuner/service/auth.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {

void Gate::SetTokens(TokenTable tokens) {
  auto table = std::make_shared<const TokenTable>(std::move(tokens));
  const std::lock_guard<std::mutex> guard(mutex_);
  tokens_ = std::move(table);
}

absl::StatusOr<Caller> Gate::WhoCalls(const grpc::ServerContextBase& context) const {
  constexpr std::string_view kScheme = "Bearer ";
  std::shared_ptr<const TokenTable> tokens;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    tokens = tokens_;
  }
  if (tokens->empty()) return Caller{Role::kAdmin, TenantOf("local")};
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) {
    return absl::UnauthenticatedError("this daemon wants a token: give it with --token-file FILE");
  }
  const std::string_view value(found->second.data(), found->second.size());
  const Caller* caller =
      value.substr(0, kScheme.size()) == kScheme ? tokens->Find(value.substr(kScheme.size())) : nullptr;
  if (caller == nullptr) {
    return absl::PermissionDeniedError("the token is none of the daemon's: check --token-file");
  }
  return *caller;
}

absl::StatusOr<Caller> Gate::Admit(const grpc::ServerContextBase& context, const Roles& allowed) const {
  HONE_ASSIGN_OR_RETURN(Caller caller, WhoCalls(context));
  if (allowed.Has(caller.role)) return caller;
  return absl::PermissionDeniedError(
      absl::StrCat("a caller of role ", RoleName(caller.role), " may not do this; show the token of another role"));
}

}  // namespace hone
