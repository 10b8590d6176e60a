#include "tuner/service/core/search_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone {

// The process of one task, and what it was sent.
struct SearchPool::Searcher {
  uint64_t job = 0, task = 0;
  bool job_ended = false;
  std::unique_ptr<SandboxedProcess> child;
  int has = 0;         // observations
  uint64_t model = 0;  // generation of the cost model; 0: none
  absl::Time asked;    // last
  int64_t bytes = 0;   // of memory that it alone has, when it was last asked
};

// A thread that asks one process at a time. Processes end with the thread that started them, so that all threads live
// as long as the pool.
struct SearchPool::Slot {
  int number = 0;
  std::unique_ptr<Searcher> asks;  // replaced under the pool's mutex
  int failures = 0;                // in a row
  absl::Time not_before = absl::InfinitePast();
  bool idle = false;  // it waits, and nobody has woken it
  std::condition_variable woken;
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

std::string NameOf(uint64_t task, const SandboxedProcess& child) {
  return absl::StrCat("search of task ", task, ", pid ", child.pid());
}

void LogWords(const std::string& name, SandboxedProcess& child) {
  const std::string words = child.TakeErrors();
  for (const absl::string_view line : absl::StrSplit(words, '\n', absl::SkipWhitespace())) {
    spdlog::warn("{}: {}", name, std::string(line));
  }
}

// What it has in memory and shares with no other; 0 where the system does not tell.
int64_t OwnBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t all = 0, resident = 0, shared = 0;
  file >> all >> resident >> shared;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

v1::SearchRequest WithHistory(const AskSearch& question, int first) {
  v1::SearchRequest request = question.request;
  question.log->AddTo(&request, first, question.observed);
  return request;
}

}  // namespace

size_t MostWaitingSearches() {
  constexpr rlim_t kMost = 1024;
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return 1;
  return std::clamp<rlim_t>(descriptors.rlim_cur / 15, 1, kMost);
}

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
      if (slot->asks != nullptr) slot->asks->child->Kill();
      Wake(*slot);
    }
  }
  for (const auto& slot : slots_) slot->thread.join();
  waiting_for_.clear();
  waiting_.clear();
  ended_.clear();
}

// One, whose thread waits on a condition of its own: the dispatcher asks, and where several wait on one condition its
// notification waits at times for those to run that the one before it woke. One that pauses after a failure comes last.
void SearchPool::WakeOne() {
  Slot* first = nullptr;
  for (const auto& slot : slots_) {
    if (slot->idle && (first == nullptr || slot->not_before < first->not_before)) first = slot.get();
  }
  if (first != nullptr) Wake(*first);  // else the next one that has its answer looks
}

void SearchPool::Wake(Slot& slot) {
  slot.idle = false;
  slot.woken.notify_one();
}

void SearchPool::Ask(AskSearch question) {
  const std::lock_guard<std::mutex> guard(mutex_);
  queue_.push_back(std::move(question));
  WakeOne();
}

void SearchPool::EndJob(uint64_t job) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto next = std::next(waiting);
    if ((*waiting)->job == job) ended_.push_back(Take(waiting));
    waiting = next;
  }
  for (const auto& slot : slots_) {
    if (slot->asks != nullptr && slot->asks->job == job) slot->asks->job_ended = true;
  }
  WakeOne();
}

std::unique_ptr<SearchPool::Searcher> SearchPool::Take(Searchers::iterator waiting) {
  std::unique_ptr<Searcher> searcher = std::move(*waiting);
  waiting_.erase(waiting);
  waiting_for_.erase(searcher->task);
  waiting_bytes_ -= searcher->bytes;
  return searcher;
}

std::unique_ptr<SearchPool::Searcher> SearchPool::TakeWaiting(uint64_t task) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = waiting_for_.find(task);
  return found == waiting_for_.end() ? nullptr : Take(found->second);
}

void SearchPool::LetWait(Slot& slot) {
  slot.asks->asked = MonotonicNow();
  slot.asks->bytes = OwnBytes(slot.asks->child->pid());
  Searchers ended;  // without the mutex
  const std::lock_guard<std::mutex> guard(mutex_);
  std::unique_ptr<Searcher> searcher = std::move(slot.asks);
  if (searcher->job_ended) {
    ended.push_back(std::move(searcher));
    return;
  }
  const auto same = waiting_for_.find(searcher->task);  // two questions about one task were asked at once
  if (same != waiting_for_.end()) ended.push_back(Take(same->second));
  waiting_bytes_ += searcher->bytes;
  const uint64_t task = searcher->task;
  waiting_.push_front(std::move(searcher));
  waiting_for_[task] = waiting_.begin();
  ended.splice(ended.end(), TakeUnneeded());
}

SearchPool::Searchers SearchPool::TakeUnneeded() {
  Searchers ended = std::exchange(ended_, {});
  const absl::Time least = MonotonicNow() - options_.longest_wait;
  while (!waiting_.empty() && (waiting_.size() > options_.most_waiting ||
                               waiting_bytes_ > options_.most_waiting_bytes || waiting_.back()->asked <= least)) {
    ended.push_back(Take(std::prev(waiting_.end())));
  }
  return ended;
}

