// The tokens a daemon knows, and what each stands for. In a file, one a line:
//
//   # role tenant token
//   client vision 8Jv0...
//   worker vision pLq3...
//   worker * Zt61...          a worker that serves every tenant
//
// or, for a daemon of one tenant, a single line with a token alone: whoever shows it is admin of the local tenant.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/support/sha256.h"
#include "database/store/rows.h"
#include "tuner/service/access/policy.h"

namespace hone {

struct Caller {
  Role role = Role::kViewer;
  Tenant tenant;
  std::string name;  // what limits go by, and messages: "token 3f2a91bc"; empty: the owner, who has none
  std::shared_ptr<const void> stream;  // while the call lives, where its method streams
  std::string serial;                  // of the certificate it showed; empty: it showed none
  std::string token_digest;            // SHA-256 of the token it showed, likewise
};

class TokenTable {
 public:
  // InvalidArgument with the line that is wrong: an unknown role, a tenant's name with other than letters, digits and
  // "._-" or longer than 64, a token that is there twice; also when others than its owner may read the file. NotFound
  // or PermissionDenied when it cannot be read.
  static absl::StatusOr<TokenTable> Read(const std::string& path);

  // nullptr when there is no such token. Every entry is compared to its end.
  const Caller* Find(std::string_view token) const { return FindDigest(Sha256(token)); }
  const Caller* FindDigest(const std::string& digest) const;  // of a token
  bool empty() const { return callers_.empty(); }

 private:
  std::vector<Caller> callers_;  // tokens themselves are not kept
};

bool IsTenantName(std::string_view name);
// Whether a caller of that role may be that tenant's: workers alone may be everybody's, "*".
bool MayBeOf(Role role, std::string_view tenant);

}  // namespace hone
