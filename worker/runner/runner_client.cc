#include "worker/runner/runner_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/sandbox/control_group.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/policy.h"
#include "compiler/support/child_process.h"
#include "compiler/support/file.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/devices/device_drivers.h"
#include "worker/runner/poison.h"

namespace hone {
namespace {

// Of its control group, beyond what a candidate is given: what the kernel keeps for the process, and its own threads.
constexpr int64_t kKernelBytes = int64_t{64} << 20;
constexpr int kOtherThreads = 16, kThreadsOfThread = 2;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool SendLoad(int socket, const LoadRequest& request, std::span<const int> files) {
  iovec bytes{const_cast<LoadRequest*>(&request), sizeof(request)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(files.size_bytes());
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(files.size_bytes());
  std::memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(request));
}

// An empty folder of its own.
absl::StatusOr<std::string> MakeFolder() {
  std::string folder = (std::filesystem::temp_directory_path() / "hone-runner-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no folder for a driver: ", folder, ": ", std::strerror(errno)));
  return folder;
}

// Memory of a process that maps its devices is bounded by its control group alone.
bool MemoryIsUnbounded(const RunnerJob& job) {
  const DeviceDriver* const driver = FindDeviceDriver(DeviceLanguage(job.device));
  return driver != nullptr && driver->maps_devices;
}

LoadRequest LoadRequestOf(const RunnerJob& job) {
  LoadRequest request;
  request.sets = job.inputs->count();
  request.threads = job.threads;
  request.pin = job.pin;
  request.untimed = !job.timed;
  request.cpu_seconds = job.cpu_seconds;
  request.memory_bytes = MemoryIsUnbounded(job) ? 0 : job.memory_bytes;
  job.device.copy(request.device, std::min(job.device.find(','), sizeof(request.device) - 1));
  return request;
}

// A driver reads files: it keeps the root.
uint32_t AllowedMissingLayers(const RunnerJob& job, const SandboxPolicy& policy) {
  return job.allowed_missing_layers | (MemoryIsUnbounded(job) ? uint32_t{kLayerMemoryLimit} : 0) |
         (job.device.empty() ? 0 : uint32_t{kLayerEmptyRoot}) | LayersOfNamespaces(kAllNamespaces & ~policy.namespaces);
}

}  // namespace

absl::StatusOr<InputSets> InputSets::Make(const KernelSet& set, size_t count) {
  if (count == 0 || count > kRunnerMaxSets) {
    return absl::InvalidArgumentError(absl::StrCat(count, " input sets; a runner takes 1 to ", kRunnerMaxSets));
  }
  InputSets result;
  for (size_t s = 0; s < count; ++s)
    result.layouts_.push_back(LayOutSet(InputsOf(set), static_cast<int>(s), static_cast<int>(count)));
  HONE_ASSIGN_OR_RETURN(result.file_, MemoryFile::Create("hone-inputs", count * result.layouts_[0].total_bytes));
  Poison(result.file_.data(), result.file_.size(), 0);  // around the inputs
  return result;
}

absl::Status InputSets::WriteSet(size_t s, std::span<const std::string_view> values) {
  const std::vector<TensorPlace>& places = layouts_[s].places;
  if (values.size() != places.size()) {
    return absl::InvalidArgumentError(absl::StrCat(values.size(), " values for ", places.size(), " inputs"));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (values[i].size() != places[i].bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", places[i].bytes, " bytes, its value ", values[i].size()));
    }
    std::memcpy(file_.data() + places[i].at, values[i].data(), values[i].size());
  }
  return absl::OkStatus();
}

absl::StatusOr<InputSets> InputSets::Create(const KernelSet& set,
                                            const std::vector<std::vector<std::string_view>>& values) {
  HONE_ASSIGN_OR_RETURN(InputSets result, Make(set, values.size()));
  for (size_t s = 0; s < values.size(); ++s) { HONE_RETURN_IF_ERROR(result.WriteSet(s, values[s])); }
  HONE_RETURN_IF_ERROR(result.file_.Seal());
  return result;
}

absl::StatusOr<InputSets> InputSets::CreateRewritable(const KernelSet& set) {
  HONE_ASSIGN_OR_RETURN(InputSets result, Make(set, 1));
  HONE_RETURN_IF_ERROR(result.file_.SealForOthers());
  return result;
}

