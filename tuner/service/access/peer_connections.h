// Counts the open connections of each peer, which is an IPv4 address or an IPv6 network of 64 bits, the smallest that
// is given to somebody. Whoever a connection was handed to closes it without a word: it is open for as long as its
// descriptor is the socket that it was. Not from several threads at once.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace hone {

// The bytes of the address that connections are counted by.
std::string PeerOf(const sockaddr_storage& address);

class PeerConnections {
 public:
  // Counts `fd` as a connection of the peer's. False when the peer has `most` that are open, or had a moment before
  // `now`, which is of a clock that does not go back: nothing is counted then.
  bool Add(const std::string& peer, int fd, size_t most, absl::Time now);

 private:
  struct Socket {
    dev_t device = 0;
    ino_t inode = 0;
  };
  struct Peer {
    std::map<int, Socket> sockets;  // by descriptor
    absl::Time looked_at = absl::InfinitePast();
  };
  void Forget(int fd);

  std::map<std::string, Peer> peers_;
  std::map<int, std::string> peer_of_;  // by descriptor; of every socket above
};

}  // namespace hone
