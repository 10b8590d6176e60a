// Connections of strangers: so many of all and of each address, and none of them ends the service.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/limits.h"

namespace hone {
namespace {

// Connections that say nothing, from this machine's address 127.0.0.`from`.
class Idle {
 public:
  explicit Idle(const std::string& address, uint32_t from = 1) : from_(INADDR_LOOPBACK + from - 1) {
    const size_t colon = address.rfind(':');
    name_.sin_family = AF_INET;
    name_.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &name_.sin_addr);
  }
  ~Idle() {
    for (const int fd : open_) close(fd);
  }
  // False when the process may have no more descriptors, or the other end does not answer.
  bool Connect() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    open_.push_back(fd);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from_);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) return false;
    return connect(fd, reinterpret_cast<const sockaddr*>(&name_), sizeof(name_)) == 0;
  }
  size_t size() const { return open_.size(); }
  // Those that the other end has closed.
  size_t closed() const {
    return static_cast<size_t>(std::ranges::count_if(open_, [](int fd) {
      char byte = 0;
      const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
  }

 private:
  const uint32_t from_;
  sockaddr_in name_{};
  std::vector<int> open_;
};

// Waits until the other end has closed so many of theirs at once: those that it takes it closes after ten seconds, for
// they say nothing.
bool WaitForClosed(const std::vector<const Idle*>& peers, size_t count) {
  for (const absl::Time end = absl::Now() + absl::Seconds(5); absl::Now() < end;) {
    size_t closed = 0;
    for (const Idle* peer : peers) closed += peer->closed();
    if (closed >= count) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

TEST_F(Limits, IdleConnectionsDoNotStopTheService) {
  constexpr size_t kWanted = 5000, kOfAPeer = 1000, kOthers = 300;
  rlimit descriptors{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  if (descriptors.rlim_max < kWanted + kOthers) {
    GTEST_SKIP() << "a process may have " << descriptors.rlim_max << " descriptors here, and " << kWanted + kOthers
                 << " are needed (ulimit -Hn)";
  }
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  const auto honed = Start({});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  std::vector<std::unique_ptr<Idle>> peers;
  for (size_t count = 0; count < kWanted; ++count) {
    if (count % kOfAPeer == 0) peers.push_back(std::make_unique<Idle>(honed->address(), 2 + peers.size()));
    ASSERT_TRUE(peers.back()->Connect()) << "after " << count;
  }
  EXPECT_TRUE(List(*before).ok());
  const auto after = As(*honed, "ears-0123456789");
  ASSERT_NE(after, nullptr);
  EXPECT_TRUE(Submit(*after, Job("one", 1)).ok());
}

// Beyond the limit connections are closed; those before go on, and others are taken when some have ended.
TEST_F(Limits, OfConnections) {
  const auto honed = Start({"--max-connections", "20"});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  {
    // None of them alone may have more than half.
    Idle first(honed->address()), second(honed->address(), 2), third(honed->address(), 3);
    while (first.size() < 20) ASSERT_TRUE(first.Connect() && second.Connect() && third.Connect());
    EXPECT_TRUE(WaitForClosed({&first, &second, &third}, 40));
    EXPECT_LT(first.closed() + second.closed() + third.closed(), 60u) << "some were below the limit";
    EXPECT_TRUE(List(*before).ok());
    EXPECT_FALSE(Connects(honed->address(), absl::Seconds(1)));
  }
  EXPECT_TRUE(Connects(honed->address(), absl::Seconds(60)));
}

// Who takes all that one address may have takes none of those of others.
TEST_F(Limits, OfConnectionsOfOnePeer) {
  const auto honed = Start({"--max-connections", "100", "--max-peer-connections", "10"});
  {
    Idle peer(honed->address(), 2), other(honed->address(), 3);
    while (peer.size() < 200) ASSERT_TRUE(peer.Connect()) << "after " << peer.size();
    EXPECT_TRUE(WaitForClosed({&peer}, 190)) << peer.closed();
    EXPECT_LT(peer.closed(), peer.size()) << "some were below the limit";
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Connect());
    EXPECT_TRUE(List(*As(*honed, "eyes-0123456789")).ok());
    EXPECT_EQ(other.closed(), 0u);
  }
  bool taken = false;
  for (const absl::Time end = absl::Now() + absl::Seconds(60); !taken && absl::Now() < end;) {
    Idle again(honed->address(), 2);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(again.Connect());
    absl::SleepFor(absl::Milliseconds(300));
    taken = again.closed() == 0;
  }
  EXPECT_TRUE(taken) << "those before have ended";
}

TEST_F(Limits, OnePeerHasNoMoreThanHalfOfTheConnections) {
  const auto honed = Start({"--max-connections", "20"});
  Idle peer(honed->address(), 2);
  while (peer.size() < 40) ASSERT_TRUE(peer.Connect()) << "after " << peer.size();
  EXPECT_TRUE(WaitForClosed({&peer}, 30)) << peer.closed();
  EXPECT_TRUE(List(*As(*honed, "eyes-0123456789")).ok());
}

// Where descriptors run out the daemon turns connections away, and takes them again when others have ended.
TEST_F(Limits, RunningOutOfDescriptorsEndsNothing) {
  const auto honed = Start({});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  const rlimit few{200, 200};
  ASSERT_EQ(prlimit(honed->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    Idle idle(honed->address());
    while (idle.size() < 400) ASSERT_TRUE(idle.Connect()) << "after " << idle.size();
    EXPECT_TRUE(List(*before).ok());
    EXPECT_TRUE(WaitForClosed({&idle}, 300)) << "what is kept for other than connections is above 100 of 200";
    EXPECT_TRUE(Submit(*before, Job("one", 1)).ok()) << "the database has descriptors left";
  }
  const auto after = As(*honed, "ears-0123456789");
  ASSERT_NE(after, nullptr);
  EXPECT_TRUE(List(*after).ok());
  honed->Signal(SIGTERM);
  EXPECT_EQ(honed->Wait(), 0) << honed->Errors();
}

}  // namespace
}  // namespace hone