struct RunnerClient::Impl {
  KernelSet set;
  std::optional<ControlGroup> group;  // of the child: outlives it
  std::optional<ChildProcess> child;
  int socket = -1;
  MemoryFile outputs;  // of all sets
  std::vector<TensorFile> layouts;
  RunnerVerdict load;
  uint32_t layers = 0;
  bool alive = false;
  bool in_group = false;
  int timed_set = -1;  // that the plain inputs hold
  int threads = 1;
  bool device = false;
  std::string folder;  // that a driver writes to; "" where there is none

  ~Impl() {
    if (socket >= 0) ::close(socket);
    if (child.has_value()) child->Kill(SIGKILL);
    child.reset();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
  }

  absl::Status MakeOutputs(int sets) {
    for (int s = 0; s < sets; ++s) layouts.push_back(LayOutSet(OutputsOf(set), s, sets));
    HONE_ASSIGN_OR_RETURN(outputs, MemoryFile::Create("hone-outputs", layouts.size() * layouts.front().total_bytes));
    return absl::OkStatus();
  }

  // The process, in its control group, with one end of `socket`.
  absl::Status StartProcess(const RunnerJob& job, const SandboxPolicy& policy) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no socket for a runner: ", std::strerror(errno)));
    }
    socket = sockets[0];
    const std::string usual = absl::StrCat(ProgramFolder(), "/", policy.program);
    std::vector<std::string> arguments = {absl::StrCat(sockets[1])};
    if (device) arguments.push_back(folder);
    absl::StatusOr<ChildProcess> started = ChildProcess::Start(
        job.program.empty() ? usual : job.program, arguments,
        {.pipes = false, .error_pipe = true, .namespaces = policy.namespaces, .inherit = {sockets[1]}});
    ::close(sockets[1]);
    if (!started.ok()) return started.status();
    child = *std::move(started);
    alive = true;
    group = ControlGroup::Make(
        {.memory_bytes = job.memory_bytes + kKernelBytes, .processes = kOtherThreads + kThreadsOfThread * job.threads});
    in_group = group.has_value() && group->Add(child->pid());
    return absl::OkStatus();
  }

  // Has the process load the candidate, and ends it where it does not.
  void Load(const LoadRequest& request, std::span<const int> files, absl::Duration timeout) {
    if (!SendLoad(socket, request, files)) {
      load = End({.kind = RunnerVerdict::kCrashed, .message = "took no request"});
      return;
    }
    RunnerReply reply;
    load = Await(Clock::now(), timeout, &reply);
    if (reply.layers != 0) {
      layers = reply.layers | LayersOfNamespaces(child->namespaces()) | (in_group ? kLayerControlGroup : 0u);
    }
    if (!load.ok() && alive) load = End(std::move(load));
  }

  std::span<char> OutputsOfSet(int set) const {
    const size_t bytes = layouts[static_cast<size_t>(set)].total_bytes;
    return {outputs.data() + static_cast<size_t>(set) * bytes, bytes};
  }

  void PoisonOutputs(int set) {
    const std::span<char> bytes = OutputsOfSet(set);
    if (!bytes.empty()) Poison(bytes.data(), bytes.size(), set);
  }

  // The process is of no more use: end it and say what became of it.
  RunnerVerdict End(RunnerVerdict verdict) {
    alive = false;
    if (!child.has_value()) return verdict;
    if (verdict.kind == RunnerVerdict::kCrashed) {
      // It is dying by itself, with a status worth reading; a candidate that lingers is helped along.
      std::optional<int> status = child->Wait(absl::Seconds(2));
      if (!status.has_value()) {
        child->Kill(SIGKILL);
        status = child->Wait(absl::Seconds(10));
      }
      const std::string ended = status.has_value() ? DescribeWaitStatus(*status) : "does not end";
      const bool forbidden = status.has_value() && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGSYS;
      const std::string why = forbidden ? "made a system call that candidates must not make" : verdict.message;
      verdict.message = absl::StrCat("the runner ", ended, why.empty() ? "" : "; it ", why);
    } else {
      child->Kill(SIGKILL);
      child->Wait(absl::Seconds(10));
    }
    return verdict;
  }

  // Waits for the reply to what was sent at `start` or after.
  RunnerVerdict Await(Clock::time_point start, absl::Duration timeout, RunnerReply* reply) {
    const Clock::time_point deadline = start + std::chrono::nanoseconds(absl::ToInt64Nanoseconds(timeout));
    RunnerVerdict verdict;
    ssize_t got;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd waiting{socket, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        verdict.kind = RunnerVerdict::kTimedOut;
        verdict.message = absl::StrCat("no answer within ", absl::FormatDuration(timeout));
        return End(std::move(verdict));
      }
      got = ::recv(socket, reply, sizeof(*reply), MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      break;
    }
    verdict = ReadReply(*reply, got);
    verdict.elapsed_us = MicrosecondsSince(start);
    const bool ended = verdict.kind == RunnerVerdict::kCrashed || verdict.kind == RunnerVerdict::kDeviceLost;
    return ended ? End(std::move(verdict)) : verdict;
  }

  template <class Request>
  RunnerVerdict Ask(const Request& request, absl::Duration timeout, RunnerReply* reply) {
    if (!alive) return {.kind = RunnerVerdict::kCrashed, .message = "the runner has ended before"};
    char unasked;
    if (::recv(socket, &unasked, 1, MSG_DONTWAIT | MSG_PEEK) > 0) {
      return End({.kind = RunnerVerdict::kCrashed, .message = "spoke without being asked"});
    }
    const Clock::time_point start = Clock::now();
    if (::send(socket, &request, sizeof(request), MSG_NOSIGNAL) < 0) return End({.kind = RunnerVerdict::kCrashed});
    return Await(start, timeout, reply);
  }
};

