// The daemon as a program: where it listens and to whom, what it refuses to start with, and when it ends by itself.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_fixture.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// The descriptors of a process that are sockets of the network, by the inode numbers in the kernel's tables.
int NetworkSockets(pid_t pid) {
  std::string tables;
  for (const char* name : {"tcp", "tcp6", "udp", "udp6"}) {
    tables += ReadFile(absl::StrCat("/proc/", pid, "/net/", name)).value_or("");
  }
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"))) {
    const std::string link = std::filesystem::read_symlink(entry.path()).string();
    if (link.rfind("socket:[", 0) != 0) continue;
    count += tables.find(absl::StrCat(" ", link.substr(8, link.size() - 9), " ")) != std::string::npos;
  }
  return count;
}

// Without --listen it is there for the owner of the database, who finds it without an address, and for nobody else.
TEST_F(HonedTest, TheDefaultIsASocketOfTheOwners) {
  HonedProcess honed({"--db", folder_ / "t.db"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  EXPECT_EQ(honed.address(), "unix:" + (folder_ / "t.db.sock"));
  EXPECT_EQ(AddressOfDaemon(folder_ / "t.db"), honed.address());
  EXPECT_EQ(NetworkSockets(honed.pid()), 0);
  v1::ListJobsReply jobs;
  const auto client = Connect(honed);
  EXPECT_TRUE(client->tune().ListJobs(client->Context().get(), {}, &jobs).ok());
}

TEST_F(HonedTest, APrivateDaemonEndsWithItsWorkers) {
  HonedProcess honed(Arguments({"--exit-when-idle", "0.5"}));
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  FakeWorker worker("w", honed.address());
  WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1"}, 5)));
  EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
  EXPECT_TRUE(worker.told_to_shut_down());
}

TEST_F(HonedTest, WantsTheTokenOnTheNetwork) {
  std::ofstream(folder_ / "token") << "secret\n";
  chmod((folder_ / "token").c_str(), 0600);
  HonedProcess honed(
      {"--db", folder_ / "t.db", "--listen", "127.0.0.1:0", "--insecure", "--token-file", folder_ / "token"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  EXPECT_EQ(NetworkSockets(honed.pid()), 1);
  struct Case {
    const char* token;
    grpc::StatusCode code;
  };
  for (const Case& c : {Case{"secret", grpc::StatusCode::OK}, Case{"wrong", grpc::StatusCode::PERMISSION_DENIED},
                        Case{"", grpc::StatusCode::UNAUTHENTICATED}}) {
    const auto client = Connect(honed, c.token);
    v1::ListJobsReply jobs;
    EXPECT_EQ(client->tune().ListJobs(client->Context().get(), {}, &jobs).error_code(), c.code) << c.token;
    v1::SyncRequest sync;
    v1::SyncReply reply;
    EXPECT_EQ(client->fleet().Sync(client->Context().get(), sync, &reply).error_code(), c.code) << c.token;
    const auto watch =
        client->Watch(1, absl::Milliseconds(50), [](const auto& sight) { return sight.silence < absl::Seconds(1); });
    EXPECT_EQ(static_cast<int>(watch.status().code()),
              static_cast<int>(c.code == grpc::StatusCode::OK ? grpc::StatusCode::NOT_FOUND : c.code));
  }
}

// Whoever may open the Unix socket is the owner, and needs none; who shows one all the same is held to it.
TEST_F(HonedTest, TheOwnersSocketWantsNoToken) {
  std::ofstream(folder_ / "token") << "secret\n";
  chmod((folder_ / "token").c_str(), 0600);
  HonedProcess honed({"--db", folder_ / "t.db", "--token-file", folder_ / "token"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  for (const auto& [token, code] : {std::pair{"", grpc::StatusCode::OK}, std::pair{"secret", grpc::StatusCode::OK},
                                    std::pair{"wrong", grpc::StatusCode::PERMISSION_DENIED}}) {
    const auto client = Connect(honed, token);
    v1::ListJobsReply jobs;
    EXPECT_EQ(client->tune().ListJobs(client->Context().get(), {}, &jobs).error_code(), code) << token;
  }
}

struct RefusalCase {
  const char* name;
  std::vector<std::string> arguments;
  int code;
  const char* message;
};
class HonedRefuses : public HonedTest, public ::testing::WithParamInterface<RefusalCase> {};
TEST_P(HonedRefuses, WithOneMessageAndItsCode) {
  std::ofstream(folder_ / "text") << std::string(5000, 'x');
  std::ofstream(folder_ / "empty") << "";
  std::ofstream(folder_ / "open_token") << "secret";
  chmod((folder_ / "open_token").c_str(), 0644);
  std::vector<std::string> arguments = GetParam().arguments;
  for (std::string& argument : arguments) {
    const size_t at = argument.find('@');
    if (at != std::string::npos) argument.replace(at, 1, folder_ / "");
  }
  HonedProcess honed(arguments);
  EXPECT_FALSE(honed.ready());
  EXPECT_EQ(honed.Wait(), GetParam().code);
  EXPECT_THAT(honed.Errors(), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, HonedRefuses,
    ::testing::Values(
        RefusalCase{"NoOptions", {}, 2, "--db"},
        RefusalCase{"UnknownOption", {"--db", "@t", "--listen", "unix:@s", "--what"}, 2, "--what"},
        RefusalCase{"NotADatabase", {"--db", "@text", "--listen", "unix:@s"}, 9, "not a Hone database"},
        RefusalCase{"EmptyDatabase", {"--db", "@empty", "--listen", "unix:@s"}, 9, "an empty file"},
        RefusalCase{"DatabaseIsAFolder", {"--db", "@", "--listen", "unix:@s"}, 2, "a folder"},
        RefusalCase{"NoSuchFolder", {"--db", "@none/t", "--listen", "unix:@s"}, 8, "No such file"},
        RefusalCase{"NoTls", {"--db", "@t", "--listen", "127.0.0.1:0"}, 2, "needs TLS"},
        RefusalCase{"NoToken", {"--db", "@t", "--listen", "127.0.0.1:0", "--insecure"}, 2, "needs a token"},
        RefusalCase{"OpenToken",
                    {"--db", "@t", "--listen", "127.0.0.1:0", "--insecure", "--token-file", "@open_token"},
                    2,
                    "chmod 600"},
        RefusalCase{"NotAnAddress", {"--db", "@t", "--listen", "somewhere"}, 2, "not an address"},
        RefusalCase{"SocketIsAFile", {"--db", "@t", "--listen", "unix:@text"}, 2, "no socket"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(HonedTest, ASecondDaemonOnTheSameDatabaseIsRefused) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  HonedProcess second({"--db", folder_ / "t.db", "--listen", "unix:" + (folder_ / "other")});
  EXPECT_FALSE(second.ready());
  EXPECT_EQ(second.Wait(), 5);
  EXPECT_THAT(second.Errors(), HasSubstr("listens on unix:"));
  HonedProcess third({"--db", folder_ / "u.db", "--listen", "unix:" + (folder_ / "s")});
  EXPECT_FALSE(third.ready());
  EXPECT_EQ(third.Wait(), 5);
  EXPECT_THAT(third.Errors(), HasSubstr("another program listens there"));
}

}  // namespace
}  // namespace hone
