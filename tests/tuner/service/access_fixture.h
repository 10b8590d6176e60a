// A daemon whose callers show certificates, and callers of two tenants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/rpc/authority.h"
#include "tests/tuner/fake_task.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

// A daemon on the network with TLS, and an authority that issues to the roles of two tenants, vision and speech.
class Access : public ::testing::Test {
 protected:
  Access() {
    EXPECT_TRUE(MakeAuthority(folder_ / "ca", absl::Now() + absl::Hours(1)).ok());
    const TlsFiles own = Issue("ca", "daemon", "127.0.0.1");
    honed_ = std::make_unique<HonedProcess>(std::vector<std::string>{
        "--db", folder_ / "t.db", "--listen", "127.0.0.1:0", "--tls-ca", own.ca, "--tls-cert", own.certificate,
        "--tls-key", own.key, "--tls-crl", folder_ / "ca/ca.crl", "--search-program", HONE_BIN "/hone-fake-search"});
    EXPECT_TRUE(honed_->ready()) << honed_->Errors();
  }
  // The holder's name is the tenant's; a daemon's is its address.
  TlsFiles Issue(const std::string& authority, const std::string& role, const std::string& tenant,
                 absl::Duration valid = absl::Hours(1)) {
    CertificateRequest request;
    request.role = role;
    request.tenant = tenant;
    request.names = {tenant};
    request.from = absl::Now() - absl::Hours(2);
    request.until = absl::Now() + valid;
    absl::StatusOr<TlsFiles> files = IssueCertificate(folder_ / authority, request);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.value_or(TlsFiles());
  }
  std::unique_ptr<DaemonClient> As(const std::string& role, const std::string& tenant) {
    auto client = DaemonClient::Connect(honed_->address(), {"", Issue("ca", role, tenant)}, absl::Seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static v1::SubmitRequest Job(const std::string& id, int threads) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_threads(threads);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(10);
    *request.add_tasks() = FakeTask("conv2d_1");
    return request;
  }

  TempFolder folder_;
  std::unique_ptr<HonedProcess> honed_;
};

}  // namespace hone
