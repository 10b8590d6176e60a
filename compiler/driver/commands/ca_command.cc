// `hone ca`: a fleet's own certificate authority, and certificates for its daemon, its workers and those who tune.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/models/hints.h"
#include "compiler/support/option_checks.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/authority.h"
#include "proto/rpc/revocation.h"
#include "tuner/service/access/policy.h"
#include "tuner/service/access/token_table.h"

namespace hone {
namespace {

struct CaOptions {
  std::string folder;
  std::string role;
  std::string tenant = "local";
  std::vector<std::string> names;
  double authority_days = 3650, days = 365;
};

std::string Day(absl::Time time) { return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone()); }

absl::Status Init(const CaOptions& options) {
  const absl::Time until = absl::Now() + absl::Hours(24 * options.authority_days);
  HONE_RETURN_IF_ERROR(MakeAuthority(options.folder, until));
  std::printf("%s/ca.crt is the authority's certificate until %s: every program is given it (--tls-ca)\n",
              options.folder.c_str(), Day(until).c_str());
  std::printf("%s/ca.key is its key: whoever has it can be anybody; it stays here\n", options.folder.c_str());
  return absl::OkStatus();
}

absl::Status Issue(const CaOptions& options) {
  const bool is_daemon = options.role == "daemon";
  if (!is_daemon && !RoleFromName(options.role).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--role ", options.role, ": there are daemon, ", absl::StrJoin(kRoleNames, ", ")));
  }
  if (!MayBeOf(RoleFromName(options.role).value_or(Role::kViewer), options.tenant)) {
    return absl::InvalidArgumentError(absl::StrCat("--tenant ", options.tenant,
                                                   ": a tenant's name is 1 to 64 letters, digits and ._-, or for a "
                                                   "worker that serves every tenant *"));
  }
  CertificateRequest request;
  request.role = options.role;
  request.tenant = is_daemon ? "" : options.tenant;
  request.names = options.names;
  request.from = absl::Now() - absl::Minutes(5);  // the clocks of two machines differ
  request.until = absl::Now() + absl::Hours(24 * options.days);
  HONE_ASSIGN_OR_RETURN(const TlsFiles files, IssueCertificate(options.folder, request));
  std::printf("until %s: --tls-ca %s --tls-cert %s --tls-key %s\n", Day(request.until).c_str(),
              ShellWord(files.ca).c_str(), ShellWord(files.certificate).c_str(), ShellWord(files.key).c_str());
  return absl::OkStatus();
}

absl::Status Revoke(const CaOptions& options) {
  for (const std::string& name : options.names) {
    HONE_ASSIGN_OR_RETURN(const int revoked, RevokeCertificates(options.folder, options.role, name));
    std::printf("%d certificates of %s %s are revoked from now on\n", revoked, options.role.c_str(), name.c_str());
  }
  std::printf("daemons that have %s/ca.crl (honed --tls-crl) refuse them as soon as they see it\n",
              options.folder.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCaCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<CaOptions>();
  CLI::App* command = app.add_subcommand("ca", "Make certificates for a daemon on the network and its callers.");
  command->require_subcommand(1);
  command->footer(Examples({"hone ca init certs", "hone ca issue certs --role daemon --name build-host",
                            "hone ca issue certs --role worker --tenant vision --name edge1",
                            "hone ca revoke certs --role worker --name edge1"}));
  CLI::App* init = command->add_subcommand("init", "A new authority.");
  init->add_option("folder", options->folder, "where its key and certificate go, and what it issues")->required();
  init->add_option("--days", options->authority_days, "for how long it is valid")
      ->check(FromTo(1, 36500, "days"))
      ->capture_default_str();
  init->callback([options, chosen] { *chosen = [options] { return Init(*options); }; });
  CLI::App* issue = command->add_subcommand("issue", "A certificate and its key; again for the same name: a new one.");
  issue->add_option("folder", options->folder, "the authority's")->required();
  issue->add_option("--role", options->role, "daemon, or what its holder may do: admin, client, worker, viewer")
      ->required();
  issue
      ->add_option("--tenant", options->tenant,
                   "whose jobs and records its holder sees; of a worker also *, every tenant")
      ->capture_default_str();
  issue
      ->add_option("--name", options->names,
                   "host name or IP address of the holder; of a daemon all by which it is dialled, one --name each")
      ->allow_extra_args(false)
      ->required();
  issue->add_option("--days", options->days, "for how long it is valid")
      ->check(FromTo(1, 36500, "days"))
      ->capture_default_str();
  issue->callback([options, chosen] { *chosen = [options] { return Issue(*options); }; });
  CLI::App* revoke = command->add_subcommand("revoke", "All that was ever issued to a holder no longer counts.");
  revoke->add_option("folder", options->folder, "the authority's")->required();
  revoke->add_option("--role", options->role, "of the holder")->required();
  revoke->add_option("--name", options->names, "the first one it was issued for")->allow_extra_args(false)->required();
  revoke->callback([options, chosen] { *chosen = [options] { return Revoke(*options); }; });
}

}  // namespace hone
