// What a user meets every day: what tune says of the model at its end and on its way, what --trials and --budget mean,
// what a job waits for and how it ends, commands that are suggested, mistakes on the command line.
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <regex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/slowdown.h"
#include "tests/system/harness.h"
#include "tests/system/terminal.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The children of a process whose command line holds all of these words. Their own children are left out: one that has
// forked and not yet begun its own program bears its parent's command line.
std::vector<pid_t> FindChildren(pid_t parent, const std::vector<std::string>& words) {
  const std::string of_parent = "\nPPid:\t" + std::to_string(parent) + "\n";
  std::vector<pid_t> found;
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    const std::string folder = "/proc/" + std::string(entry->d_name);
    const std::string line = ReadAll(folder + "/cmdline");
    bool all = ReadAll(folder + "/status").find(of_parent) != std::string::npos;
    for (const std::string& word : words) all = all && line.find(word) != std::string::npos;
    if (all) found.push_back(pid);
  }
  ::closedir(proc);
  return found;
}

// The line that begins so, without its beginning; "" when there is none.
std::string After(const std::string& text, const std::string& beginning) {
  const size_t at = text.rfind(beginning);
  if (at == std::string::npos) return "";
  const size_t from = at + beginning.size();
  return text.substr(from, text.find_first_of("\r\n", from) - from);
}

Finished Shell(const TempFolder& folder, const std::string& command) {
  return RunProgram(folder, "/bin/sh", {"-c", "cd '" + folder.path() + "' && " + command});
}

// ---- the headline ----

// Trials for the default schedules alone: the model after is the model before.
TEST(Headline, ClaimsNoChangeWhereThereIsNone) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  int claims = 0;
  for (int i = 0; i < 2; ++i) {
    const Finished tune = Hone(folder, {"tune", model, "--db", folder / ("t" + std::to_string(i) + ".db"), "--trials",
                                        "2", "--threads", "1", "--json"});
    ASSERT_EQ(tune.code, 0) << tune.errors;
    const Json result = JsonLines(tune.output).back();
    ASSERT_EQ(result.at("trials"), 2);
    const double low = result.at("speed_up_interval")[0], high = result.at("speed_up_interval")[1];
    EXPECT_LE(low, high);
    EXPECT_EQ(result.at("changed").get<bool>(), low >= 1.005 || high < 0.995);
    const std::string headline = After(tune.errors, "the model: ");
    if (result.at("changed").get<bool>()) {
      ++claims;
      EXPECT_TRUE(std::regex_search(headline, std::regex("^[0-9.]+x \\([0-9.]+-[0-9.]+\\): "))) << headline;
    } else {
      EXPECT_TRUE(std::regex_search(headline, std::regex("^no measurable change \\([0-9.]+-[0-9.]+\\): "))) << headline;
    }
  }
  EXPECT_LT(claims, 2);
}

TEST(Headline, IsTimedInTheTurnOfTheMachineAndCanBeInterrupted) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  // Somebody else has the turn once the trials are done: what comes before and after waits for it, and says so.
  Service service(folder);
  service.StartWorker();
  std::unique_ptr<Process> holder;
  Terminal tune(folder, "hone", {"tune", model, "--server", service.address(), "--trials", "2", "--threads", "1"});
  ASSERT_TRUE(WaitUntil([&] { return tune.Shows("compiling the model") || !tune.running(); }, 90)) << tune.Screen();
  holder = std::make_unique<Process>(folder, "/usr/bin/flock", Arguments{folder / ".run/lock", "/bin/sleep", "60"});
  ASSERT_TRUE(WaitUntil([&] { return tune.Shows("waiting for the turn of this machine") || !tune.running(); }, 60))
      << tune.Screen();
  ASSERT_TRUE(tune.running()) << tune.Screen();
  const Stopwatch watch;
  tune.Type("\x03");
  EXPECT_EQ(tune.Wait(10), 130);
  EXPECT_LT(watch.seconds(), 2 * Slowdown());
  EXPECT_THAT(tune.Screen(), AllOf(HasSubstr("interrupted"), HasSubstr("to build it: ")));
}

// ---- trials and budget ----

