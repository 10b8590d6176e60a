// What an operator does to a daemon and its workers, and what they tell: drains, pauses, explanations, metrics, logs.
#include <signal.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Hours of the day that are far from now.
std::string OtherHours() {
  const std::time_t now = std::time(nullptr);
  const int hour = std::localtime(&now)->tm_hour;
  char text[16];
  std::snprintf(text, sizeof(text), "%02d:00-%02d:00", (hour + 11) % 24, (hour + 13) % 24);
  return text;
}

class Operation : public testing::Test {
 protected:
  std::unique_ptr<Process> Tune(int trials) {
    return std::make_unique<Process>(folder_, "hone",
                                     Arguments{"tune", model_, "--server", service_.address(), "--trials",
                                               std::to_string(trials), "--threads", "1", "--wait", "10m", "--json"});
  }
  int Trials() { return service_.Job(1).value("trials", 0); }
  Finished Say(Arguments arguments) {
    arguments.insert(arguments.end(), {"--server", service_.address()});
    return Hone(folder_, arguments);
  }
  // Every trial of the job is one record: none is lost, none is there twice.
  void ExpectAccountedFor(Process& tune) {
    ASSERT_EQ(tune.Wait(), 0) << tune.Errors() << service_.daemon().Errors();
    std::set<std::pair<std::string, std::string>> distinct;
    const std::vector<Json> records = service_.Records();
    for (const Json& record : records) distinct.emplace(record.at("workload"), record.at("trace"));
    EXPECT_EQ(distinct.size(), records.size());
    EXPECT_EQ(static_cast<int>(records.size()), JsonLines(tune.Output()).back().at("trials").get<int>());
  }

  const TempFolder folder_;
  const std::string model_ = SaveTiny(folder_.path());
  Service service_{folder_};
};

int FilesOf(const std::string& spool) {
  int files = 0;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(spool, none))
    files += file.path().extension() == ".result";
  return files;
}

// The daemon is away, the worker finishes what it has and is killed, or told to end: the next one on its spool tells
// it.
class ResultsOutlive : public Operation, public testing::WithParamInterface<int> {};
TEST_P(ResultsOutlive, TheWorkerThatMadeThem) {
  const std::string spool = folder_ / "spool";
  Process& first = service_.StartWorker({"--spool", spool});
  const auto tune = Tune(60);
  ASSERT_TRUE(WaitUntil([&] { return Trials() > 0; }, 120)) << tune->Errors() << first.Errors();
  service_.daemon().Signal(SIGKILL);
  service_.daemon().Wait();
  ASSERT_TRUE(WaitUntil([&] { return FilesOf(spool) > 0; }, 120)) << first.Errors();
  first.Signal(GetParam());
  EXPECT_EQ(first.Wait(), GetParam() == SIGKILL ? 128 + SIGKILL : 0) << first.Errors();
  if (GetParam() == SIGTERM) { EXPECT_THAT(first.Errors(), HasSubstr("the next worker on " + spool + " tells them")); }
  EXPECT_GT(FilesOf(spool), 0);
  service_.StartDaemon();
  Process& second = service_.StartWorker({"--spool", spool});
  ASSERT_TRUE(WaitUntil([&] { return second.Errors().find("results of an earlier worker") != std::string::npos; }))
      << second.Errors();
  ExpectAccountedFor(*tune);
  EXPECT_TRUE(WaitUntil([&] { return FilesOf(spool) == 0; })) << "the daemon has them: they are not kept";
}
INSTANTIATE_TEST_SUITE_P(AfterSignal, ResultsOutlive, testing::Values(SIGKILL, SIGTERM),
                         [](const auto& info) { return info.param == SIGKILL ? "Kill" : "Terminate"; });

TEST_F(Operation, TwoWorkersDoNotShareASpool) {
  Process& first = service_.StartWorker({"--spool", folder_ / "spool"});
  ASSERT_TRUE(WaitUntil([&] { return first.Errors().find("worker 1 at") != std::string::npos; })) << first.Errors();
  Process& second = service_.StartWorker({"--spool", folder_ / "spool"});
  EXPECT_EQ(second.Wait(), 5);
  EXPECT_THAT(second.Errors(), HasSubstr("another worker keeps its results there"));
}

