// The table of who may call what, and the files of tokens.
#include "tuner/service/access/policy.h"

#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/honed_process.h"
#include "tuner/service/access/token_table.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// As protoc would generate a method that nobody wrote a row for.
template <class Rest>
class WithAsyncMethod_Unlisted : public Rest {};

template <template <class> class Method>
concept HasRow = requires {
  PolicyOf<Method>::kPolicy;
};
static_assert(HasRow<v1::Tune::WithAsyncMethod_Submit>);
static_assert(!HasRow<WithAsyncMethod_Unlisted>, "it would compile, and so would a new method");

TEST(Policy, HasARowForEveryMethodOfEveryService) {
  const auto* tune = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("hone.v1.Tune");
  const auto* fleet = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("hone.v1.Fleet");
  ASSERT_TRUE(tune != nullptr && fleet != nullptr);
  EXPECT_EQ(kPolicies<v1::Tune>.size(), static_cast<size_t>(tune->method_count()));
  EXPECT_EQ(kPolicies<v1::Fleet>.size(), static_cast<size_t>(fleet->method_count()));
  for (int i = 0; i < tune->method_count(); ++i) {
    const bool streams = tune->method(i)->server_streaming() || tune->method(i)->client_streaming();
    EXPECT_EQ(kPolicies<v1::Tune>.at(static_cast<size_t>(i)).streams, streams) << tune->method(i)->name();
  }
  for (const MethodPolicy& policy : kPolicies<v1::Tune>) {
    EXPECT_TRUE(policy.longest_seconds > 0 && policy.longest_seconds <= 3600);
    EXPECT_TRUE(policy.streams || !policy.holds_thread);
  }
  const auto roles_of = [&](const char* name) {
    return kPolicies<v1::Tune>.at(static_cast<size_t>(tune->FindMethodByName(name)->index())).roles;
  };
  EXPECT_TRUE(roles_of("ListRecords").Has(Role::kViewer));
  EXPECT_FALSE(roles_of("ImportRecords").Has(Role::kViewer));
  EXPECT_FALSE(roles_of("Submit").Has(Role::kWorker));
}

class TokenFile : public ::testing::Test {
 protected:
  absl::StatusOr<TokenTable> Read(const std::string& text, mode_t mode = 0600) {
    std::ofstream(folder_ / "tokens") << text;
    chmod((folder_ / "tokens").c_str(), mode);
    return TokenTable::Read(folder_ / "tokens");
  }
  TempFolder folder_;
};

TEST_F(TokenFile, StandsForRolesOfTenants) {
  const absl::StatusOr<TokenTable> table =
      Read("# role tenant token\n\nclient vision eyes\nworker  vision\thands\nviewer speech ears\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_NE(table->Find("hands"), nullptr);
  EXPECT_EQ(table->Find("hands")->role, Role::kWorker);
  EXPECT_EQ(table->Find("hands")->tenant, TenantOf("vision"));
  EXPECT_EQ(table->Find("eyes")->tenant, table->Find("hands")->tenant);
  EXPECT_NE(table->Find("eyes")->tenant.id, table->Find("ears")->tenant.id);
  EXPECT_EQ(table->Find("eye"), nullptr);
  EXPECT_EQ(table->Find(""), nullptr);
}

TEST_F(TokenFile, OfOneTokenIsTheOwners) {
  const absl::StatusOr<TokenTable> table = Read("secret\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_NE(table->Find("secret"), nullptr);
  EXPECT_EQ(table->Find("secret")->role, Role::kAdmin);
  EXPECT_EQ(table->Find("secret")->tenant, (Tenant{kLocalTenant, "local"}));
}

TEST_F(TokenFile, IsRefusedWithTheLine) {
  const auto message = [](const absl::StatusOr<TokenTable>& table) { return std::string(table.status().message()); };
  EXPECT_THAT(message(Read("secret\nking vision crown\n")),
              HasSubstr("tokens:2: \"king\" is no role; there are admin"));
  EXPECT_THAT(message(Read("client a/b key\n")), HasSubstr("tokens:1: \"a/b\" is no tenant's name"));
  EXPECT_THAT(message(Read("admin * key\n")), HasSubstr("tokens:1: \"*\" is no tenant's name"));
  const absl::StatusOr<TokenTable> shared = Read("worker * key\n");
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->Find("key")->tenant.id, kAllTenants);
  EXPECT_THAT(message(Read("client vision\n")), HasSubstr("tokens:1: a line is `role tenant token`"));
  EXPECT_THAT(message(Read("client a key\nworker b key\n")), HasSubstr("tokens:2: the token is there twice"));
  EXPECT_THAT(message(Read("client a k\x01y\n")), HasSubstr("printable"));
  EXPECT_THAT(message(Read("# nothing\n")), HasSubstr("the token file is empty"));
  EXPECT_THAT(message(Read("secret\n", 0644)), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace hone