TEST(Trials, AreNewOnesAndTheSameNumberEverywhere) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  const Arguments common{"tune", model, "--server", service.address(), "--threads", "1", "--json"};
  for (const int trials : {20, 5}) {
    Arguments arguments = common;
    arguments.insert(arguments.end(), {"--trials", std::to_string(trials)});
    const Finished tune = Hone(folder, arguments);
    ASSERT_EQ(tune.code, 0) << tune.errors;
    EXPECT_EQ(JsonLines(tune.output).back().at("trials"), trials);
    EXPECT_THAT(tune.errors, HasSubstr("trials " + std::to_string(trials) + "/" + std::to_string(trials)));
  }
  EXPECT_EQ(service.Records().size(), 25u);
  const Finished list = Hone(folder, {"jobs", "list", "--server", service.address()});
  EXPECT_THAT(list.output, AllOf(HasSubstr("trials 20/20"), HasSubstr("trials 5/5")));
  EXPECT_EQ(service.Job(2).at("trials"), 5);
}

TEST(Trials, KeptAtCtrlCAreThoseOfTheListAndOfTheResult) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  Process tune(folder, "hone",
               {"tune", model, "--server", service.address(), "--budget", "120s", "--threads", "1", "--json"});
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 3; }, 90)) << tune.Errors();
  const Stopwatch watch;
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(), 130);
  EXPECT_LT(watch.seconds(), 2 * Slowdown());
  const Json result = JsonLines(tune.Output()).back();
  const int kept = result.at("trials");
  EXPECT_THAT(tune.Errors(), HasSubstr("interrupted: " + std::to_string(kept) + " trials are kept"));
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("state", "") == "stopped"; }));
  const int in_the_end = service.Job(1).at("trials");
  if (result.at("state") == "stopped") {
    EXPECT_EQ(in_the_end, kept);
  } else {  // what was under work is said, and ends later
    EXPECT_THAT(tune.Errors(), HasSubstr("that are being measured"));
    EXPECT_GE(in_the_end, kept);
    EXPECT_LE(in_the_end, kept + result.at("in_flight").get<int>());
  }
  EXPECT_EQ(service.Records().size(), static_cast<size_t>(in_the_end));
}

// ---- what a job waits for ----

TEST(Waiting, WithoutAWorkerSaysSoAndEnds) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  const Stopwatch watch;
  const Finished tune = Hone(folder, {"tune", model, "--server", service.address(), "--wait", "4s", "--threads", "1"});
  EXPECT_EQ(tune.code, 5) << tune.errors;
  EXPECT_LT(watch.seconds(), 15);
  const std::string remedy = "hone-worker --server " + service.address() + " --threads 1";
  EXPECT_THAT(tune.errors, AllOf(HasSubstr("waiting: no worker is connected; start one: "), HasSubstr(remedy),
                                 HasSubstr("without progress"), HasSubstr("to go on: ")));
  EXPECT_TRUE(WaitUntil([&] { return service.Job(1).value("state", "") == "stopped"; }, 10));

  const Stopwatch budget;
  const Finished by_budget =
      Hone(folder, {"tune", model, "--server", service.address(), "--budget", "3s", "--threads", "1"});
  EXPECT_EQ(by_budget.code, 5) << by_budget.errors;
  EXPECT_LT(budget.seconds(), 12) << "the budget runs from the start of the job";
  EXPECT_THAT(by_budget.errors, HasSubstr("before anything was measured: no worker is connected"));
}

TEST(Waiting, ForATargetThatNoWorkerHasSaysSoAndEnds) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  const Finished tune = Hone(folder, {"tune", model, "--db", folder / "t.db", "--target", "cpu:neoverse-n1", "--wait",
                                      "10s", "--threads", "1"});
  EXPECT_EQ(tune.code, 5) << tune.errors;
  EXPECT_THAT(tune.errors, AllOf(HasSubstr("none of the 1 workers fits: the job needs target cpu:neoverse-n1"),
                                 HasSubstr("leave --target out"), Not(HasSubstr("hone-worker --server"))));
}

