#include "tests/compiler/sandbox/outside.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace hone {

Outside* outside = nullptr;

namespace {

constexpr char kAbstract[] = "\0hone-escape-test";

template <class Address>
int Listen(int type, Address address) {
  const int fd = ::socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, type | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << std::strerror(errno);
  EXPECT_TRUE(type == SOCK_DGRAM || ::listen(fd, 64) == 0);
  outside->descriptors.push_back(fd);
  return fd;
}
int PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

sockaddr_un UnixAddress(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  return address;
}

sockaddr_un AbstractAddress(int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s-%d-%d", kAbstract + 1, outside->parent, type);
  return address;
}

void MakeOutside() {
  outside = new Outside;
  ASSERT_NE(::mkdtemp(outside->folder), nullptr);
  std::snprintf(outside->secret, sizeof(outside->secret), "%s/secret", outside->folder);
  std::snprintf(outside->made, sizeof(outside->made), "%s/made", outside->folder);
  std::snprintf(outside->socket_path, sizeof(outside->socket_path), "%s/socket", outside->folder);
  outside->leaked = ::open(outside->secret, O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(outside->leaked, "secret", 6), 6);
  outside->tcp_port = PortOf(Listen(SOCK_STREAM, Loopback(0)));
  outside->udp_port = PortOf(Listen(SOCK_DGRAM, Loopback(0)));
  Listen(SOCK_STREAM, UnixAddress(outside->socket_path));
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) Listen(type, AbstractAddress(type));
  outside->shared_memory = ::shmget(IPC_PRIVATE, 4096, 0600);
  ASSERT_GE(outside->shared_memory, 0);
  std::ifstream program("/bin/true", std::ios::binary);
  outside->program.assign(std::istreambuf_iterator<char>(program), {});
}

void TakeOutsideAway() {
  if (outside == nullptr) return;
  ::shmctl(outside->shared_memory, IPC_RMID, nullptr);
  for (const int fd : outside->descriptors) ::close(fd);
  ::close(outside->leaked);
  for (const char* path : {outside->secret, outside->made, outside->socket_path}) ::unlink(path);
  ::rmdir(outside->folder);
  delete outside;
  outside = nullptr;
}

}  // namespace hone
