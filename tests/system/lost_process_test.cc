// Workers and daemons that are killed, or hang, or cannot reach each other, in the middle of a job.
#include <signal.h>

#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/relay.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

constexpr int kTrials = 60;
// Of a job that is still at work after four losses, in each of which a worker ends the batches that it holds: more
// than the model has candidates.
constexpr int kTrialsOfManyLosses = 300;

std::set<std::string> Ids(const std::vector<Json>& records) {
  std::set<std::string> ids;
  for (const Json& record : records) ids.insert(record.at("id").get<std::string>());
  return ids;
}

// Longer than a lease, which is 3 s here.
void OutliveALease() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

class LostProcess : public ::testing::Test {
 protected:
  // A worker that knows the daemon by `server`, and a job of `trials` that has its first ones behind it.
  void Begin(int trials = kTrials, const std::string& server = "") {
    worker_ = &service_.StartWorker({}, {}, server);
    tune_ = std::make_unique<Process>(folder_, "hone",
                                      Arguments{"tune", model_, "--server", service_.address(), "--trials",
                                                std::to_string(trials), "--threads", "1", "--json"});
    ASSERT_TRUE(WaitUntil([this] { return Trials() > 0; }, 90)) << tune_->Errors() << worker_->Errors();
    ASSERT_TRUE(tune_->running()) << "the job was over before anything was lost";
    before_ = Ids(service_.Records());
  }
  int Trials() { return service_.Job(1).value("trials", 0); }

  void ExpectTheJobEnds() {
    ASSERT_EQ(tune_->Wait(), 0) << tune_->Errors() << service_.daemon().Errors();
    ExpectAccountedFor(JsonLines(tune_->Output()).back());
  }
  // Every trial of the job is in one place: counted, recorded, of one task; and what was there is still there.
  void ExpectAccountedFor(const Json& result) {
    const int trials = result.at("trials");
    int of_tasks = 0;
    for (const Json& task : result.at("tasks")) of_tasks += task.at("trials").get<int>();
    EXPECT_EQ(of_tasks, trials);
    std::set<std::pair<std::string, std::string>> distinct;
    const std::vector<Json> records = service_.Records();
    for (const Json& record : records) distinct.emplace(record.at("workload"), record.at("trace"));
    EXPECT_EQ(distinct.size(), records.size());
    EXPECT_EQ(static_cast<int>(records.size()), trials);
    EXPECT_GE(trials, kTrials);
    const std::set<std::string> after = Ids(records);
    for (const std::string& id : before_) EXPECT_EQ(after.count(id), 1u) << "record " << id << " is missing";
  }

  const TempFolder folder_;
  const std::string model_ = SaveTiny(folder_.path());
  Service service_{folder_};
  Process* worker_ = nullptr;
  std::unique_ptr<Process> tune_;
  std::set<std::string> before_;  // the records there were when something was lost
};

TEST_F(LostProcess, WorkerIsKilled) {
  Process& other = service_.StartWorker();
  Begin();
  worker_->Signal(SIGKILL);
  EXPECT_EQ(worker_->Wait(), 128 + SIGKILL);
  ExpectTheJobEnds();
  EXPECT_TRUE(other.running()) << other.Errors();
  EXPECT_TRUE(service_.daemon().running()) << service_.daemon().Errors();
}

TEST_F(LostProcess, WorkerHangs) {
  Begin();
  worker_->Signal(SIGSTOP);
  OutliveALease();
  EXPECT_TRUE(tune_->running()) << "the job ended without a worker";
  worker_->Signal(SIGCONT);
  ExpectTheJobEnds();
  EXPECT_TRUE(worker_->running()) << worker_->Errors();
}

TEST_F(LostProcess, DaemonIsKilled) {
  Begin();
  EXPECT_GT(before_.size(), 0u);
  service_.daemon().Signal(SIGKILL);
  EXPECT_EQ(service_.daemon().Wait(), 128 + SIGKILL);
  service_.StartDaemon();
  ExpectTheJobEnds();
  EXPECT_TRUE(worker_->running()) << worker_->Errors();
}

TEST_F(LostProcess, DaemonHangs) {
  Begin();
  service_.daemon().Signal(SIGSTOP);
  OutliveALease();
  service_.daemon().Signal(SIGCONT);
  ExpectTheJobEnds();
  EXPECT_TRUE(worker_->running()) << worker_->Errors();
  EXPECT_TRUE(service_.daemon().running()) << service_.daemon().Errors();
}

// Nobody watches, and everything but the file is lost.
TEST_F(LostProcess, EverythingIsKilled) {
  Begin();
  for (Process* process : {tune_.get(), worker_, &service_.daemon()}) process->Signal(SIGKILL);
  for (Process* process : {tune_.get(), worker_, &service_.daemon()}) EXPECT_EQ(process->Wait(), 128 + SIGKILL);
  service_.StartDaemon();
  service_.StartWorker();
  const Finished watch = Hone(folder_, {"jobs", "watch", "1", "--json", "--server", service_.address()});
  ASSERT_EQ(watch.code, 0) << watch.errors;
  const Json last = JsonLines(watch.output).back();
  EXPECT_EQ(last.at("state"), "done");
  ExpectAccountedFor(last);
}

// First nothing comes through, until leases are over and then all of it late; then nothing of the worker's; then
// connections are refused for a while; then they break, wherever in a message that is.
TEST_F(LostProcess, NetworkIsLostAgainAndAgain) {
  Relay network(folder_ / "network", folder_ / "s");
  Begin(kTrialsOfManyLosses, "unix:" + (folder_ / "network"));
  struct Loss {
    Relay::State failure, after;
  };
  for (const Loss& loss : {Loss{Relay::State::kSilent, Relay::State::kOpen},
                           {Relay::State::kOneWay, Relay::State::kOpen},
                           {Relay::State::kCut, Relay::State::kBreaking}}) {
    ASSERT_TRUE(tune_->running()) << "the job was over before the network was lost";
    network.Set(loss.failure);
    OutliveALease();
    const int before = Trials();
    ASSERT_TRUE(tune_->running()) << "the job ended without a worker";
    network.Set(loss.after);
    ASSERT_TRUE(WaitUntil([&] { return Trials() > before || !tune_->running(); }, 90)) << worker_->Errors();
  }
  ASSERT_TRUE(WaitUntil([&] { return network.broken() > 3 || !tune_->running(); }, 90)) << worker_->Errors();
  EXPECT_GT(network.broken(), 3);
  ExpectTheJobEnds();
  EXPECT_TRUE(worker_->running()) << worker_->Errors();
}

}  // namespace
}  // namespace hone::system_test
