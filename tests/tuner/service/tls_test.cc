// The authority and what it issues, and what is said of files that cannot serve.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "compiler/support/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc/authority.h"
#include "proto/rpc/revocation.h"
#include "proto/rpc/tls.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

class Tls : public ::testing::Test {
 protected:
  Tls() { EXPECT_TRUE(MakeAuthority(folder_ / "ca", absl::Now() + absl::Hours(1)).ok()); }
  absl::StatusOr<TlsFiles> Issue(const std::string& name, absl::Duration from = -absl::Hours(1),
                                 absl::Duration until = absl::Hours(1)) {
    CertificateRequest request;
    request.role = "worker";
    request.tenant = "vision";
    request.names = {name};
    request.from = absl::Now() + from;
    request.until = absl::Now() + until;
    return IssueCertificate(folder_ / "ca", request);
  }
  static std::string MessageOf(const TlsFiles& files) { return std::string(CheckTlsFiles(files).message()); }
  TempFolder folder_;
};

TEST_F(Tls, CertificatesSayWhoTheirHolderIs) {
  const absl::StatusOr<TlsFiles> files = Issue("edge1");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(CheckTlsFiles(*files).ok()) << CheckTlsFiles(*files);
  const absl::StatusOr<CertificateSubject> subject = SubjectOf(ReadFile(files->certificate).value());
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_EQ(subject->name, "edge1");
  EXPECT_EQ(subject->tenant, "vision");
  EXPECT_EQ(subject->role, "worker");
  EXPECT_FALSE(SubjectOf("no certificate").ok());
  for (const std::string& key : {files->key, folder_ / "ca/ca.key"}) {
    struct stat info {};
    ASSERT_EQ(stat(key.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << key;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "ca"), {}), 6) << "something was left behind";
}

TEST_F(Tls, AnAuthorityIsNotReplaced) {
  const std::string before = ReadFile(folder_ / "ca/ca.key").value();
  EXPECT_THAT(std::string(MakeAuthority(folder_ / "ca", absl::Now() + absl::Hours(1)).message()),
              HasSubstr("has an authority already"));
  EXPECT_EQ(ReadFile(folder_ / "ca/ca.key").value(), before);
}

TEST_F(Tls, AllThatAHolderEverHadIsRevoked) {
  const auto serial_of = [](const TlsFiles& files) {
    return SubjectOf(ReadFile(files.certificate).value()).value().serial;
  };
  const std::string list = folder_ / "ca/ca.crl", ca = folder_ / "ca/ca.crt";
  EXPECT_EQ(RevocationList::Read(list, ca).value().size(), 0u);
  const std::string first = serial_of(Issue("edge1").value()), second = serial_of(Issue("edge1").value());
  const std::string other = serial_of(Issue("edge2").value());
  EXPECT_NE(first, second);
  EXPECT_EQ(RevokeCertificates(folder_ / "ca", "worker", "edge1").value(), 2);
  EXPECT_EQ(RevokeCertificates(folder_ / "ca", "worker", "edge1").value(), 0) << "they are on the list already";
  const RevocationList revoked = RevocationList::Read(list, ca).value();
  EXPECT_TRUE(revoked.Has(first) && revoked.Has(second));
  EXPECT_FALSE(revoked.Has(other) || revoked.Has(serial_of(Issue("edge1").value()))) << "what comes later counts";
  EXPECT_TRUE(absl::IsNotFound(RevokeCertificates(folder_ / "ca", "admin", "edge1").status()));
  // A list counts when the authority has signed it.
  ASSERT_TRUE(MakeAuthority(folder_ / "other", absl::Now() + absl::Hours(1)).ok());
  EXPECT_THAT(std::string(RevocationList::Read(list, folder_ / "other/ca.crt").status().message()),
              HasSubstr("not signed by the authority"));
  EXPECT_THAT(std::string(RevocationList::Read(ca, ca).status().message()), HasSubstr("not a revocation list"));
}

TEST_F(Tls, NamesAreHostsOrAddresses) {
  for (const char* good : {"edge1.example.org", "127.0.0.1", "::1"}) EXPECT_TRUE(Issue(good).ok()) << good;
  for (const char* bad : {"", "a/b", "../x", "x,DNS:other", "a b", "-x", ".."}) EXPECT_FALSE(Issue(bad).ok()) << bad;
}

TEST_F(Tls, FilesThatCannotServeAreNamed) {
  const TlsFiles good = Issue("edge1").value(), other = Issue("edge2").value();
  EXPECT_TRUE(CheckTlsFiles({}).ok());
  EXPECT_THAT(MessageOf({good.ca, good.certificate, ""}), HasSubstr("go together"));
  EXPECT_THAT(MessageOf({good.ca, good.certificate, other.key}), HasSubstr("the key of another certificate than"));
  EXPECT_THAT(MessageOf({good.ca, folder_ / "none", good.key}), HasSubstr("No such file"));
  std::ofstream(folder_ / "text") << "text\n";
  EXPECT_THAT(MessageOf({folder_ / "text", good.certificate, good.key}), HasSubstr("--tls-ca"));
  EXPECT_THAT(MessageOf({folder_ / "text", good.certificate, good.key}), HasSubstr("not a certificate in PEM form"));
  chmod((folder_ / "text").c_str(), 0600);
  EXPECT_THAT(MessageOf({good.ca, good.certificate, folder_ / "text"}), HasSubstr("not a private key in PEM form"));
  const TlsFiles expired = Issue("old", -absl::Hours(2), -absl::Hours(1)).value();
  EXPECT_THAT(MessageOf(expired), HasSubstr("the certificate expired on 20"));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckTlsFiles(expired)));
  EXPECT_THAT(MessageOf(Issue("new", absl::Hours(1), absl::Hours(2)).value()),
              HasSubstr("the certificate begins on 20"));
  chmod(good.key.c_str(), 0644);
  EXPECT_THAT(MessageOf(good), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace hone
