// Every method of every service against callers who may not call it.
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/file.h"
#include "gmock/gmock.h"
#include "grpc/grpc_security_constants.h"
#include "gtest/gtest.h"
#include "proto/rpc/authority.h"
#include "proto/rpc/revocation.h"
#include "tests/tuner/service/access_fixture.h"
#include "tests/tuner/service/any_method.h"
#include "tests/tuner/service/honed_process.h"
#include "tuner/service/access/policy.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Who is not of the authority's does not get through the handshake, whatever the method.
TEST_F(Access, NobodyCallsWithoutACertificateOfTheAuthoritys) {
  ASSERT_TRUE(MakeAuthority(folder_ / "other", absl::Now() + absl::Hours(1)).ok());
  const TlsFiles good = Issue("ca", "admin", "vision"), other = Issue("other", "admin", "vision");
  const TlsFiles expired = Issue("ca", "admin", "speech", -absl::Minutes(1)),
                 daemon = Issue("ca", "daemon", "impostor");
  const std::string root = ReadFile(good.ca).value();
  const std::map<std::string, std::shared_ptr<grpc::ChannelCredentials>> callers = {
      {"plain text", grpc::InsecureChannelCredentials()},
      {"no certificate", grpc::SslCredentials({.pem_root_certs = root, .pem_private_key = "", .pem_cert_chain = ""})},
      {"wrong authority", MakeChannelCredentials({good.ca, other.certificate, other.key})},
      {"expired", MakeChannelCredentials({good.ca, expired.certificate, expired.key})},
      {"a daemon's certificate", MakeChannelCredentials({good.ca, daemon.certificate, daemon.key})},
      {"daemon of another authority", MakeChannelCredentials({other.ca, good.certificate, good.key})},
  };
  const Credentials token{"admin", {}};
  for (const auto& [name, credentials] : callers) {
    const auto channel = grpc::CreateChannel(honed_->address(), credentials);
    for (const Method& method : AllMethods()) {
      const Answer answer =
          CallMethod(channel, MakeContext(token, absl::Seconds(20)), method.path(), EmptyRequest(method));
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << name << ", " << method.path() << ": " << answer.status.error_message();
      EXPECT_THAT(answer.messages, IsEmpty());
    }
  }
  const auto channel = OpenChannel(honed_->address(), {"", good});
  EXPECT_TRUE(CallMethod(channel, MakeContext({}, absl::Seconds(20)), "/hone.v1.Tune/ListJobs", v1::ListJobsRequest())
                  .status.ok());
}