TEST(Waiting, ForAFullDiskSaysSoAndGoesOn) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), full = folder / "full";
  const std::string server = "unix:" + (folder / "s");
  Process daemon(folder, "honed", {"--db", folder / "tuning.db", "--listen", server, "--lease", "3"},
                 {{"LD_PRELOAD", HONE_BIN "/../lib/libhone_full_disk.so"}, {"HONE_TEST_FULL_DISK", full}});
  ASSERT_TRUE(WaitUntil([&] { return daemon.Output().find("listening on") != std::string::npos; })) << daemon.Errors();
  Process worker(folder, "hone-worker", {"--server", server, "--threads", "1"});
  const Arguments common{"tune", model, "--server", server, "--trials", "40", "--threads", "1"};
  const auto job = [&](int id) {
    const Finished show = Hone(folder, {"jobs", "show", std::to_string(id), "--json", "--server", server});
    return show.code == 0 ? JsonLines(show.output).at(0) : Json::object();
  };

  Process tune(folder, "hone", common);
  ASSERT_TRUE(WaitUntil([&] { return job(1).value("trials", 0) > 0; }, 90)) << tune.Errors();
  WriteAll(full, "");
  const std::string words = "the disk is full: " + (folder / "tuning.db");
  EXPECT_TRUE(WaitUntil([&] { return tune.Errors().find("waiting: " + words) != std::string::npos; }, 60))
      << tune.Errors();
  EXPECT_THAT(job(1).value("waiting_for", ""), HasSubstr(words));
  const Finished show = Hone(folder, {"jobs", "show", "1", "--server", server});
  EXPECT_THAT(show.output, AllOf(HasSubstr(words), HasSubstr("free some space")));
  EXPECT_TRUE(tune.running()) << tune.Errors();
  std::filesystem::remove(full);
  EXPECT_EQ(tune.Wait(), 0) << tune.Errors();
  EXPECT_EQ(job(1).at("trials"), 40);

  // It ends on Ctrl-C, and by itself.
  WriteAll(full, "");
  Arguments impatient = common;
  impatient.insert(impatient.end(), {"--wait", "5s"});
  const Finished second = Hone(folder, impatient);
  EXPECT_EQ(second.code, 5) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr(words));
  Process third(folder, "hone", common);
  ASSERT_TRUE(WaitUntil([&] { return third.Errors().find(words) != std::string::npos; }, 30)) << third.Errors();
  const Stopwatch watch;
  third.Signal(SIGINT);
  EXPECT_EQ(third.Wait(), 130);
  EXPECT_LT(watch.seconds(), 2 * Slowdown());
}

TEST(Waiting, ForADatabaseThatAnotherProgramHoldsSaysSoAndGoesOn) {
  const char* python = std::getenv("HONE_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "HONE_PYTHON is not set; tests/run sets it";
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  Process tune(folder, "hone", {"tune", model, "--server", service.address(), "--trials", "40", "--threads", "1"});
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors();
  Process backup(folder, python,
                 {"-c",
                  "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], 60, isolation_level=None); "
                  "c.execute('BEGIN IMMEDIATE'); time.sleep(60)",
                  service.database()});
  EXPECT_TRUE(
      WaitUntil([&] { return tune.Errors().find("waiting: the database takes no write") != std::string::npos; }, 40))
      << tune.Errors() << backup.Errors();
  backup.Signal(SIGKILL);
  EXPECT_EQ(tune.Wait(), 0) << tune.Errors();
  EXPECT_EQ(service.Job(1).at("trials"), 40);
}

TEST(Waiting, ForTheTurnOfTheMachineNamesItsHolder) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  ASSERT_TRUE(WaitUntil([&] {
    return Hone(folder, {"workers", "list", "--server", service.address()}).output.find("idle") != std::string::npos;
  }));
  const Process holder(folder, "/usr/bin/flock", {folder / ".run/lock", "/bin/sleep", "60"});
  const Finished tune = Hone(folder, {"tune", model, "--server", service.address(), "--wait", "6s", "--threads", "1"});
  EXPECT_EQ(tune.code, 5) << tune.errors;
  EXPECT_THAT(tune.errors, HasSubstr("waits for the turn of its machine"));
}

TEST(Ends, AJobThatAnotherStopsEndsItsTune) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  Process tune(folder, "hone", {"tune", model, "--server", service.address(), "--budget", "120s", "--threads", "1"});
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors();
  const Finished stop = Hone(folder, {"jobs", "stop", "1", "--server", service.address()});
  EXPECT_EQ(stop.code, 0) << stop.errors;
  EXPECT_EQ(tune.Wait(), 130);
  const std::string kept = std::to_string(service.Job(1).at("trials").get<int>()) + " trials are kept";
  EXPECT_THAT(tune.Errors(), AllOf(HasSubstr("job 1 was stopped by another command"), HasSubstr(kept)));
  EXPECT_THAT(stop.output, AllOf(HasSubstr("job 1 is stopped: "), HasSubstr(kept)));
  const Finished again = Hone(folder, {"jobs", "stop", "1", "--server", service.address()});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.output, HasSubstr("job 1 had ended before: stopped"));
  const Finished none = Hone(folder, {"jobs", "stop", "9", "--server", service.address()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.errors, HasSubstr(" jobs list --server " + service.address()));
}