// SIGTERM, and `hone workers drain`: each worker ends well, and the job goes on with whoever is left.
TEST_F(Operation, WorkersAreDrained) {
  Process& first = service_.StartWorker();
  const auto tune = Tune(60);
  ASSERT_TRUE(WaitUntil([&] { return Trials() > 0; }, 120)) << tune->Errors() << first.Errors();
  Process& second = service_.StartWorker({"--spool", folder_ / "spool", "--drain-limit", "0"});
  ASSERT_TRUE(WaitUntil([&] { return second.Errors().find("worker 2 at") != std::string::npos; })) << second.Errors();
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), 0) << first.Errors();
  EXPECT_THAT(first.Errors(), HasSubstr("draining"));
  std::string name;
  for (const Json& worker : JsonLines(Say({"workers", "list", "--json"}).output)) {
    EXPECT_NE(worker.at("state"), "lost") << "it ended as it should";
    if (worker.at("state") != "draining") name = worker.at("name");
  }
  const Finished drain = Say({"workers", "drain", name});
  EXPECT_EQ(drain.code, 0) << drain.errors;
  EXPECT_EQ(second.Wait(), 0) << second.Errors();
  EXPECT_EQ(Say({"workers", "drain", "nobody"}).code, 2);
  Process& third = service_.StartWorker();
  ExpectAccountedFor(*tune);
  EXPECT_TRUE(third.running()) << third.Errors();
}

TEST_F(Operation, AJobIsExplainedPausedAndResumed) {
  const std::string hours = OtherHours();
  Process& sleeper = service_.StartWorker({"--hours", hours});
  const auto tune = Tune(12);
  const auto explained = [&] { return Say({"jobs", "explain", "1"}).output; };
  ASSERT_TRUE(WaitUntil([&] { return explained().find(": not quiet") != std::string::npos; }))
      << explained() << sleeper.Errors();
  EXPECT_THAT(explained(), AllOf(HasSubstr("held up: for "), HasSubstr("waits for its hours, " + hours),
                                 HasSubstr("to its end: 12 trials"), HasSubstr("tasks: 2 of 2 may still gain")));
  EXPECT_EQ(Say({"jobs", "pause", "1"}).code, 0);
  Process& worker = service_.StartWorker();
  ASSERT_TRUE(WaitUntil([&] { return worker.Errors().find("worker 2 at") != std::string::npos; })) << worker.Errors();
  const Finished status = Say({"status"});
  EXPECT_EQ(status.code, 0) << status.errors;
  EXPECT_THAT(status.output, AllOf(HasSubstr("  1  paused  tiny"), HasSubstr("jobs resume 1 --server"),
                                   HasSubstr("it waits for its hours"), HasSubstr("database: can be written")));
  EXPECT_EQ(Trials(), 0);
  EXPECT_EQ(Say({"jobs", "resume", "1"}).code, 0);
  ExpectAccountedFor(*tune);
  const Json after = JsonLines(Say({"jobs", "explain", "1", "--json"}).output).at(0);
  EXPECT_EQ(after.at("state"), "done");
  EXPECT_GT(after.at("waited_seconds").value("paused", 0.0) + after.at("waited_seconds").value("not_quiet", 0.0), 1);
  EXPECT_EQ(Say({"jobs", "pause", "7"}).code, 2);
}

// As when it has no memory or no descriptors left: no builder starts, until one does.
TEST_F(Operation, AMachineThatCannotBuildNowHoldsTheJobUpAndLosesNothing) {
  const std::string builder = folder_ / "builder";
  Process& worker = service_.StartWorker({"--builder", builder});
  const auto tune = Tune(12);
  const auto explained = [&] { return Say({"jobs", "explain", "1"}).output; };
  ASSERT_TRUE(WaitUntil([&] { return explained().find("a worker cannot measure: ") != std::string::npos; }))
      << explained() << worker.Errors();
  EXPECT_EQ(Trials(), 0);
  std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hone-builder",
                                  builder);
  ExpectAccountedFor(*tune);
}

#if defined(__x86_64__)
// A target that was stated by hand and is not this machine's: no candidate is blamed for it.
TEST_F(Operation, AWorkerWhoseMachineLacksWhatItClaimsRestsAndSaysWhy) {
  const bool has = ReadAll("/proc/cpuinfo").find(" avx512f ") != std::string::npos;
  const std::string beyond = has ? "avx512fp16" : "avx512f";
  if (has && ReadAll("/proc/cpuinfo").find(" avx512_fp16 ") != std::string::npos) GTEST_SKIP() << "it has all";
  Process& worker = service_.StartWorker(
      {"--runner", HONE_BIN "/hone-runner", "--target", has ? "cpu:x86-64-v4+avx512fp16" : "cpu:x86-64-v4"});
  const auto tune = Tune(12);
  const auto workers = [&] { return Say({"workers", "list"}).output; };
  ASSERT_TRUE(WaitUntil([&] {
    return workers().find("waits for a machine that runs code for cpu:") != std::string::npos;
  })) << workers()
      << tune->Errors() << worker.Errors();
  EXPECT_THAT(workers(), ContainsRegex("lacks .*" + beyond + ".*which the kernels need"));
  EXPECT_TRUE(tune->running()) << tune->Output();
  const Json job = service_.Job(1);
  EXPECT_EQ(job.at("trials"), 0);
  EXPECT_TRUE(job.at("failed").empty()) << job;
  EXPECT_THAT(Say({"jobs", "explain", "1"}).output, HasSubstr("a machine that runs code for cpu:"));
}
#endif

