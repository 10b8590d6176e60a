// What there is to be reached for who gets out of a sandbox: files, sockets, memory, a parent. A test makes it before
// anybody is locked in.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace hone {

struct Outside {
  char folder[64] = "/tmp/hone-escape-XXXXXX";
  char secret[96], made[96], socket_path[96];
  pid_t parent = ::getpid();
  int leaked = -1;  // a descriptor that a parent forgot
  int tcp_port = 0, udp_port = 0;
  int shared_memory = -1;
  char memory[8] = "parent";
  std::string program;  // the bytes of one
  std::vector<int> descriptors;
};
extern Outside* outside;  // nullptr: it is not made

void MakeOutside();
void TakeOutsideAway();

sockaddr_in Loopback(int port);
sockaddr_un UnixAddress(const char* path);
sockaddr_un AbstractAddress(int type);  // in the abstract name space: a zero first; one of each type

}  // namespace hone
