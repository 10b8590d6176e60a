#include "tuner/service/endpoints/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compiler/support/monotonic_clock.h"
#include "spdlog/spdlog.h"
#include "tuner/service/core/search_pool.h"

namespace hone {
namespace {

constexpr int kBacklog = 1024;
// Descriptors for files, the database and search processes, three each, whatever the connections take.
int Spare() { return 64 + 3 * static_cast<int>(MostWaitingSearches()); }
constexpr absl::Duration kPause = absl::Milliseconds(50);  // after an accept that failed

absl::Status CannotListen(const std::string& address, const std::string& reason) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", reason));
}

// A socket that listens there; negative: errno.
int ListenAt(const sockaddr* name, socklen_t size) {
  const int fd = ::socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (name->sa_family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (::bind(fd, name, size) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return -error;
}

uint16_t& PortOf(sockaddr_storage& name) {
  return name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                    : reinterpret_cast<sockaddr_in&>(name).sin_port;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found); error != 0) {
    return CannotListen(address, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> names(found, ::freeaddrinfo);
  std::unique_ptr<Listener> listener(new Listener());
  uint16_t port = 0;  // in the network's order; the same at every address
  int error = 0;
  for (const addrinfo* name = names.get(); name != nullptr; name = name->ai_next) {
    sockaddr_storage at{};
    std::memcpy(&at, name->ai_addr, name->ai_addrlen);
    if (port != 0) PortOf(at) = port;
    const int fd = ListenAt(reinterpret_cast<const sockaddr*>(&at), name->ai_addrlen);
    if (fd < 0) {
      error = -fd;
      if (error == EADDRINUSE) break;
      continue;  // IPv6 may be switched off
    }
    listener->listeners_.push_back(fd);
    socklen_t size = sizeof(at);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    port = PortOf(at);
  }
  if (listener->listeners_.empty() || error == EADDRINUSE) {
    return CannotListen(address, "the address is in use or not of this machine");
  }
  listener->address_ = absl::StrCat(address.substr(0, colon), ":", ntohs(port));
  return listener;
}

Listener::~Listener() {
  Stop();
  for (const int fd : listeners_) ::close(fd);
}

void Listener::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor,
                     const ConnectionLimits& limits) {
  acceptor_ = std::move(acceptor);
  limits_ = limits;
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof(one)));
  thread_.join();
  ::close(wake_);
}

void Listener::Run() {
  std::vector<pollfd> waits{{wake_, POLLIN, 0}};
  for (const int fd : listeners_) waits.push_back({fd, POLLIN, 0});
  for (;;) {
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) return;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents != 0) Take(waits[i].fd);
    }
  }
}

void Listener::Take(int listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) absl::SleepFor(kPause);
    return;
  }
  if (const char* why = WhyRefused(fd, peer); why != nullptr) {
    ::close(fd);
    spdlog::debug("a connection is closed: {}", why);
    return;
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

const char* Listener::WhyRefused(int fd, const sockaddr_storage& peer) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int may_have = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30)) - Spare();
  // A descriptor of number n means that n others are in use.
  const int most = std::min(limits_.all, may_have - (wake_ + 1));
  if (fd >= wake_ + 1 + most) return "there are as many as there may be (honed --max-connections)";
  const size_t of_peer = static_cast<size_t>(std::max(1, std::min(limits_.of_peer, most / 2)));
  const bool taken = peers_.Add(PeerOf(peer), fd, of_peer, MonotonicNow());
  return taken ? nullptr : "its address has as many as one may have (honed --max-peer-connections)";
}

}  // namespace hone
