#include "tests/system/relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hone::system_test {
namespace {

constexpr int kMostBroken = 6;
constexpr int64_t kFirstBreak = 900;  // bytes of both directions: in the middle of a Hello

sockaddr_un Address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) std::abort();
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Relay::Relay(const std::string& path, std::string to) : to_(std::move(to)) {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = Address(path);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  if (::listen(listener_, 8) != 0) std::abort();
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  stop_ = true;
  thread_.join();
  for (const Pair& pair : pairs_) ::close(pair.ours), ::close(pair.theirs);
  ::close(listener_);
}

void Relay::Accept(bool keep) {
  const int ours = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (ours < 0) return;
  const int theirs = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = Address(to_);
  if (keep && ::connect(theirs, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    pairs_.push_back({ours, theirs});
  } else {
    ::close(ours), ::close(theirs);
  }
}

bool Relay::Pass(int from, int to, int64_t& left) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(from, bytes.data(), static_cast<size_t>(std::min<int64_t>(bytes.size(), left)), 0);
  if (count <= 0) return false;
  if (left != kEndless) left -= count;
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t more = ::send(to, bytes.data() + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return left > 0;
}

void Relay::Run() {
  while (!stop_) {
    const State state = state_;
    if (state == State::kSilent) {
      ::poll(nullptr, 0, 20);
      continue;
    }
    if (state == State::kCut) {
      for (const Pair& pair : pairs_) ::close(pair.ours), ::close(pair.theirs);
      pairs_.clear();
    }
    std::vector<pollfd> waiting = {{listener_, POLLIN, 0}};
    for (Pair& pair : pairs_) {
      if (state == State::kBreaking && pair.left == kEndless && broken_ < kMostBroken) {
        pair.left = kFirstBreak * (broken_ + 1);
      }
      // A negative descriptor is not waited for.
      waiting.push_back({state == State::kOneWay ? -1 : pair.ours, POLLIN, 0});
      waiting.push_back({pair.theirs, POLLIN, 0});
    }
    if (::poll(waiting.data(), waiting.size(), 20) <= 0) continue;
    std::vector<Pair> kept;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      Pair& pair = pairs_[i];
      const bool lives = (waiting[2 * i + 1].revents == 0 || Pass(pair.ours, pair.theirs, pair.left)) &&
                         (waiting[2 * i + 2].revents == 0 || Pass(pair.theirs, pair.ours, pair.left));
      broken_ += pair.left == 0;
      if (lives) {
        kept.push_back(pair);
      } else {
        ::close(pair.ours), ::close(pair.theirs);
      }
    }
    pairs_ = std::move(kept);
    if (waiting[0].revents != 0) Accept(state != State::kCut);
  }
}

}  // namespace hone::system_test
