#include "tuner/service/search_pool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone {

struct SearchPool::Slot {
  int number = 0;
  std::deque<AskSearch> queue;      // under the pool's mutex, like `child`'s replacement
  std::condition_variable changed;  // the queue, or the pool stops
  std::unique_ptr<SandboxedProcess> child;
  uint64_t tenant = 0;                    // the only one whose tasks the child has seen
  std::map<uint64_t, int> has;            // observations of each task the child was sent
  std::map<ModelOwner, uint64_t> models;  // the generation of each model that it has
  int failures = 0;                       // in a row
  absl::Time not_before = absl::InfinitePast();
  std::thread thread;
};

namespace {

constexpr size_t kReplyLimit = 256 << 20;
// A model is at most 4 MiB (tuner/model); what is far beyond that is not kept.
constexpr size_t kMostModelBytes = 8 << 20;

// One question and its answer. On an error the child is of no more use.
absl::StatusOr<v1::SearchReply> Exchange(SandboxedProcess& child, const v1::SearchRequest& request,
                                         absl::Time deadline) {
  CrashPoint("searches.asking");
  HONE_RETURN_IF_ERROR(child.Send(request.SerializeAsString(), deadline - MonotonicNow()));
  CrashPoint("searches.asked");
  HONE_ASSIGN_OR_RETURN(const std::string bytes, child.Receive(kReplyLimit, deadline - MonotonicNow()));
  v1::SearchReply reply;
  if (!reply.ParseFromString(bytes) || reply.request_id() != request.request_id()) {
    return absl::DataLossError("its answer cannot be read");
  }
  return reply;
}

void LogWords(int number, SandboxedProcess& child) {
  const std::string words = child.TakeErrors();
  for (const absl::string_view line : absl::StrSplit(words, '\n', absl::SkipWhitespace())) {
    spdlog::warn("search process {}: {}", number, std::string(line));
  }
}

v1::SearchRequest WithHistory(const AskSearch& question, int first) {
  v1::SearchRequest request = question.request;
  question.log->AddTo(&request, first, question.observed);
  return request;
}

}  // namespace

SearchPool::SearchPool(const SearchPoolOptions& options, std::function<void(v1::SearchReply)> done,
                       std::function<void(uint64_t, std::string)> failed, ModelKeeper models)
    : options_(options), done_(std::move(done)), failed_(std::move(failed)), keeper_(std::move(models)) {
  for (int i = 0; i < std::max(1, options.processes); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_.back();
    slot.number = i;
    slot.thread = std::thread([this, &slot] { Run(slot); });
  }
}

SearchPool::~SearchPool() { Stop(); }

void SearchPool::Stop() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_) return;
    stopping_ = true;
    for (const auto& slot : slots_) {
      if (slot->child != nullptr) slot->child->Kill();
    }
  }
  for (const auto& slot : slots_) slot->changed.notify_all();
  for (const auto& slot : slots_) slot->thread.join();
}

void SearchPool::Ask(AskSearch question) {
  const std::lock_guard<std::mutex> guard(mutex_);
  // The process that knows the task, unless it has a queue and another has none. (One that is asked for another
  // tenant's task begins anew.)
  Slot* best = slots_[question.request.task_id() % slots_.size()].get();
  for (const auto& slot : slots_) {
    if (slot->queue.size() + 1 < best->queue.size()) best = slot.get();
  }
  best->queue.push_back(std::move(question));
  best->changed.notify_one();
}

SearchPool::Model SearchPool::NewestModel(const ModelOwner& owner) {
  const std::lock_guard<std::mutex> guard(models_mutex_);
  const auto [found, fresh] = models_.try_emplace(owner);
  if (fresh && keeper_.load != nullptr) found->second = {keeper_.load(owner), 1};
  return found->second;
}

uint64_t SearchPool::KeepModel(const ModelOwner& owner, std::string bytes) {
  const std::lock_guard<std::mutex> guard(models_mutex_);
  Model& model = models_[owner];
  model.bytes = std::move(bytes);
  return ++model.generation;
}