// Before there is a job the records of another Hone are looked at, for which the daemon is asked: here it is held while
// it does not answer.
TEST(Ends, OnCtrlCWhileOldRecordsAreChecked) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), visits = folder / "visits";
  WriteAll(visits, std::string(8, '\0'));
  Service service(folder);
  Process tune(folder, "hone", {"tune", model, "--server", service.address(), "--trials", "8", "--threads", "1"},
               {{"HONE_CRASH_AT", "client.connected:1:" + visits}, {"HONE_CRASH_BY", std::to_string(SIGSTOP)}});
  int status = 0;
  ASSERT_EQ(::waitpid(tune.pid(), &status, WUNTRACED), tune.pid());
  ASSERT_TRUE(WIFSTOPPED(status)) << tune.Errors();
  service.daemon().Signal(SIGSTOP);
  tune.Signal(SIGCONT);
  ::usleep(500'000);
  const Stopwatch watch;
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(30), 130) << tune.Errors();
  EXPECT_LT(watch.seconds(), 2 * Slowdown());
  service.daemon().Signal(SIGCONT);
}

TEST(Ends, APrivateDaemonAndWorkerThatAreKilledAreStartedAgain) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), database = folder / "t.db";
  Process tune(folder, "hone", {"tune", model, "--db", database, "--trials", "60", "--threads", "1", "--json"});
  const auto trials = [&] {
    const std::string output = tune.Output();
    const size_t at = output.rfind("\"trials\":");
    return at == std::string::npos ? 0 : std::atoi(output.c_str() + at + 9);
  };
  for (const char* program : {"/hone-worker", "/honed"}) {
    const int before = trials();
    ASSERT_TRUE(WaitUntil([&] { return trials() > before || !tune.running(); }, 90)) << tune.Errors();
    ASSERT_TRUE(tune.running()) << "the job was over before anything was killed";
    const std::vector<pid_t> victims = FindChildren(tune.pid(), {program, folder.path()});
    ASSERT_EQ(victims.size(), 1u) << program;
    ::kill(victims[0], SIGKILL);
    const std::string said = std::string("the private ") + (program == std::string("/honed") ? "daemon" : "worker");
    EXPECT_TRUE(WaitUntil(
        [&] { return tune.Errors().find(said + " had ended: it is started again") != std::string::npos; }, 30))
        << tune.Errors();
  }
  ASSERT_EQ(tune.Wait(), 0) << tune.Errors();
  EXPECT_EQ(JsonLines(tune.Output()).back().at("trials"), 60);
}

// ---- what is suggested, and shown ----