// A daemon's certificate is replaced while it runs, and it says so to whoever connects from then on.
TEST_F(Access, CertificatesAreReadAgainWhenTheyChange) {
  const auto shown = [&] {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    const auto channel = grpc::CreateCustomChannel(honed_->address(),
                                                   MakeChannelCredentials(Issue("ca", "viewer", "vision")), arguments);
    const auto context = MakeContext({}, absl::Seconds(20));
    v1::ListJobsReply reply;
    const grpc::Status status = v1::Tune::NewStub(channel)->ListJobs(context.get(), {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto pem = context->auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return pem.empty() ? std::string() : std::string(pem[0].data(), pem[0].size());
  };
  const std::string before = shown();
  EXPECT_EQ(before, ReadFile(folder_ / "ca/daemon-127.0.0.1.crt").value());
  const std::string after = ReadFile(Issue("ca", "daemon", "127.0.0.1").certificate).value();
  EXPECT_NE(after, before);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (shown() != after && absl::Now() < end) absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(shown(), after);
}

// On the connection that is open, and whatever the method; another certificate of the same role goes on.
TEST_F(Access, RevokedCertificatesAreRefusedWithoutARestart) {
  const auto revoked = As("admin", "vision"), other = As("admin", "speech");
  const v1::ListJobsRequest list;
  ASSERT_TRUE(CallMethod(*revoked, "/hone.v1.Tune/ListJobs", list).status.ok());
  ASSERT_EQ(RevokeCertificates(folder_ / "ca", "admin", "vision").value(), 1);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (CallMethod(*revoked, "/hone.v1.Tune/ListJobs", list).status.ok() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  for (const Method& method : AllMethods()) {
    const Answer answer = CallMethod(*revoked, method.path(), EmptyRequest(method));
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method.path();
    EXPECT_THAT(answer.status.error_message(), HasSubstr("the certificate of vision was revoked")) << method.path();
    EXPECT_THAT(answer.messages, IsEmpty());
  }
  EXPECT_TRUE(CallMethod(*other, "/hone.v1.Tune/ListJobs", list).status.ok());
}

// A watch that is open when its certificate is revoked ends before its job does.
TEST_F(Access, AWatchEndsWhenItsCertificateIsRevoked) {
  const auto revoked = As("viewer", "vision"), owner = As("client", "vision");
  const uint64_t job = CallMethod(*owner, "/hone.v1.Tune/Submit", Job("waits", 99)).First<v1::SubmitReply>().job_id();
  v1::WatchRequest request;
  request.set_job_id(job);
  request.set_interval_ms(50);
  const auto context = revoked->Context(absl::Seconds(60));
  const auto watch = v1::Tune::NewStub(revoked->channel())->Watch(context.get(), request);
  v1::JobEvent event;
  ASSERT_TRUE(watch->Read(&event) && watch->Read(&event)) << "it is open";
  ASSERT_EQ(RevokeCertificates(folder_ / "ca", "viewer", "vision").value(), 1);
  while (watch->Read(&event)) EXPECT_EQ(event.snapshot().state(), v1::JOB_WAITING);
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("was revoked"));
}

TEST_F(Access, EveryMethodIsForItsRolesAlone) {
  std::map<std::string, std::unique_ptr<DaemonClient>> callers;
  for (const char* role : kRoleNames) callers[role] = As(role, "vision");
  for (const Method& method : AllMethods()) {
    int refused = 0;
    for (const auto& [role, client] : callers) {
      const Answer answer = CallMethod(*client, method.path(), EmptyRequest(method));
      SCOPED_TRACE(absl::StrCat(method.path(), " as ", role, ": ", answer.status.error_message()));
      const bool allowed = method.roles.Has(*RoleFromName(role));
      EXPECT_EQ(answer.status.error_code() != grpc::StatusCode::PERMISSION_DENIED, allowed);
      EXPECT_NE(answer.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
      EXPECT_NE(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
      if (allowed) continue;
      ++refused;
      EXPECT_THAT(answer.status.error_message(), HasSubstr("a caller of role " + role));
      EXPECT_THAT(answer.messages, IsEmpty());
    }
    EXPECT_GT(refused, 0) << method.path() << " is for everybody";
  }
}

// The same by tokens, on a daemon without TLS.
TEST(AccessByToken, EveryMethodIsForItsRolesAlone) {
  const TempFolder folder;
  std::ofstream(folder / "tokens") << "admin vision a-0123456789\nclient vision c-0123456789\n"
                                      "worker vision w-0123456789\nviewer vision v-0123456789\n";
  chmod((folder / "tokens").c_str(), 0600);
  const HonedProcess honed(
      {"--db", folder / "t.db", "--listen", "127.0.0.1:0", "--insecure", "--token-file", folder / "tokens"});
  ASSERT_TRUE(honed.ready());
  const auto channel = OpenChannel(honed.address(), {});
  for (const Method& method : AllMethods()) {
    const auto code_for = [&](const std::string& token) {
      const auto with_token = [&] { return MakeContext({token, {}}, absl::Seconds(20)); };
      return CallMethod(channel, with_token(), method.path(), EmptyRequest(method)).status.error_code();
    };
    EXPECT_EQ(code_for(""), grpc::StatusCode::UNAUTHENTICATED) << method.path();
    EXPECT_EQ(code_for("a-01234567"), grpc::StatusCode::PERMISSION_DENIED) << method.path();
    for (const char* role : kRoleNames) {
      EXPECT_EQ(code_for(std::string(role, 1) + "-0123456789") != grpc::StatusCode::PERMISSION_DENIED,
                method.roles.Has(*RoleFromName(role)))
          << method.path() << " as " << role;
    }
  }
}

}  // namespace
}  // namespace hone
