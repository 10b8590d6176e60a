// Workers and daemons that are killed in the middle of a job.
#include <signal.h>

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

constexpr int kTrials = 60;

Arguments Tune(const Service& service, const std::string& model) {
  return {"tune",      model, "--server", service.address(), "--trials", std::to_string(kTrials),
          "--threads", "1",   "--json"};
}

// Every trial of the job is in one place: counted, recorded, of one task.
void ExpectAccountedFor(Service& service, const Json& result) {
  const int trials = result.at("trials");
  int of_tasks = 0;
  for (const Json& task : result.at("tasks")) of_tasks += task.at("trials").get<int>();
  EXPECT_EQ(of_tasks, trials);
  std::set<std::pair<std::string, std::string>> distinct;
  const std::vector<Json> records = service.Records();
  for (const Json& record : records) distinct.emplace(record.at("workload"), record.at("trace"));
  EXPECT_EQ(distinct.size(), records.size());
  EXPECT_EQ(static_cast<int>(records.size()), trials);
  EXPECT_GE(trials, kTrials);
}

std::set<std::string> Ids(const std::vector<Json>& records) {
  std::set<std::string> ids;
  for (const Json& record : records) ids.insert(record.at("id").get<std::string>());
  return ids;
}

TEST(LostProcess, WorkerIsKilled) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  Process& first = service.StartWorker();
  Process& second = service.StartWorker();
  Process tune(folder, "hone", Tune(service, model));
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors() << first.Errors();
  ASSERT_TRUE(tune.running()) << "the job was over before anybody was killed";
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Wait(), 128 + SIGKILL);
  ASSERT_EQ(tune.Wait(), 0) << tune.Errors();
  ExpectAccountedFor(service, JsonLines(tune.Output()).back());
  EXPECT_TRUE(second.running()) << second.Errors();
  EXPECT_TRUE(service.daemon().running()) << service.daemon().Errors();
}

TEST(LostProcess, DaemonIsKilled) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  Process& worker = service.StartWorker();
  Process tune(folder, "hone", Tune(service, model));
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors() << worker.Errors();
  const std::set<std::string> before = Ids(service.Records());
  EXPECT_GT(before.size(), 0u);
  ASSERT_TRUE(tune.running()) << "the job was over before anybody was killed";
  service.daemon().Signal(SIGKILL);
  EXPECT_EQ(service.daemon().Wait(), 128 + SIGKILL);
  service.StartDaemon();
  ASSERT_EQ(tune.Wait(), 0) << tune.Errors() << service.daemon().Errors();
  ExpectAccountedFor(service, JsonLines(tune.Output()).back());
  const std::set<std::string> after = Ids(service.Records());
  for (const std::string& id : before) EXPECT_EQ(after.count(id), 1u) << "record " << id << " is missing";
  EXPECT_TRUE(worker.running()) << worker.Errors();
}

// Nobody watches, and everything but the file is lost.
TEST(LostProcess, EverythingIsKilled) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  Process& worker = service.StartWorker();
  Process tune(folder, "hone", Tune(service, model));
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors() << worker.Errors();
  const std::set<std::string> before = Ids(service.Records());
  ASSERT_TRUE(tune.running()) << "the job was over before anybody was killed";
  for (Process* process : {&tune, &worker, &service.daemon()}) process->Signal(SIGKILL);
  for (Process* process : {&tune, &worker, &service.daemon()}) EXPECT_EQ(process->Wait(), 128 + SIGKILL);
  service.StartDaemon();
  service.StartWorker();
  const Finished watch = Hone(folder, {"jobs", "watch", "1", "--json", "--server", service.address()});
  ASSERT_EQ(watch.code, 0) << watch.errors;
  const Json last = JsonLines(watch.output).back();
  EXPECT_EQ(last.at("state"), "done");
  ExpectAccountedFor(service, last);
  const std::set<std::string> after = Ids(service.Records());
  for (const std::string& id : before) EXPECT_EQ(after.count(id), 1u) << "record " << id << " is missing";
}

}  // namespace
}  // namespace hone::system_test
