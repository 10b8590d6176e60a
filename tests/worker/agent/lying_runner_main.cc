// A runner whose clock runs at half speed, for the tests of what a worker believes: it hands every request to a
// hone-runner of its own and halves the times in the answers. The work is done in another process, so that this one is
// charged next to no processor time. While the file that HONE_LYING_RUNNER_LACKS names is there, it dies of an
// instruction that its CPU does not have, whatever it is to run.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "compiler/support/child_process.h"
#include "compiler/support/file.h"
#include "worker/runner/protocol.h"

namespace hone {
namespace {

constexpr int kMostFiles = 8;

// One message with its descriptors, from one socket to the other; false when there is none. `change` may alter it.
template <class Change>
bool Relay(int from, int to, Change change) {
  static std::array<char, sizeof(RunnerReply)> bytes;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFiles)];
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(from, &message, 0);
  if (got <= 0) return false;
  part.iov_len = static_cast<size_t>(got);
  change(bytes.data());
  const bool sent = sendmsg(to, &message, MSG_NOSIGNAL) == got;
  const cmsghdr* files = CMSG_FIRSTHDR(&message);
  for (size_t at = 0; files != nullptr && CMSG_LEN(at) < files->cmsg_len; at += sizeof(int)) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(files) + at, sizeof(fd));
    close(fd);
  }
  return sent;
}

void HalveTimes(char* bytes) {
  RunnerReply* const reply = reinterpret_cast<RunnerReply*>(bytes);
  reply->elapsed_us /= 2;
  for (int i = 0; i < reply->num_samples; ++i) reply->samples[i].us /= 2;
}

void RunOrDie(const char* bytes) {
  const char* const lacks = std::getenv("HONE_LYING_RUNNER_LACKS");
  RunnerCommand command;
  std::memcpy(&command, bytes, sizeof(command));
  if (lacks != nullptr && command != RunnerCommand::kLoad && access(lacks, F_OK) == 0) __builtin_trap();
}

int Serve(int agent) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return 1;
  const absl::StatusOr<ChildProcess> child = ChildProcess::Start(
      ProgramFolder() + "/hone-runner", {std::to_string(sockets[1])}, {.pipes = false, .inherit = {sockets[1]}});
  close(sockets[1]);
  if (!child.ok()) return 1;
  while (Relay(agent, sockets[0], RunOrDie) && Relay(sockets[0], agent, HalveTimes)) {}
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return argc == 2 ? hone::Serve(std::atoi(argv[1])) : 1; }