// "metrics at http://127.0.0.1:41234/metrics"
std::string HttpAddress(const Process& daemon) {
  const std::string text = daemon.Output(), before = "metrics at http://";
  const size_t at = text.find(before);
  if (at == std::string::npos) return "";
  return text.substr(at + before.size(), text.find("/metrics", at) - at - before.size());
}

// "200 alive\n"
std::string Get(const TempFolder& folder, const std::string& url) {
  constexpr char kScript[] =
      "import sys, urllib.request, urllib.error\n"
      "try: answer = urllib.request.urlopen(sys.argv[1], timeout=60)\n"
      "except urllib.error.HTTPError as error: answer = error\n"
      "sys.stdout.write(f'{answer.status} {answer.read().decode()}')\n";
  const Finished python = RunProgram(folder, "/usr/bin/python3", {"-c", kScript, url});
  return python.output + python.errors;
}

TEST(Watched, ByMetricsHealthAndLogs) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), full = folder / "full", server = "unix:" + (folder / "s");
  Process daemon(folder, "honed",
                 {"--db", folder / "tuning.db", "--listen", server, "--http", "0", "--log-format", "json", "--verbose"},
                 {{"LD_PRELOAD", HONE_BIN "/../lib/libhone_full_disk.so"}, {"HONE_TEST_FULL_DISK", full}});
  ASSERT_TRUE(WaitUntil([&] { return !HttpAddress(daemon).empty(); })) << daemon.Errors();
  const auto get = [&](const std::string& path) { return Get(folder, "http://" + HttpAddress(daemon) + path); };
  EXPECT_EQ(get("/healthz"), "200 alive\n");
  EXPECT_EQ(get("/readyz"), "200 ready\n");
  EXPECT_THAT(get("/"), HasSubstr("404"));

  Process worker(folder, "hone-worker", {"--server", server, "--threads", "1", "--log-format", "json", "--verbose"});
  Process tune(folder, "hone", {"tune", model, "--server", server, "--trials", "12", "--threads", "1"});
  ASSERT_EQ(tune.Wait(), 0) << tune.Errors();
  const std::string metrics = get("/metrics");
  EXPECT_THAT(metrics, AllOf(HasSubstr("# TYPE hone_results_total counter"), HasSubstr("hone_candidates_queued 0\n"),
                             HasSubstr("hone_database_writable 1\n"), ContainsRegex("hone_database_cache_bytes [1-9]"),
                             HasSubstr("hone_commit_seconds_bucket{le=\"+Inf\"}")));
  EXPECT_THAT(metrics, Not(HasSubstr("hone_results_total{outcome=\"ok\"} 0\n")));
  EXPECT_THAT(metrics, AllOf(Not(HasSubstr("tiny")), Not(HasSubstr("local")))) << "a tenant's data";

  // One object a line; the facts of a trial, by its number, on both sides.
  std::set<std::string> facts;
  uint64_t measured = 0;
  for (const Process* process : {&daemon, &worker}) {
    for (const Json& line : JsonLines(process->Errors())) {
      facts.insert(line.at("message"));
      if (line.at("message") == "trial has a result") measured = line.at("trial");
    }
  }
  for (const char* fact : {"job is waiting", "job is running", "job is done", "trial is lent", "trial has a result"}) {
    EXPECT_EQ(facts.count(fact), 1u) << fact << daemon.Errors().substr(0, 2000);
  }
  EXPECT_GT(measured, 0u);

  WriteAll(full, "");
  Process more(folder, "hone", {"tune", model, "--server", server, "--trials", "12", "--threads", "1"});
  EXPECT_TRUE(WaitUntil([&] { return get("/readyz") == "503 the disk of the database is full\n"; })) << get("/readyz");
  EXPECT_EQ(get("/healthz"), "200 alive\n") << "to start it again would free no space";
  std::filesystem::remove(full);
  EXPECT_TRUE(WaitUntil([&] { return get("/readyz") == "200 ready\n"; }));
}

TEST(Watched, BadAddressesAreRefused) {
  const TempFolder folder;
  const Finished bad = RunProgram(folder, "honed", {"--db", folder / "t.db", "--http", "here"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.errors, HasSubstr("--http here: PORT, which this machine alone can reach, or HOST:PORT is needed"));
}

}  // namespace
}  // namespace hone::system_test