TEST(Hints, AreWholeCommands) {
  const TempFolder folder;
  std::filesystem::rename(SaveTiny(folder.path()), folder / "a model.onnx");
  const std::string model = folder / "a model.onnx", token = folder / "token";
  WriteAll(token, "open-sesame-0123456789\n");
  ::chmod(token.c_str(), 0600);
  const Finished by_file =
      Hone(folder, {"tune", model, "--db", folder / "t.db", "--trials", "2", "--threads", "1", "--numeric", "strict"});
  ASSERT_EQ(by_file.code, 0) << by_file.errors;
  EXPECT_THAT(by_file.errors, Not(HasSubstr("hone-worker --server")));
  const std::string compile = After(by_file.errors, "to build it: ");
  EXPECT_THAT(compile, AllOf(HasSubstr("--db"), HasSubstr("--threads 1"), HasSubstr("--numeric strict")));
  const Finished built = Shell(folder, compile);
  ASSERT_EQ(built.code, 0) << compile << "\n" << built.errors;
  EXPECT_EQ(TunedKernels(built), 2) << built.errors;
  EXPECT_TRUE(std::filesystem::exists(folder / "a model.hone"));

  // On the network: an authority, a certificate for each end, and a token beside.
  ASSERT_EQ(Hone(folder, {"ca", "init", folder / "ca"}).code, 0);
  const auto issue = [&](const std::string& role, const std::string& name) -> Arguments {
    const Finished made = Hone(folder, {"ca", "issue", folder / "ca", "--role", role, "--name", name});
    EXPECT_EQ(made.code, 0) << made.errors;
    const std::string stem = folder / ("ca/" + role + "-" + name);
    const std::string flags =
        " --tls-ca " + folder / "ca/ca.crt" + " --tls-cert " + stem + ".crt --tls-key " + stem + ".key";
    EXPECT_THAT(made.output, HasSubstr(flags));
    return {"--tls-ca", folder / "ca/ca.crt", "--tls-cert", stem + ".crt", "--tls-key", stem + ".key"};
  };
  const Arguments tls = issue("admin", "me");
  Arguments listen = issue("daemon", "127.0.0.1");
  for (const std::string& word : Arguments{"--db", folder / "n.db", "--listen", "127.0.0.1:0", "--token-file", token}) {
    listen.push_back(word);
  }
  Process daemon(folder, "honed", listen);
  ASSERT_TRUE(WaitUntil([&] { return daemon.Output().find('\n') != std::string::npos; })) << daemon.Errors();
  const std::string address = After(daemon.Output(), "listening on ");
  Arguments by_net_words{"tune",     model, "--server",  address, "--token-file", token,
                         "--trials", "2",   "--threads", "1",     "--wait",       "3s"};
  by_net_words.insert(by_net_words.end(), tls.begin(), tls.end());
  const Finished by_net = Hone(folder, by_net_words);
  EXPECT_EQ(by_net.code, 5);
  const std::string worker_command = After(by_net.errors, "waiting: no worker is connected; start one: ");
  EXPECT_THAT(worker_command, AllOf(HasSubstr(address), HasSubstr("--token-file " + token), HasSubstr(" --tls-key ")));
  std::string again = After(by_net.errors, "to go on: ");
  ASSERT_THAT(again, HasSubstr("--wait 3s"));
  // A worker probes its machine before it connects, which takes longer than 3 s where other work runs beside it.
  again.replace(again.find("--wait 3s"), 9, "--wait 5m");
  Process worker(folder, "/bin/sh", {"-c", "exec " + worker_command}, {{"HONE_ALLOW_MISSING_LAYER", "all"}});
  const Finished tuned = Shell(folder, again);
  ASSERT_EQ(tuned.code, 0) << again << "\n" << tuned.errors;
  EXPECT_EQ(Shell(folder, After(tuned.errors, "to build it: ")).code, 0);
}

TEST(Progress, FitsTheTerminalAndInforms) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  constexpr int kColumns = 50;
  Terminal tune(folder, "hone", {"tune", model, "--db", folder / "t.db", "--trials", "24", "--threads", "1"}, kColumns);
  ASSERT_EQ(tune.Wait(), 0) << tune.Screen();
  int progress = 0;
  for (const std::string& line : tune.Lines()) {
    if (line.rfind("trials ", 0) != 0 || line.find(" in ") != std::string::npos) continue;
    ++progress;
    EXPECT_LT(line.size(), static_cast<size_t>(kColumns)) << line;
    EXPECT_THAT(line, HasSubstr("tasks "));
  }
  EXPECT_GT(progress, 0) << tune.Screen();
  EXPECT_THAT(tune.Screen(), AllOf(HasSubstr("share: of the model's time"), HasSubstr("tasks 2/2"),
                                   HasSubstr("timing before and after in turn: round ")));
}

// ---- mistakes ----

