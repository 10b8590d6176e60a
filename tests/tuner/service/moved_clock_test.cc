// The clock on the wall jumps by a day, forwards and back, while jobs run: they do not notice.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/fake_task.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kDay = 24 * 60 * 60;

// A daemon whose clock on the wall is where it is put.
class MovedClock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer's library has to be loaded first";
    const std::string file = folder_ / "moved";
    std::ofstream(file) << std::string(sizeof(int64_t), '\0');
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    void* seconds = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HONE_CHECK(fd >= 0 && seconds != MAP_FAILED);
    close(fd);
    seconds_ = static_cast<int64_t*>(seconds);
    setenv("HONE_TEST_MOVED_CLOCK", file.c_str(), 1);
    setenv("LD_PRELOAD", HONE_BIN "/../lib/libhone_moved_clock.so", 1);
    honed_ = std::make_unique<HonedProcess>(
        std::vector<std::string>{"--db", folder_ / "t.db", "--listen", "unix:" + (folder_ / "s"), "--lease", "4",
                                 "--search-program", HONE_BIN "/hone-fake-search", "--log-format", "json"});
    unsetenv("LD_PRELOAD");
    unsetenv("HONE_TEST_MOVED_CLOCK");
    ASSERT_TRUE(honed_->ready()) << honed_->Errors();
    client_ = DaemonClient::Connect(honed_->address(), {}, absl::Seconds(10)).value();
  }
  void TearDown() override {
    if (seconds_ != nullptr) munmap(seconds_, sizeof(int64_t));
  }

  void MoveTo(int64_t days) {
    std::atomic_ref(*seconds_).store(days * kDay);
    day_ = absl::FormatTime("%Y-%m-%d", absl::Now() + absl::Hours(24 * days), absl::UTCTimeZone());
  }
  // A job's last snapshot.
  v1::JobSnapshot Tune(const std::string& id, const std::function<void()>& meanwhile) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(40);
    *request.add_tasks() = FakeTask(id);
    const uint64_t job = client_->Submit(request, absl::Seconds(10)).value().job_id();
    bool begun = false;
    const auto last = client_->Watch(job, absl::Milliseconds(20), [&](const DaemonClient::Sight& sight) {
      if (!begun && sight.snapshot != nullptr && sight.snapshot->trials() >= 5) {
        begun = true;
        meanwhile();
      }
      return sight.silence < absl::Seconds(20);
    });
    EXPECT_TRUE(begun && last.ok()) << last.status();
    return last.value_or(v1::JobSnapshot());
  }
  v1::ServiceStatus Status() {
    v1::ServiceStatus status;
    const grpc::Status answered = client_->tune().Status(client_->Context(absl::Seconds(10)).get(), {}, &status);
    EXPECT_TRUE(answered.ok()) << answered.error_message();
    return status;
  }

  TempFolder folder_;
  int64_t* seconds_ = nullptr;
  std::string day_;  // that the daemon believes in
  std::unique_ptr<HonedProcess> honed_;
  std::unique_ptr<DaemonClient> client_;
};

TEST_F(MovedClock, ByADayEitherWayLosesNothing) {
  const FakeWorker worker("w", honed_->address(), {}, [](const v1::Lease& lease) {
    absl::SleepFor(absl::Milliseconds(20));
    return GoodOutcome(lease);
  });
  std::vector<std::string> days;
  for (const int64_t to : {1, 0, -1, 0}) {
    SCOPED_TRACE(absl::StrCat("to day ", to));
    const v1::JobSnapshot end = Tune(absl::StrCat("job ", days.size()), [&] { MoveTo(to); });
    EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
    EXPECT_GE(end.trials(), 40);
    const v1::ServiceStatus status = Status();
    ASSERT_EQ(status.workers_size(), 1) << "one that is lost is still shown";
    EXPECT_LT(status.workers(0).last_seen_seconds(), 4);
    EXPECT_LT(status.up_seconds(), 3600);
    days.push_back(day_);
  }
  honed_->Signal(SIGTERM);
  EXPECT_EQ(honed_->Wait(), 0) << honed_->Errors();
  const std::string log = honed_->Errors();
  for (const std::string& day : days) EXPECT_THAT(log, HasSubstr("\"time\":\"" + day)) << "its clock was not moved";
  EXPECT_THAT(log, Not(HasSubstr("lease is taken back")));
  EXPECT_THAT(log, Not(HasSubstr("lent again")));
}

}  // namespace
}  // namespace hone