RunnerClient::RunnerClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunnerClient::RunnerClient(RunnerClient&&) noexcept = default;
RunnerClient& RunnerClient::operator=(RunnerClient&&) noexcept = default;
RunnerClient::~RunnerClient() = default;

absl::StatusOr<RunnerClient> RunnerClient::Start(const RunnerJob& job) {
  if (job.inputs == nullptr) return absl::InvalidArgumentError("a runner needs inputs");
  auto impl = std::make_unique<Impl>();
  impl->set = job.set;
  impl->threads = job.threads;
  impl->device = !job.device.empty();
  if (impl->device) { HONE_ASSIGN_OR_RETURN(impl->folder, MakeFolder()); }
  HONE_ASSIGN_OR_RETURN(const MemoryFile image, MemoryFile::CreateSealed("hone-image", job.image));
  HONE_ASSIGN_OR_RETURN(const MemoryFile set, MemoryFile::CreateSealed("hone-kernel-set", Serialize(job.set)));
  HONE_RETURN_IF_ERROR(impl->MakeOutputs(job.inputs->count()));
  const SandboxPolicy& policy = SandboxPolicyOf(impl->device ? ProcessKind::kDeviceRunner : ProcessKind::kRunner);
  HONE_RETURN_IF_ERROR(impl->StartProcess(job, policy));
  const int files[] = {image.fd(), set.fd(), job.inputs->fd(), impl->outputs.fd()};
  impl->Load(LoadRequestOf(job), files, job.start_timeout);
  if (impl->load.ok()) {
    const uint32_t allowed = AllowedMissingLayers(job, policy);
    HONE_RETURN_IF_ERROR(CheckLayers(policy.program, impl->layers, allowed));
  }
  return RunnerClient(std::move(impl));
}

const RunnerVerdict& RunnerClient::load_verdict() const { return impl_->load; }
uint32_t RunnerClient::layers() const { return impl_->layers; }
bool RunnerClient::alive() const { return impl_->alive; }

double RunnerClient::ProcessorMicroseconds() const {
  clockid_t clock;
  timespec charged{};
  if (!impl_->alive || clock_getcpuclockid(impl_->child->pid(), &clock) != 0 || clock_gettime(clock, &charged) != 0) {
    return 0;
  }
  return static_cast<double>(charged.tv_sec) * 1e6 + static_cast<double>(charged.tv_nsec) * 1e-3;
}

