#include "worker/agent/builder_pool.h"

#include <signal.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "compiler/support/frame.h"

namespace hone {
namespace {

constexpr size_t kReplyLimit = 256 << 20;

}  // namespace

BuilderPool::BuilderPool(int builders, std::string program)
    : program_(program.empty() ? ProgramFolder() + "/hone-builder" : std::move(program)),
      builders_(static_cast<size_t>(builders)) {}

std::vector<BuilderPool::Built> BuilderPool::Build(const std::vector<v1::BuildRequest>& requests,
                                                   absl::Duration limit) {
  std::vector<Built> results(requests.size());
  std::atomic<size_t> next{0};
  const auto serve = [&](size_t builder) {
    for (size_t i; (i = next++) < requests.size();) results[i] = BuildOn(builder, requests[i], limit);
  };
  std::vector<std::thread> others;
  for (size_t b = 1; b < std::min(builders_.size(), requests.size()); ++b) others.emplace_back(serve, b);
  serve(0);
  for (std::thread& other : others) other.join();
  return results;
}

BuilderPool::Built BuilderPool::BuildOn(size_t builder, const v1::BuildRequest& request, absl::Duration limit) {
  Built built;
  built.reply.set_id(request.id());
  std::unique_ptr<ChildProcess>& process = builders_[builder];
  if (process == nullptr) {
    // Threads of this pool end with each call, and a child must not be taken with them: no death signal, it ends when
    // its input closes.
    ChildOptions options;
    options.detached = true;
    absl::StatusOr<ChildProcess> started = ChildProcess::Start(program_, {}, options);
    if (!started.ok()) {
      built.infrastructure = true;
      built.reply.set_error(std::string(started.status().message()));
      return built;
    }
    process = std::make_unique<ChildProcess>(*std::move(started));
  }
  absl::Status status = WriteFrame(process->input(), request.SerializeAsString(), limit);
  if (status.ok()) {
    const absl::StatusOr<std::string> bytes = ReadFrame(process->output(), kReplyLimit, limit);
    status = bytes.status();
    if (status.ok() && built.reply.ParseFromString(*bytes) && built.reply.id() == request.id()) return built;
    if (status.ok()) status = absl::DataLossError("the answer is not a BuildReply");
  }
  // Whatever it was, this builder has had its day.
  built.timed_out = absl::IsDeadlineExceeded(status);
  process->Kill(SIGKILL);
  const std::optional<int> ended = process->Wait(absl::Seconds(5));
  process.reset();
  built.reply.Clear();
  built.reply.set_id(request.id());
  built.reply.set_error(built.timed_out
                            ? absl::StrCat("building took longer than ", absl::FormatDuration(limit))
                            : absl::StrCat("the builder ", ended.has_value() ? DescribeWaitStatus(*ended) : "hangs",
                                           ": ", std::string(status.message())));
  return built;
}

}  // namespace hone