absl::StatusOr<v1::SearchReply> SearchPool::Answer(Slot& slot, const AskSearch& question) {
  const absl::Time deadline = MonotonicNow() + options_.reply_timeout;
  const ModelOwner owner{question.request.tenant(), question.request.device().device_class()};
  int& has = slot.has[question.request.task_id()];
  v1::SearchRequest first = WithHistory(question, std::min(has, question.observed));
  if (!owner.device_class.empty()) {
    const Model newest = NewestModel(owner);
    if (!newest.bytes.empty() && slot.models[owner] != newest.generation) first.set_cost_model(newest.bytes);
    slot.models[owner] = newest.generation;
  }
  absl::StatusOr<v1::SearchReply> answer = Exchange(*slot.child, first, deadline);
  if (!answer.ok()) {
    // It may have died of the model: it is not given to anyone again, the next one that is handed back is.
    if (!first.cost_model().empty()) KeepModel(owner, "");
    return answer;
  }
  if (answer->need_all()) { HONE_ASSIGN_OR_RETURN(answer, Exchange(*slot.child, WithHistory(question, 0), deadline)); }
  has = question.observed;
  if (!answer->cost_model().empty() && !owner.device_class.empty() && answer->cost_model().size() <= kMostModelBytes) {
    slot.models[owner] = KeepModel(owner, answer->cost_model());
    if (keeper_.save != nullptr) keeper_.save(owner, std::move(*answer->mutable_cost_model()));
  }
  answer->clear_cost_model();
  return answer;
}

void SearchPool::Run(Slot& slot) {
  for (;;) {
    AskSearch question;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      slot.changed.wait(lock, [&] { return stopping_ || !slot.queue.empty(); });
      // A process that keeps dying is not started again at once.
      const absl::Duration pause = slot.not_before - MonotonicNow();
      if (!stopping_ && pause > absl::ZeroDuration()) {
        slot.changed.wait_for(lock, absl::ToChronoMilliseconds(pause), [&] { return stopping_; });
      }
      if (stopping_) break;
      question = std::move(slot.queue.front());
      slot.queue.pop_front();
    }
    if (slot.child != nullptr && slot.tenant != question.request.tenant()) {  // it knows what another tenant sent
      const std::lock_guard<std::mutex> guard(mutex_);
      slot.child = nullptr;
    }
    const absl::StatusOr<v1::SearchReply> reply = [&]() -> absl::StatusOr<v1::SearchReply> {
      if (slot.child == nullptr) {
        HONE_ASSIGN_OR_RETURN(std::unique_ptr<SandboxedProcess> child, SandboxedProcess::Start(options_.program));
        const std::string missing = LayerNames(MissingLayers(child->layers()));
        spdlog::info("search process {} started, pid {}{}{}", slot.number, child->pid(),
                     missing.empty() ? "" : "; its sandbox lacks ", missing);
        slot.tenant = question.request.tenant();
        slot.has.clear();
        slot.models.clear();
        const std::lock_guard<std::mutex> guard(mutex_);
        slot.child = std::move(child);
        if (stopping_) return absl::CancelledError("stopping");
      }
      return Answer(slot, question);
    }();
    if (slot.child != nullptr) LogWords(slot.number, *slot.child);
    if (reply.ok()) {
      slot.failures = 0;
      CrashPoint("searches.answered");
      done_(*reply);
      continue;
    }
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (stopping_) break;
      slot.child = nullptr;
    }
    ++crashes_;
    const absl::Duration pause =
        std::min(options_.longest_back_off, options_.first_back_off * (1 << std::min(slot.failures, 10)));
    ++slot.failures;
    slot.not_before = MonotonicNow() + pause;
    const std::string reason =
        absl::StrCat("search process ", slot.number, ": ", std::string(reply.status().message()));
    spdlog::warn("{}", reason);
    failed_(question.request.request_id(), reason);
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  slot.child = nullptr;
}

}  // namespace hone
