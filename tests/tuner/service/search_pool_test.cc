// Which process answers which question.
#include "tuner/service/core/search_pool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

// A pool of hone-fake-search, which says a number of its process and dies of a second task, and one question at a time.
class Asker {
 public:
  explicit Asker(SearchPoolOptions options = {})
      : pool_(
            WithFake(options), [this](v1::SearchReply reply) { answer_.set_value(std::move(reply)); },
            [this](uint64_t, std::string reason) {
              v1::SearchReply failed;
              failed.set_error(reason);
              answer_.set_value(std::move(failed));
            }) {}

  v1::SearchReply Ask(uint64_t task, int observed = 0) {
    AskSearch question{.job = task / 10, .request = {}, .log = log_, .observed = observed};
    question.request.set_request_id(++last_request_);
    question.request.set_task_id(task);
    question.request.set_tenant(1);
    question.request.set_batch(1);
    question.request.mutable_workload()->set_name("a task");
    answer_ = {};
    std::future<v1::SearchReply> answer = answer_.get_future();
    pool_.Ask(std::move(question));
    return answer.get();
  }
  // The number of the process that answers.
  double ProcessOf(uint64_t task, int observed = 0) {
    const v1::SearchReply reply = Ask(task, observed);
    EXPECT_EQ(reply.error(), "");
    EXPECT_FALSE(reply.need_all());
    return reply.candidates_size() == 1 ? reply.candidates(0).predicted_us() : -1;
  }
  void Observe() { log_->Append({std::make_shared<const std::string>("trace")}); }
  SearchPool& pool() { return pool_; }

 private:
  static SearchPoolOptions WithFake(SearchPoolOptions options) {
    options.program.path = HONE_BIN "/hone-fake-search";
    options.program.allowed_missing = ~uint32_t{0};
    return options;
  }

  std::shared_ptr<ObservationLog> log_ = std::make_shared<ObservationLog>();
  uint64_t last_request_ = 0;
  std::promise<v1::SearchReply> answer_;
  SearchPool pool_;  // ends before what its threads use
};

// A limit of descriptors that leaves so many to be opened, wherever those lie that other tests have left open.
rlim_t LimitThatLeaves(int free) {
  int descriptor = 0;
  for (; free > 0; ++descriptor) free -= ::fcntl(descriptor, F_GETFD) < 0 ? 1 : 0;
  return static_cast<rlim_t>(descriptor);
}

// The processes of all pools.
std::set<pid_t> Searches() {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0, parent = 0;
    std::string name, state;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    std::ifstream(entry.path() / "stat") >> pid >> name >> state >> parent;
    if (parent == ::getpid() && name.starts_with("(hone-fake")) found.insert(pid);
  }
  return found;
}

TEST(SearchPool, AProcessServesOneTaskAndStaysWithIt) {
  Asker asker;
  const double first = asker.ProcessOf(1), second = asker.ProcessOf(2);
  EXPECT_NE(first, second) << "tasks of one tenant, and of one job";
  asker.Observe();
  EXPECT_EQ(asker.ProcessOf(1, 1), first);
  EXPECT_EQ(asker.ProcessOf(2, 1), second);
  EXPECT_EQ(asker.pool().crashes(), 0);
}

TEST(SearchPool, WhoWasAskedLongestAgoEndsAndTheNextIsToldEverything) {
  Asker asker({.most_waiting = 2});
  const double first = asker.ProcessOf(1), second = asker.ProcessOf(2);
  asker.Observe();
  EXPECT_EQ(asker.ProcessOf(1, 1), first);
  asker.ProcessOf(3, 1);
  EXPECT_EQ(asker.ProcessOf(1, 1), first);
  EXPECT_NE(asker.ProcessOf(2, 1), second);  // it was told nothing before
  EXPECT_EQ(Searches().size(), 2u);
  EXPECT_EQ(asker.pool().crashes(), 0);
}

// A fleet's jobs have hundreds of tasks, each asked in its turn.
TEST(SearchPool, ProcessesOfManyTasksStay) {
  constexpr uint64_t kTasks = 100;
  Asker asker;
  std::vector<double> first;
  for (uint64_t task = 1; task <= kTasks; ++task) first.push_back(asker.ProcessOf(task));
  for (uint64_t task = 1; task <= kTasks; ++task) EXPECT_EQ(asker.ProcessOf(task), first[task - 1]) << task;
}

// Descriptors here, as processes of a control group elsewhere.
TEST(SearchPool, WhereThereIsNoRoomForAProcessOthersEnd) {
  constexpr int kFree = 40;  // those of some ten that wait, and of one that starts
  Asker asker;
  asker.ProcessOf(1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{LimitThatLeaves(kFree), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (uint64_t task = 2; task <= kFree; ++task) asker.ProcessOf(task);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(asker.pool().crashes(), 0);
  EXPECT_LT(Searches().size(), kFree / 3);
}

TEST(SearchPool, WhoWaitsTakesSoMuchMemoryAtMost) {
  Asker asker({.most_waiting_bytes = 1});
  const double first = asker.ProcessOf(1);
  EXPECT_NE(asker.ProcessOf(1), first);
}

TEST(SearchPool, WhoIsNotAskedEndsAfterAWhile) {
  Asker asker({.longest_wait = absl::Milliseconds(1)});
  asker.ProcessOf(1);
  for (int i = 0; !Searches().empty() && i < 6000; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_THAT(Searches(), testing::IsEmpty());
}

TEST(SearchPool, ProcessesOfAnEndedJobEnd) {
  Asker asker;  // task 10 and up are job 1, 20 and up are job 2
  asker.ProcessOf(10);
  asker.ProcessOf(11);
  const double other = asker.ProcessOf(20);
  asker.pool().EndJob(1);
  for (int i = 0; Searches().size() > 1 && i < 6000; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(Searches().size(), 1u);
  EXPECT_EQ(asker.ProcessOf(20), other);
}

TEST(SearchPool, AProcessThatDiesIsReplacedAndOthersGoOn) {
  ::signal(SIGPIPE, SIG_IGN);  // as the daemon does
  Asker asker({.first_back_off = absl::Milliseconds(1)});
  const double first = asker.ProcessOf(1);
  const std::set<pid_t> started = Searches();
  ASSERT_EQ(started.size(), 1u);
  const double second = asker.ProcessOf(2);
  ::kill(*started.begin(), SIGKILL);
  EXPECT_THAT(asker.Ask(1).error(),
              testing::AllOf(testing::HasSubstr("search of task 1"), testing::HasSubstr("killed by signal")));
  EXPECT_NE(asker.ProcessOf(1), first);
  EXPECT_EQ(asker.ProcessOf(2), second);
  EXPECT_EQ(asker.pool().crashes(), 1);
}

}  // namespace
}  // namespace hone
