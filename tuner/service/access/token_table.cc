#include "tuner/service/access/token_table.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/token.h"

namespace hone {
namespace {

constexpr size_t kLongestTenant = 64;

bool SameDigest(std::string_view a, std::string_view b) {
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

bool IsTenantName(std::string_view name) {
  const auto fits = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kLongestTenant && std::all_of(name.begin(), name.end(), fits);
}

bool MayBeOf(Role role, std::string_view tenant) {
  return IsTenantName(tenant) || (tenant == "*" && role == Role::kWorker);
}

absl::StatusOr<TokenTable> TokenTable::Read(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  TokenTable table;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    const auto wrong = [&](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", what));
    };
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    Caller caller{Role::kAdmin, TenantOf("local"), "", nullptr, "", Sha256(words.back())};
    if (words.size() == 3) {
      const std::optional<Role> role = RoleFromName(words[0]);
      if (!role.has_value()) {
        return wrong(absl::StrCat("\"", words[0], "\" is no role; there are ", absl::StrJoin(kRoleNames, ", ")));
      }
      if (!MayBeOf(*role, words[1])) {
        return wrong(absl::StrCat("\"", words[1], "\" is no tenant's name: 1 to ", kLongestTenant,
                                  " letters, digits and ._-, or for a worker that serves every tenant *"));
      }
      caller.role = *role;
      caller.tenant = TenantOf(words[1]);
    } else if (words.size() != 1) {
      return wrong("a line is `role tenant token`, or a token alone");
    }
    if (!IsToken(words.back())) return wrong("a token is made of printable ASCII without spaces");
    if (table.Find(words.back()) != nullptr) return wrong("the token is there twice");
    caller.name = absl::StrCat("token ", ToHex(caller.token_digest).substr(0, 8));
    table.callers_.push_back(std::move(caller));
  }
  if (table.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": the token file is empty"));
  return table;
}

// Digests have one length and a caller cannot steer them, so that comparing them to the end tells nothing of a token.
const Caller* TokenTable::FindDigest(const std::string& digest) const {
  const Caller* found = nullptr;
  for (const Caller& caller : callers_) {
    if (SameDigest(caller.token_digest, digest)) found = &caller;
  }
  return found;
}

}  // namespace hone