double RunnerClient::WaitMicroseconds() const {
  const auto waited = [](const std::string& path) {
    unsigned long long ran = 0, delayed = 0;
    if (std::FILE* file = std::fopen(path.c_str(), "re")) {
      if (std::fscanf(file, "%llu %llu", &ran, &delayed) != 2) delayed = 0;
      std::fclose(file);
    }
    return static_cast<double>(delayed) * 1e-3;
  };
  if (!impl_->alive) return 0;
  return waited("/proc/thread-self/schedstat") + waited(absl::StrCat("/proc/", impl_->child->pid(), "/schedstat"));
}

RunnerVerdict RunnerClient::Verify(int set, absl::Duration timeout, Iterations iterations) {
  impl_->PoisonOutputs(set);
  RunnerReply reply;
  return impl_->Ask(VerifyRequest{.set = set, .iterations = iterations}, timeout, &reply);
}

RunnerVerdict RunnerClient::Time(const TimeRequest& request, absl::Duration timeout) {
  RunnerReply reply;
  // Warmed up (and inputs written, constants packed) in a request of its own, so that the other's duration is that of
  // the samples.
  const bool another_set = std::exchange(impl_->timed_set, request.set) != request.set;
  if (request.warm_up > 0 || another_set) {
    RunnerVerdict warm =
        impl_->Ask(TimeRequest{.warm_up = request.warm_up, .samples = 0, .set = request.set}, timeout, &reply);
    if (!warm.ok()) return warm;
  }
  // What an answer leaves untouched that was sent before the work was done is not what an earlier run left.
  if (request.copy_outputs != 0) impl_->PoisonOutputs(request.set);
  TimeRequest timed = request;
  timed.warm_up = 0;
  const double before = ProcessorMicroseconds();
  RunnerVerdict verdict = impl_->Ask(timed, timeout, &reply);
  const double charged = ProcessorMicroseconds() - before;
  const double elapsed = verdict.elapsed_us;
  return WithSamples(
      std::move(verdict), reply, request,
      {.elapsed_us = elapsed, .processor_us = charged, .threads = impl_->threads, .device = impl_->device});
}

RunnerVerdict RunnerClient::RunOnZeros(int set, absl::Duration timeout) {
  const std::span<char> outputs = impl_->OutputsOfSet(set);
  if (!outputs.empty()) std::memset(outputs.data(), 0, outputs.size());
  RunnerReply reply;
  return impl_->Ask(VerifyRequest{.set = set}, timeout, &reply);
}

std::string_view RunnerClient::output(int set, int index) const {
  const TensorPlace& place = impl_->layouts[static_cast<size_t>(set)].places[static_cast<size_t>(index)];
  return {impl_->outputs.data() + place.at, place.bytes};
}

bool RunnerClient::OutputEdgesIntact(int set) const {
  const std::span<const char> outputs = impl_->OutputsOfSet(set);
  const char* const file = impl_->outputs.data();
  const auto poisoned = [&](uint64_t from, uint64_t to) {
    const size_t before = static_cast<size_t>(outputs.data() - file);
    return IsPoisoned(outputs.data(), from - before, to - before, set);
  };
  for (const TensorPlace& place : impl_->layouts[static_cast<size_t>(set)].places) {
    if (!poisoned(place.region_at, place.at) || !poisoned(place.at + place.bytes, place.region_at + place.region_bytes))
      return false;
  }
  return true;
}

absl::StatusOr<uint32_t> LayersOfRunner(const std::string& program) {
  RunnerJob job{.image = "no image"};
  job.set.symbol = "none";
  job.set.params.push_back({"float32", {1}, sizeof(float)});
  job.set.num_outputs = 1;
  HONE_ASSIGN_OR_RETURN(const InputSets inputs, InputSets::Create(job.set, {{}}));
  job.inputs = &inputs;
  job.program = program;
  job.allowed_missing_layers = ~0u;
  job.start_timeout = absl::Minutes(1);  // of an emulator on a loaded machine
  HONE_ASSIGN_OR_RETURN(const RunnerClient runner, RunnerClient::Start(job));
  if (runner.layers() != 0) return runner.layers();
  return absl::UnavailableError(
      absl::StrCat(program, " does not say how it is locked in: ", runner.load_verdict().message));
}

}  // namespace hone
