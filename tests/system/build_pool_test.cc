// Workers that only build, and workers that only measure what those build.
#include <signal.h>

#include <ctime>
#include <map>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

class BuildPool : public ::testing::Test {
 protected:
  Process& StartBuilder(const std::map<std::string, std::string>& environment = {}) {
    return service_.StartWorker({"--role", "build"}, environment);
  }
  Process& StartBoard() { return service_.StartWorker({"--role", "measure"}); }
  std::unique_ptr<Process> Tune(int trials) {
    return std::make_unique<Process>(folder_, "hone",
                                     Arguments{"tune", model_, "--server", service_.address(), "--trials",
                                               std::to_string(trials), "--threads", "1", "--json"});
  }
  bool WaitsForABuilder() {
    return WaitUntil([&] {
      return Hone(folder_, {"jobs", "show", "1", "--server", service_.address()}).output.find("no worker builds for") !=
             std::string::npos;
    });
  }
  int Trials() { return service_.Job(1).value("trials", 0); }

  const TempFolder folder_;
  const std::string model_ = SaveTiny(folder_.path());
  Service service_{folder_};
};

TEST_F(BuildPool, FeedsAWorkerThatOnlyMeasures) {
  Process& board = StartBoard();
  const std::unique_ptr<Process> tune = Tune(20);
  ASSERT_TRUE(WaitsForABuilder()) << board.Errors();
  EXPECT_EQ(Trials(), 0);
  Process& builder = StartBuilder();
  ASSERT_EQ(tune->Wait(), 0) << tune->Errors() << board.Errors() << builder.Errors();
  const int trials = JsonLines(tune->Output()).back().at("trials").get<int>();
  EXPECT_GE(trials, 20);
  const std::vector<Json> records = service_.Records();
  EXPECT_GE(records.size(), 2u);

  int64_t built = 0, measured = 0;
  const Finished list = Hone(folder_, {"workers", "list", "--server", service_.address(), "--json"});
  for (const Json& worker : JsonLines(list.output)) {
    (worker.at("role") == "build" ? built : measured) += worker.at("trials").get<int64_t>();
  }
  EXPECT_GT(measured, 0);
  EXPECT_GE(built, trials) << "every candidate, and the oracles; who was built for a batch may duel without";

  // What was measured is what this machine makes of the schedules.
  const Finished compile = Hone(folder_, {"compile", model_, "-o", folder_ / "m.hone", "--server", service_.address(),
                                          "--threads", "1", "--json"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  const Json made = JsonLines(compile.output).back();
  EXPECT_EQ(made.at("from_records").get<int>() + made.at("from_faster_defaults").get<int>(), 2) << made.dump();

  for (Process* worker : {&builder, &board}) {
    worker->Signal(SIGTERM);
    EXPECT_EQ(worker->Wait(), 0) << worker->Errors();
  }
}

// It builds what it measures, and may not measure now.
TEST_F(BuildPool, AWorkerThatIsNotQuietBuildsForOneThatOnlyMeasures) {
  Process& board = StartBoard();
  const std::unique_ptr<Process> tune = Tune(8);
  ASSERT_TRUE(WaitsForABuilder()) << board.Errors();
  const std::time_t now = std::time(nullptr);
  const int hour = std::localtime(&now)->tm_hour;
  Process& sleeper = service_.StartWorker(
      {"--hours", std::to_string((hour + 11) % 24) + ":00-" + std::to_string((hour + 13) % 24) + ":00"});
  ASSERT_EQ(tune->Wait(), 0) << tune->Errors() << board.Errors() << sleeper.Errors();
  int64_t built = 0, measured = 0;
  const Finished list = Hone(folder_, {"workers", "list", "--server", service_.address(), "--json"});
  for (const Json& worker : JsonLines(list.output)) {
    if (worker.at("role") == "both") {
      built = worker.at("trials").get<int64_t>();
      EXPECT_THAT(worker.at("waiting_for").get<std::string>(), HasSubstr("its hours"));
      EXPECT_NE(worker.at("probe"), "") << worker.dump();
    } else {
      measured = worker.at("trials").get<int64_t>();
    }
  }
  EXPECT_GE(measured, 8);
  EXPECT_GE(built, 8) << "every candidate, and the oracles";
  EXPECT_TRUE(JsonLines(tune->Output()).back().value("failed", Json::object()).empty());
  sleeper.Signal(SIGTERM);
  EXPECT_EQ(sleeper.Wait(), 0) << sleeper.Errors();
}

TEST_F(BuildPool, LosesABuilderAndNoTrial) {
  Process& board = StartBoard();
  const std::unique_ptr<Process> tune = Tune(60);
  ASSERT_TRUE(WaitsForABuilder()) << board.Errors();
  // Killed at its fourth answer: it builds few candidates at a time, so most of the job is still to come.
  const std::string visits = folder_ / "visits";
  WriteAll(visits, std::string(8, '\0'));
  Process& lost = StartBuilder({{"HONE_CRASH_AT", "worker.synced:4:" + visits}});
  EXPECT_EQ(lost.Wait(), 128 + SIGKILL);
  Process& other = StartBuilder();
  ASSERT_EQ(tune->Wait(), 0) << tune->Errors() << other.Errors();
  const Json result = JsonLines(tune->Output()).back();
  EXPECT_GE(result.at("trials").get<int>(), 60);
  EXPECT_TRUE(result.value("failed", Json::object()).empty()) << result;
}

TEST_F(BuildPool, RolesTakeTheOptionsThatTheyUse) {
  const Finished build =
      RunProgram(folder_, "hone-worker", {"--server", "unix:x", "--role", "build", "--spool", folder_ / "spool"});
  EXPECT_EQ(build.code, 2);
  EXPECT_THAT(build.errors, HasSubstr("--spool is for workers that measure"));
  const Finished measure =
      RunProgram(folder_, "hone-worker", {"--server", "unix:x", "--role", "measure", "--builder", "/bin/true"});
  EXPECT_EQ(measure.code, 2);
  EXPECT_THAT(measure.errors, HasSubstr("--builder is for workers that build"));
}

}  // namespace
}  // namespace hone::system_test