TEST(Mistakes, AreToldInWords) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), bundle = folder / "t.hone";
  ASSERT_EQ(Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--threads", "1"}).code, 0);
  const struct {
    Arguments arguments;
    std::string words;
  } cases[] = {
      {{"tnue", model}, "there is no command 'tnue' in hone; did you mean 'tune'?"},
      {{"jobs", "lst"}, "there is no command 'lst' in hone jobs; did you mean 'list'?"},
      {{"tune", model, "--threads", "0"}, "a number of 1 to 1024 threads is allowed"},
      {{"compile", model, "-o", bundle, "--threads", "0"}, "a number of 1 to 1024 threads is allowed"},
      {{"run", bundle, "--threads", "0"}, "a number of 1 to 1024 threads is allowed"},
      {{"bench", bundle, "--threads", "0"}, "a number of 1 to 1024 threads is allowed"},
      {{"bench", bundle, "--seconds", "-1"}, "more than 0 seconds are needed"},
      {{"tune", model, "--trials", "0"}, "more than 0 trials are needed"},
      {{"tune", model, "--wait", "soon"}, "'soon' is not a duration"},
      {{"compile", model, "-o", bundle, "--dim", "n"}, "--dim n: it is NAME=SIZE, such as batch=4"},
  };
  for (const auto& c : cases) {
    const Finished run = Hone(folder, c.arguments);
    EXPECT_EQ(run.code, 2) << c.arguments[0] << ": " << run.errors;
    EXPECT_THAT(run.errors, HasSubstr(c.words));
    EXPECT_THAT(run.errors, Not(HasSubstr("not in range")));
  }
  const Finished threads = RunProgram(folder, "hone-worker", {"--server", "unix:x", "--threads", "0"});
  EXPECT_EQ(threads.code, 2);
  EXPECT_THAT(threads.errors, HasSubstr("a number of 1 to 1024 threads is allowed"));
  const Finished lease = RunProgram(folder, "honed", {"--db", folder / "x.db", "--listen", "unix:x", "--lease", "0"});
  EXPECT_EQ(lease.code, 2);
  EXPECT_THAT(lease.errors, HasSubstr("a number of 1 to 3600 seconds is allowed"));
  const Finished listen =
      RunProgram(folder, "honed", {"--db", folder / "x.db", "--listen", "unix:" + (folder / "no/s")});
  EXPECT_EQ(listen.code, 2) << listen.errors;
  EXPECT_THAT(listen.errors, AllOf(HasSubstr("--listen"), HasSubstr("there is no folder " + (folder / "no"))));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.db"));
}

TEST(Mistakes, EveryHelpHasTheExitCodesAndOnePort) {
  const TempFolder folder;
  std::vector<Arguments> commands{{}};
  for (const char* command : {"tune", "compile", "run", "bench", "inspect", "opt", "doctor"})
    commands.push_back({command});
  for (const char* verb : {"list", "show", "watch", "stop"}) commands.push_back({"jobs", verb});
  for (const char* verb : {"list", "best", "export", "import"}) commands.push_back({"records", verb});
  for (const char* verb : {"init", "issue"}) commands.push_back({"ca", verb});
  commands.push_back({"workers", "list"});
  for (Arguments& command : commands) {
    command.push_back("--help");
    const Finished help = Hone(folder, command);
    EXPECT_EQ(help.code, 0) << command[0];
    EXPECT_THAT(help.output, HasSubstr("Exit codes:")) << command[0];
  }
  for (const char* program : {"honed", "hone-worker"}) {
    const Finished help = RunProgram(folder, program, {"--help"});
    EXPECT_THAT(help.output, AllOf(HasSubstr("Exit codes:"), HasSubstr(":7171"))) << program;
  }
}

TEST(Workers, NoneAndLostOnesAreSaid) {
  const TempFolder folder;
  Service service(folder);
  const Arguments list{"workers", "list", "--server", service.address()},
      doctor{"doctor", "--server", service.address()};
  const Finished none = Hone(folder, list);
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.output, AllOf(HasSubstr("none"), HasSubstr("hone-worker --server " + service.address())));
  const Finished amiss = Hone(folder, doctor);
  EXPECT_EQ(amiss.code, 5) << amiss.output;
  EXPECT_THAT(amiss.output, HasSubstr("AMISS"));
  Process& worker = service.StartWorker();
  ASSERT_TRUE(WaitUntil([&] { return Hone(folder, list).output.find("idle") != std::string::npos; }));
  EXPECT_EQ(Hone(folder, doctor).code, 0);
  const Stopwatch watch;
  worker.Signal(SIGKILL);
  double asked = 0;  // when the call began that said so
  ASSERT_TRUE(WaitUntil(
      [&] {
        asked = watch.seconds();
        return Hone(folder, list).output.find("lost") != std::string::npos;
      },
      10));
  EXPECT_LT(asked, 5);
  EXPECT_EQ(Hone(folder, doctor).code, 5);
}

}  // namespace
}  // namespace hone::system_test
