// Connections that are open are counted, those that were closed without a word are not.
#include "tuner/service/access/peer_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <vector>

#include "compiler/support/check.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

int NewSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  HONE_CHECK(fd >= 0);
  return fd;
}

class PeerConnectionsTest : public ::testing::Test {
 protected:
  ~PeerConnectionsTest() override {
    for (const int fd : open_) close(fd);
  }
  bool Add(const std::string& peer, int fd) { return connections_.Add(peer, fd, 2, now_); }
  int Open() { return open_.emplace_back(NewSocket()); }
  void Close(int fd) {
    std::erase(open_, fd);
    close(fd);
  }

  PeerConnections connections_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<int> open_;
};

TEST_F(PeerConnectionsTest, CountsThoseOfEachPeer) {
  EXPECT_TRUE(Add("a", Open()));
  EXPECT_TRUE(Add("a", Open()));
  EXPECT_FALSE(Add("a", Open()));
  EXPECT_TRUE(Add("b", Open()));
}

TEST_F(PeerConnectionsTest, ForgetsThoseThatWereClosed) {
  const int first = Open(), second = Open();
  ASSERT_TRUE(Add("a", first) && Add("a", second));
  Close(first);
  const int third = Open();  // has the number of the first
  ASSERT_EQ(third, first);
  EXPECT_TRUE(Add("b", third)) << "it is counted as b's alone";
  EXPECT_TRUE(Add("a", Open()));
  Close(second);
  const int other = Open();  // has its number, and is no connection
  ASSERT_EQ(other, second);
  EXPECT_TRUE(Add("a", Open()));
  EXPECT_FALSE(Add("a", Open()));
}

// What looking takes must not be for the one who makes it necessary to say.
TEST_F(PeerConnectionsTest, AreLookedAtNowAndThen) {
  const int first = Open(), second = Open();
  ASSERT_TRUE(Add("a", first) && Add("a", second));
  const int more = Open();
  EXPECT_FALSE(Add("a", more)) << "both are open";
  Close(second);
  EXPECT_FALSE(Add("a", more)) << "they have just been looked at";
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Add("a", more));
}

sockaddr_storage PeerAddress(const char* text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  address.ss_family = inet_pton(AF_INET, text, &v4.sin_addr) == 1 ? AF_INET : AF_INET6;
  HONE_CHECK(address.ss_family == AF_INET || inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
  return address;
}

TEST(PeerOf, IsAnAddressOrANetwork) {
  EXPECT_EQ(PeerOf(PeerAddress("10.0.0.1")), PeerOf(PeerAddress("10.0.0.1")));
  EXPECT_NE(PeerOf(PeerAddress("10.0.0.1")), PeerOf(PeerAddress("10.0.0.2")));
  EXPECT_EQ(PeerOf(PeerAddress("2001:db8::1")), PeerOf(PeerAddress("2001:db8::ffff:2")));
  EXPECT_NE(PeerOf(PeerAddress("2001:db8::1")), PeerOf(PeerAddress("2001:db8:0:1::1")));
}

}  // namespace
}  // namespace hone
