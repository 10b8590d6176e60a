#include "tuner/service/access/peer_connections.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <vector>

namespace hone {
namespace {

// To look at a peer's sockets takes a system call for each: one that connects again and again must not have the
// listener do nothing else.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr size_t kIpv6NetworkBytes = 8;

}  // namespace

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return {reinterpret_cast<const char*>(&ip), kIpv6NetworkBytes};
  }
  const in_addr& ip = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  return {reinterpret_cast<const char*>(&ip), sizeof(ip)};
}

bool PeerConnections::Add(const std::string& peer, int fd, size_t most, absl::Time now) {
  Forget(fd);  // the connection that had this descriptor is closed, else it were not given out again
  const auto found = peers_.find(peer);
  if (found != peers_.end() && found->second.sockets.size() >= most && now - found->second.looked_at >= kBetweenLooks) {
    found->second.looked_at = now;
    std::vector<int> closed;
    for (const auto& [other, socket] : found->second.sockets) {
      struct stat info {};
      const bool open = ::fstat(other, &info) == 0 && info.st_dev == socket.device && info.st_ino == socket.inode;
      if (!open) closed.push_back(other);
    }
    for (const int other : closed) Forget(other);
  }
  Peer& counted = peers_[peer];
  if (counted.sockets.size() >= most) return false;
  struct stat info {};
  ::fstat(fd, &info);
  counted.sockets[fd] = {info.st_dev, info.st_ino};
  peer_of_[fd] = peer;
  return true;
}

void PeerConnections::Forget(int fd) {
  const auto found = peer_of_.find(fd);
  if (found == peer_of_.end()) return;
  const auto peer = peers_.find(found->second);
  peer->second.sockets.erase(fd);
  if (peer->second.sockets.empty()) peers_.erase(peer);
  peer_of_.erase(found);
}

}  // namespace hone
