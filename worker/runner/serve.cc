#include "worker/runner/serve.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "compiler/sandbox/enter.h"
#include "compiler/support/crash_point.h"
#include "worker/runner/protocol.h"

namespace hone {
namespace {

// What the signal handler reads; set before any candidate runs.
int g_socket = -1;
const ServedCandidate* g_candidate = nullptr;
RunnerReply g_crash;

bool Send(int socket, const RunnerReply& reply) {
  while (send(socket, &reply, ReplyBytes(reply), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Tells the agent where it happened and lets the signal take its course. Only calls that are safe here, and that the
// sandbox lets through. Of threads that fail together the first one reports, and the others must not end the process
// before it has.
void OnCrash(int signal_number, siginfo_t* info, void* context) {
  static std::atomic_flag reporting;
  while (reporting.test_and_set()) sched_yield();
  char* at = g_crash.message;
  const auto put = [&](const char* text) {
    while (*text != '\0' && at < g_crash.message + kRunnerMessageBytes - 1) *at++ = *text++;
  };
  const auto put_number = [&](uint64_t value, unsigned base) {
    char digits[24];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0 && at < g_crash.message + kRunnerMessageBytes - 1) *at++ = digits[--count];
  };
  if (signal_number == SIGSEGV || signal_number == SIGBUS) {
    put("touched 0x");
    put_number(reinterpret_cast<uintptr_t>(info->si_addr), 16);
    const ServedCandidate::Place place =
        g_candidate == nullptr ? ServedCandidate::Place{} : g_candidate->Describe(info->si_addr);
    if (place.index >= 0) {
      put(", ");
      put(place.where);
      put(place.what);
      put_number(static_cast<uint64_t>(place.index), 10);
    }
  } else {
    put(signal_number == SIGILL ? "an instruction this CPU does not have" : "a forbidden arithmetic operation");
  }
  *at = '\0';
  g_crash.outcome = RunnerOutcome::kCrashed;
  Send(g_socket, g_crash);
  // The instruction is tried again, and a signal that is blocked then ends the process.
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal_number);
}

void CatchCrashes() {
  static char stack[64 << 10];  // of its own: the usual one may have run over
  const stack_t alternate{stack, 0, sizeof(stack)};
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal_number, &action, nullptr);
}

constexpr int kFiles = 4;

// The load request and its descriptors; false when the agent is gone or talks nonsense.
bool Receive(int socket, LoadRequest* request, int* files, int* num_files) {
  iovec bytes{request, sizeof(*request)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFiles)];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  *num_files = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    *num_files = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files, CMSG_DATA(part), sizeof(int) * static_cast<size_t>(*num_files));
  }
  return got == sizeof(*request) && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
         request->command == RunnerCommand::kLoad && request->protocol == kRunnerProtocol && request->sets >= 1 &&
         request->sets <= kRunnerMaxSets && *num_files == kFiles;
}

RuntimeResult<std::unique_ptr<ServedCandidate>> LoadCandidate(const RunnerKind& kind, const LoadRequest& request,
                                                              std::span<const int> files) {
  try {
    return kind.load(request, files);
  } catch (const std::bad_alloc&) { return RuntimeError(RuntimeCode::kOutOfMemory, "out of memory"); }
}

RunnerOutcome OutcomeOfLoading(RuntimeCode code) {
  switch (code) {
    case RuntimeCode::kOutOfMemory: return RunnerOutcome::kOutOfMemory;
    case RuntimeCode::kNotFound: return RunnerOutcome::kNoDevice;
    case RuntimeCode::kDeviceLost: return RunnerOutcome::kDeviceLost;
    default: return RunnerOutcome::kRefused;
  }
}

// What one request asks for, into the reply. `request` holds `got` bytes.
void Answer(ServedCandidate& candidate, const char* request, size_t got, RunnerReply* reply) {
  reply->outcome = RunnerOutcome::kDone;
  reply->kernel_result = 0;
  reply->num_samples = 0;
  reply->elapsed_us = 0;
  reply->message[0] = '\0';
  RunnerCommand command;
  std::memcpy(&command, request, sizeof(command));
  if (command == RunnerCommand::kVerify && got == sizeof(VerifyRequest)) {
    VerifyRequest verify;
    std::memcpy(&verify, request, sizeof(verify));
    candidate.Verify(verify, reply);
  } else if (command == RunnerCommand::kTime && got == sizeof(TimeRequest)) {
    TimeRequest time;
    std::memcpy(&time, request, sizeof(time));
    candidate.Time(time, reply);
  } else {
    reply->outcome = RunnerOutcome::kRefused;
    std::snprintf(reply->message, sizeof(reply->message), "an unknown request");
  }
}

// Until the agent is gone. Ends the process without destructors.
[[noreturn]] void AnswerRequests(int socket, ServedCandidate& candidate, RunnerReply* reply) {
  alignas(8) char request[64];
  static_assert(sizeof(request) > sizeof(TimeRequest) && sizeof(request) > sizeof(VerifyRequest));
  while (true) {
    const ssize_t got = recv(socket, request, sizeof(request), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof(RunnerCommand))) _exit(0);
    CrashPoint("runner.asked");
    Answer(candidate, request, static_cast<size_t>(got), reply);
    CrashPoint("runner.done");
    if (!Send(socket, *reply)) _exit(0);
  }
}

}  // namespace

int ServeRunner(int socket, const RunnerKind& kind) {
  CrashPoint("runner.start");
  LoadRequest load;
  int files[kFiles], num_files = 0;
  if (!Receive(socket, &load, files, &num_files)) return 2;

  CrashPoint("runner.asked_to_load");
  static RunnerReply reply;  // 4 KiB of samples
  const SandboxPolicy& policy = SandboxPolicyOf(kind.process);
  // A driver is loaded under the filter that its launches run under: it compiles as late as then.
  const bool driver = policy.system_calls == SystemCalls::kDriver;
  SandboxLimits limits;
  limits.cpu_seconds = load.cpu_seconds;
  limits.memory_bytes = load.memory_bytes;
  limits.max_descriptors = policy.max_descriptors;
  limits.folders = kind.folders;
  limits.file_bytes = kind.file_bytes;
  std::vector<int> keep(files, files + num_files);
  keep.push_back(socket);
  reply.layers = EnterSandbox(limits, keep);
  if (driver) reply.layers |= LockSystemCalls(policy.system_calls);
  RuntimeResult<std::unique_ptr<ServedCandidate>> candidate =
      LoadCandidate(kind, load, {files, static_cast<size_t>(num_files)});
  for (int i = 0; i < num_files; ++i) close(files[i]);
  if (!candidate.ok()) {
    reply.outcome = OutcomeOfLoading(candidate.error().code());
    std::snprintf(reply.message, sizeof(reply.message), "%s", candidate.error().message().c_str());
    // The filter too, so that the reply says all that holds.
    if (!driver) reply.layers |= LockSystemCalls(policy.system_calls);
    Send(socket, reply);
    _exit(0);
  }
  g_socket = socket;
  g_candidate = candidate->get();
  CatchCrashes();
  if (!driver) reply.layers |= LockSystemCalls(policy.system_calls);
  CrashPoint("runner.loaded");
  reply.outcome = RunnerOutcome::kReady;
  if (!Send(socket, reply)) _exit(0);

  AnswerRequests(socket, **candidate, &reply);
}

}  // namespace hone