// Where the system has no room for another process, half of those that wait make some.
absl::StatusOr<std::unique_ptr<SandboxedProcess>> SearchPool::StartProcess() {
  for (;;) {
    absl::StatusOr<std::unique_ptr<SandboxedProcess>> child = SandboxedProcess::Start(options_.program);
    Searchers ended;  // without the mutex
    if (!absl::IsResourceExhausted(child.status())) return child;
    const std::lock_guard<std::mutex> guard(mutex_);
    if (waiting_.empty()) return child;
    for (size_t left = waiting_.size() / 2; waiting_.size() > left;) ended.push_back(Take(std::prev(waiting_.end())));
  }
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

absl::StatusOr<v1::SearchReply> SearchPool::Answer(Searcher& searcher, const AskSearch& question) {
  const absl::Time deadline = MonotonicNow() + options_.reply_timeout;
  const ModelOwner owner{question.request.tenant(), question.request.device().device_class()};
  v1::SearchRequest first = WithHistory(question, std::min(searcher.has, question.observed));
  if (!owner.device_class.empty()) {
    const Model newest = NewestModel(owner);
    if (!newest.bytes.empty() && searcher.model != newest.generation) first.set_cost_model(newest.bytes);
    searcher.model = newest.generation;
  }
  absl::StatusOr<v1::SearchReply> answer = Exchange(*searcher.child, first, deadline);
  if (!answer.ok()) {
    // It may have died of the model: it is not given to anyone again, the next one that is handed back is.
    if (!first.cost_model().empty()) KeepModel(owner, "");
    return answer;
  }
  if (answer->need_all()) {
    HONE_ASSIGN_OR_RETURN(answer, Exchange(*searcher.child, WithHistory(question, 0), deadline));
  }
  searcher.has = question.observed;
  if (!answer->cost_model().empty() && !owner.device_class.empty() && answer->cost_model().size() <= kMostModelBytes) {
    searcher.model = KeepModel(owner, answer->cost_model());
    if (keeper_.save != nullptr) keeper_.save(owner, std::move(*answer->mutable_cost_model()));
  }
  answer->clear_cost_model();
  return answer;
}

std::optional<AskSearch> SearchPool::Next(Slot& slot) {
  const absl::Duration kLookAgain = absl::Seconds(10);  // for those that have waited too long
  Searchers ended;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    // A process that keeps dying is not started again at once.
    const absl::Duration pause = slot.not_before - MonotonicNow();
    if (!queue_.empty() && pause <= absl::ZeroDuration()) {
      AskSearch question = std::move(queue_.front());
      queue_.pop_front();
      return question;
    }
    ended = TakeUnneeded();
    if (!ended.empty()) {
      lock.unlock();
      ended.clear();
      lock.lock();
      continue;
    }
    const absl::Duration wait = std::min(queue_.empty() ? options_.longest_wait : pause, kLookAgain);
    slot.idle = true;
    slot.woken.wait_for(lock, absl::ToChronoMilliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
    slot.idle = false;
  }
  return std::nullopt;
}

absl::StatusOr<v1::SearchReply> SearchPool::AnswerAt(Slot& slot, const AskSearch& question) {
  const uint64_t task = question.request.task_id();
  std::unique_ptr<Searcher> searcher = TakeWaiting(task);
  if (searcher == nullptr) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<SandboxedProcess> child, StartProcess());
    const std::string missing = LayerNames(MissingLayers(child->layers()));
    spdlog::info("{} started{}{}", NameOf(task, *child), missing.empty() ? "" : "; its sandbox lacks ", missing);
    searcher = std::make_unique<Searcher>();
    searcher->job = question.job;
    searcher->task = task;
    searcher->child = std::move(child);
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    slot.asks = std::move(searcher);
    if (stopping_) return absl::CancelledError("stopping");
  }
  const absl::StatusOr<v1::SearchReply> reply = Answer(*slot.asks, question);
  const std::string name = NameOf(task, *slot.asks->child);
  LogWords(name, *slot.asks->child);
  if (!reply.ok()) return Annotate(reply.status(), name);
  return reply;
}

void SearchPool::Run(Slot& slot) {
  while (const std::optional<AskSearch> question = Next(slot)) {
    const absl::StatusOr<v1::SearchReply> reply = AnswerAt(slot, *question);
    std::unique_ptr<Searcher> searcher;  // that is of no more use
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (stopping_ || !reply.ok()) searcher = std::move(slot.asks);
      if (stopping_) break;
    }
    if (reply.ok()) {
      slot.failures = 0;
      CrashPoint("searches.answered");
      LetWait(slot);
      done_(*reply);
      continue;
    }
    searcher = nullptr;
    ++crashes_;
    const absl::Duration pause =
        std::min(options_.longest_back_off, options_.first_back_off * (1 << std::min(slot.failures, 10)));
    ++slot.failures;
    slot.not_before = MonotonicNow() + pause;
    const std::string reason(reply.status().message());
    spdlog::warn("{}", reason);
    failed_(question->request.request_id(), reason);
  }
}

}  // namespace hone
