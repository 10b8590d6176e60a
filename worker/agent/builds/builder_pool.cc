#include "worker/agent/builds/builder_pool.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/file.h"
#include "compiler/target/gpu_target.h"
#include "deploy/runtime/devices/device_drivers.h"
#include "worker/agent/builds/build_reply.h"

namespace hone {
namespace {

constexpr size_t kReplyLimit = 256 << 20;

// Of the device that is built for, whose compiler a builder opens before it locks itself in; "" for the host.
std::string LanguageOf(const v1::BuildRequest& request) {
  const std::string& target = request.target();
  return NamesGpu(target) ? std::string(DeviceLanguage(target)) : "";
}

}  // namespace

BuilderPool::BuilderPool(int builders, std::string program, uint32_t allowed_missing_layers)
    : program_{.path = program.empty() ? ProgramFolder() + "/hone-builder" : std::move(program),
               .allowed_missing = allowed_missing_layers},
      builders_(static_cast<size_t>(builders)) {
  for (Builder& builder : builders_) builder.thread = std::thread([this, &builder] { Serve(builder); });
}

BuilderPool::~BuilderPool() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (Builder& builder : builders_) builder.thread.join();
}

void BuilderPool::Serve(Builder& builder) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || begun_ < requests_.size(); });
    if (stopping_) return;
    const size_t request = begun_++;
    lock.unlock();
    v1::BuildOutcome outcome = BuildOn(builder, requests_[request], limit_);
    lock.lock();
    built_.push_back({request, std::move(outcome)});
    done_.notify_all();
  }
}

void BuilderPool::Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  HONE_CHECK(handed_out_ == requests_.size()) << "what was begun before is not all taken";
  requests_ = std::move(requests);
  limit_ = limit;
  begun_ = handed_out_ = 0;
  work_.notify_all();
}

std::optional<Builders::Built> BuilderPool::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (handed_out_ == requests_.size()) return std::nullopt;
  done_.wait(lock, [&] { return !built_.empty(); });
  Built built = std::move(built_.front());
  built_.pop_front();
  ++handed_out_;
  return built;
}

v1::BuildOutcome BuilderPool::BuildOn(Builder& builder, const v1::BuildRequest& request, absl::Duration limit) const {
  v1::BuildOutcome outcome;
  v1::BuildReply& reply = *outcome.mutable_reply();
  reply.set_id(request.id());
  const std::string language = LanguageOf(request);
  if (builder.task != request.task() || builder.workload != request.workload() || builder.language != language) {
    builder.process.reset();
  }
  if (builder.process == nullptr) {
    SandboxedProgram program = program_;
    if (!language.empty()) program.arguments.push_back(language);
    absl::StatusOr<std::unique_ptr<SandboxedProcess>> started = SandboxedProcess::Start(program);
    if (!started.ok()) {
      outcome.set_infrastructure(true);
      reply.set_error(std::string(started.status().message()));
      return outcome;
    }
    builder.process = *std::move(started);
    builder.task = request.task();
    builder.workload = request.workload();
    builder.language = language;
  }
  absl::Status status = builder.process->Send(request.SerializeAsString(), limit);
  if (status.ok()) {
    const absl::StatusOr<std::string> bytes = builder.process->Receive(kReplyLimit, limit);
    status = bytes.ok() ? ReadBuildReply(*bytes, request.id(), &reply) : bytes.status();
    if (status.ok()) return outcome;
  }
  // Whatever it was, this builder has had its day.
  builder.process.reset();
  outcome.set_timed_out(absl::IsDeadlineExceeded(status));
  reply.Clear();
  reply.set_id(request.id());
  reply.set_error(outcome.timed_out() ? absl::StrCat("building took longer than ", absl::FormatDuration(limit))
                                      : absl::StrCat("the builder: ", std::string(status.message())));
  return outcome;
}

}  // namespace hone
