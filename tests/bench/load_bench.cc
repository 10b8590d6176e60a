// A daemon under the load of a fleet, printed: simulated workers in this process, over real gRPC, one connection each;
// a real honed with its database, and searches that propose by counting.
//   hone-load-bench                                     2,000 workers, 1,000 jobs
//   hone-load-bench --workers 200 --jobs 50 --seconds 5
//   hone-load-bench --db /fast/load.db                  a new file; or "postgres": a private server, with fsync on
//   hone-load-bench --quick                             a moment, to see that it runs
//   hone-load-bench --work-ms 8000 --look-ups 10000     1,000 completions a second, and look-ups beside them
//   hone-load-bench --workers 200 --jobs 100 --soak-minutes 10
// A worker asks for leases, works on them for `--work-ms`, give or take half of it, reports, asks again (without that
// spread all workers come at the same moment, again and again): at most workers x credits / work completions a second
// are offered, 5,333 unless told otherwise. (500 ms offer more than the daemon can take: what it takes then is its
// limit, and leases wait.) Lease latency: from a call that asks to the answer that lends. A completion counts when its
// acknowledgement is here, which is after its commit. What the daemon says of its events is of the same seconds. Beside
// them, in the same run: by the same calls, what an echo reaches that answers everything at once; what SQLite commits
// of bare rows; what the disk syncs.
//
// A soak lets the load go on with a fault every five seconds (a worker vanishes, searches are killed, the daemon stands
// still, its disk is full, it is killed and started again), prints memory and descriptors, kills the daemon in the end
// and counts what was acknowledged and is not in the database: 1 is its exit code when there is any, and when after
// half an hour or more memory has grown by more than 1 MiB an hour: the slope of a line through the lowest of each
// minute, less twice its standard error. Memory is looked at after the first third; the daemon is killed before that
// alone, since a new process begins anew. tests/system/soak runs it beside real workers.
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "compiler/support/sha256.h"
#include "database/sqlite_connection.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.grpc.pb.h"
#include "httplib.h"
#include "tests/bench/histogram.h"
#include "tests/bench/simulated_worker.h"
#include "tests/database/postgres/private_server.h"
#include "tests/tuner/service/honed_process.h"
#include "tuner/dispatch/events.h"

namespace hone {
namespace {

struct Options {
  int workers = 2000, jobs = 1000;
  int searches = 8;  // processes: enough that nobody waits for them
  std::string db;    // empty: a file in a folder of its own
  LoadOptions load;
  int look_ups = 0;  // a second, beside the completions
  double warm_up = 5, seconds = 20, soak_minutes = 0;
};

// Lends to whoever asks and acknowledges what it is told, at once, and holds the other calls until the next one: what
// is left is gRPC and the workers.
class Echo : public v1::Fleet::CallbackService {
 public:
  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context, const v1::HelloRequest*,
                                  v1::HelloReply*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    for (const v1::TrialResult& result : request->results()) *reply->add_acked() = result.id();
    for (uint32_t i = 0; i < request->credits(); ++i) {
      v1::Lease& lease = *reply->add_want();
      lease.mutable_id()->set_trial(++trials_);
      lease.set_trace(std::string(200, 't'));
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    grpc::ServerUnaryReactor* over = nullptr;
    bool held = reply->want().empty() && reply->acked().empty();
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      held = held && !released_;
      over = std::exchange(held_[request->session()], held ? reactor : nullptr);
    }
    if (over != nullptr) over->Finish(grpc::Status::OK);
    if (!held) reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  // The calls that are held, and those that still come: the server ends when they have.
  void Release() {
    const std::lock_guard<std::mutex> guard(mutex_);
    released_ = true;
    for (auto& [session, reactor] : held_) {
      if (reactor != nullptr) std::exchange(reactor, nullptr)->Finish(grpc::Status::OK);
    }
  }

 private:
  std::atomic<uint64_t> trials_{0};
  std::mutex mutex_;
  std::map<std::string, grpc::ServerUnaryReactor*> held_;  // by session
  bool released_ = false;
};

// Rows of the size of what a completion leaves, as many in a transaction as a busy daemon's have, without an index.
void PrintBareCommits(const std::string& path) {
  constexpr int kGroup = 256, kBytes = 2000;
  const auto connection = SqliteConnection::Open(path, SqliteConnection::Mode::kCreate);
  HONE_CHECK(connection.ok()) << connection.status();
  SqliteConnection& c = **connection;
  HONE_CHECK(c.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE bare (row BLOB)").ok());
  const std::string row(kBytes, 'r');
  Sample sample;
  int64_t count = 0;
  const absl::Time start = absl::Now();
  for (absl::Time began = start; began < start + absl::Seconds(1); began = absl::Now()) {
    HONE_CHECK(c.Begin(SqlConnection::Access::kWrite).ok());
    for (int i = 0; i < kGroup; ++i, ++count) {
      const auto insert = c.Prepare("INSERT INTO bare VALUES (?)");
      HONE_CHECK(insert.ok() && (*insert)->Blob(row).Run().ok());
    }
    HONE_CHECK(c.Commit().ok());
    sample.Add(absl::Now() - began);
  }
  std::printf("bare    %8.0f rows of %d bytes a second committed, %d at once: %s\n",
              static_cast<double>(count) / absl::ToDoubleSeconds(absl::Now() - start), kBytes, kGroup,
              sample.Text().c_str());
}

void PrintSyncsOfDisk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  HONE_CHECK(file >= 0) << path;
  const std::string page(4096, 'x');
  Sample sample;
  int64_t count = 0;
  for (const absl::Time end = absl::Now() + absl::Seconds(1); absl::Now() < end; ++count) {
    const absl::Time began = absl::Now();
    HONE_CHECK(::pwrite(file, page.data(), page.size(), 4096 * (count % 1000)) == 4096 && ::fdatasync(file) == 0);
    sample.Add(absl::Now() - began);
  }
  ::close(file);
  std::printf("disk    %8lld writes of 4 KiB with fdatasync a second: %s\n", static_cast<long long>(count),
              sample.Text().c_str());
}

// ---- what is seen of a process from outside ----

// "VmRSS" of /proc, in MiB.
double MemoryOf(pid_t pid, const std::string& field) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, field + ":")) return std::atof(line.c_str() + field.size() + 1) / 1024;
  }
  return 0;
}

int DescriptorsOf(pid_t pid) {
  int count = -2;  // . and ..
  DIR* folder = ::opendir(absl::StrCat("/proc/", pid, "/fd").c_str());
  for (; folder != nullptr && ::readdir(folder) != nullptr;) ++count;
  if (folder != nullptr) ::closedir(folder);
  return count;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream list(absl::StrCat("/proc/", pid, "/task/", pid, "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  HONE_CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  HONE_CHECK(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

// ---- the load ----

// Connected when it is made; what they did in a while is printed.
class Load {
 public:
  Load(const char* what, const Options& options) : what_(what), options_(options) {
    const absl::Time began = absl::Now();
    for (int i = 0; i < options.workers; ++i) {
      workers_.push_back(new SimulatedWorker(absl::StrCat(what, " ", i), options.load, timer_, counts_));
      workers_.back()->Start();
    }
    while (counts_.connected < options.workers && absl::Now() - began < absl::Minutes(2)) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    std::printf("%-7s %8lld workers connected in %.1f s\n", what, static_cast<long long>(counts_.connected.load()),
                absl::ToDoubleSeconds(absl::Now() - began));
  }
  ~Load() {
    for (SimulatedWorker* worker : workers_) worker->Stop();
  }

  void Measure(absl::Duration time) {
    counts_.lease.Clear();
    const int64_t acked = counts_.acked, calls = counts_.calls, failed = counts_.failed;
    const absl::Time start = absl::Now();
    absl::SleepFor(time);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    const auto rate = [&](int64_t now, int64_t before) { return static_cast<double>(now - before) / seconds; };
    std::printf("%-7s %8.0f completions a second acknowledged, %.0f calls, %lld failed; lease: %s\n", what_,
                rate(counts_.acked, acked), rate(counts_.calls, calls), static_cast<long long>(counts_.failed - failed),
                counts_.lease.Text().c_str());
  }
  SimulatedWorker& worker(uint64_t number) { return *workers_[number % workers_.size()]; }
  LoadCounts& counts() { return counts_; }

 private:
  const char* what_;
  const Options& options_;
  LoadCounts& counts_ = *new LoadCounts;  // these outlive it: calls that are out speak of them
  Timer& timer_ = *new Timer;
  std::vector<SimulatedWorker*> workers_;
};

void EchoAlone(const Options& options) {
  Echo& echo = *new Echo;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.load.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HONE_CHECK(server != nullptr) << options.load.address;
  {
    Load load("echo", options);
    absl::SleepFor(absl::Seconds(options.warm_up));
    load.Measure(absl::Seconds(options.seconds));
  }
  echo.Release();
  server->Shutdown(std::chrono::system_clock::now());
}

v1::Workload WorkloadOf(int job) {
  v1::Workload workload;
  workload.set_name(absl::StrCat("dense_", job));
  workload.set_text(absl::StrCat("workload ", job, std::string(2000, 'w')));
  workload.set_hash(Sha256(workload.text()));
  workload.set_flop(1e6);
  return workload;
}

// Look-ups of the best records at a fixed rate, a call for the kernels of a model, from when it is made until its end,
// where they are printed. A latency counts from the time its call was due, whether or not the one before was answered.
class LookUps {
 public:
  explicit LookUps(const Options& options) : options_(options) {
    for (int i = 0; i < options.jobs; ++i) workloads_.push_back(WorkloadOf(i).hash());
    began_ = absl::Now();
    for (int i = 0; i < kCallers; ++i) callers_.emplace_back([this, i] { Call(i); });
  }
  ~LookUps() {
    stop_ = true;
    for (std::thread& caller : callers_) caller.join();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - began_);
    std::printf("look-ups %7.0f a second of %d wanted, %d a call, %.0f %% found; call: %s\n",
                static_cast<double>(answered_) / seconds, options_.look_ups, kKernels,
                100.0 * static_cast<double>(found_) / static_cast<double>(std::max<int64_t>(1, answered_)),
                calls_.Text().c_str());
  }

 private:
  static constexpr int kKernels = 20;  // of a model
  static constexpr int kCallers = 8;

  void Call(int caller) {
    const auto stub = v1::Tune::NewStub(grpc::CreateChannel(options_.load.address, grpc::InsecureChannelCredentials()));
    Random random(static_cast<uint64_t>(caller));
    for (int64_t number = caller; !stop_; number += kCallers) {
      const absl::Time due = began_ + absl::Seconds(1) * number * kKernels / options_.look_ups;
      absl::SleepFor(due - absl::Now());
      v1::BestRecordsRequest request;
      for (int i = 0; i < kKernels; ++i) {
        v1::BestKey& key = *request.add_keys();
        key.set_workload_hash(workloads_[random.Below(workloads_.size())]);
        key.set_device_class(kSimulatedDevice);
        key.set_threads(2);
        key.set_numeric(v1::NUMERIC_DEFAULT);
      }
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
      v1::BestRecordsReply reply;
      const grpc::Status status = stub->BestRecords(&context, request, &reply);
      HONE_CHECK(status.ok()) << status.error_message();
      calls_.Add(absl::Now() - due);
      answered_ += reply.answers_size();
      for (const v1::BestAnswer& answer : reply.answers()) found_ += answer.has_record();
    }
  }

  const Options& options_;
  std::vector<std::string> workloads_;  // their digests
  absl::Time began_;
  Sample calls_;
  std::atomic<int64_t> answered_{0}, found_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> callers_;
};

// A daemon with open jobs.
class LoadedDaemon {
 public:
  LoadedDaemon(const Options& options, const TempFolder& folder)
      : options_(options),
        port_(FreePort()),
        database_(options.db.empty() ? folder / "load.db" : options.db),
        full_disk_(folder / "full") {
    if (options.soak_minutes > 0) {  // of the daemon, not of this process; it costs a system call for each write
      ::setenv("LD_PRELOAD", HONE_BIN "/../lib/libhone_full_disk.so", 1);
      ::setenv("HONE_TEST_FULL_DISK", full_disk_.c_str(), 1);
    }
    Start();
    const auto stub = v1::Tune::NewStub(grpc::CreateChannel(options.load.address, grpc::InsecureChannelCredentials()));
    for (int i = 0; i < options.jobs; ++i) Submit(*stub, i);
  }
  // On the database as it is.
  void Start() {
    honed_ = std::make_unique<HonedProcess>(std::vector<std::string>{"--db",
                                                                     database_,
                                                                     "--listen",
                                                                     options_.load.address,
                                                                     "--http",
                                                                     absl::StrCat(port_),
                                                                     "--max-jobs",
                                                                     "100000",
                                                                     "--max-tasks",
                                                                     "1000000",
                                                                     "--stall",
                                                                     "1000000",
                                                                     "--searches",
                                                                     std::to_string(options_.searches),
                                                                     "--search-program",
                                                                     HONE_BIN "/hone-fake-search",
                                                                     "--search-argument",
                                                                     "none",
                                                                     "--search-argument",
                                                                     "1000000"});
    HONE_CHECK(honed_->ready()) << "honed did not start: " << honed_->Errors();
  }

  // Its page of metrics.
  std::string Page() const {
    httplib::Client http("127.0.0.1", port_);
    const auto page = http.Get("/metrics");
    HONE_CHECK(page && page->status == 200);
    return page->body;
  }
  // What it has done since it gave the page; empty: since it began.
  void Print(const std::string& since = "") const {
    const std::string page = Page();
    const auto of = [&](const std::string& name, const std::string& label = "") {
      return Histogram(page, name, label).Since(Histogram(since, name, label));
    };
    const Histogram events = of("hone_event_seconds"), work = of("hone_event_processor_seconds");
    const Histogram commits = of("hone_commit_seconds");
    std::printf(
        "daemon  event p50 %.0f us, p99 %.0f us, of processor time %.0f and %.0f; commit p50 %.0f ms, p99 %.0f ms; "
        "memory %.0f MiB, "
        "at most %.0f\n",
        events.Quantile(0.5), events.Quantile(0.99), work.Quantile(0.5), work.Quantile(0.99),
        commits.Quantile(0.5) * 1e-3, commits.Quantile(0.99) * 1e-3, MemoryOf(pid(), "VmRSS"),
        MemoryOf(pid(), "VmHWM"));
    for (const char* event : kEventNames) {
      const Histogram one = of("hone_event_processor_seconds", absl::StrCat("event=\"", event, "\""));
      if (one.count() < 100) continue;
      std::printf("        %-14s %8.0f, processor time p50 %.0f us, p99 %.0f us\n", event, one.count(),
                  one.Quantile(0.5), one.Quantile(0.99));
    }
  }
  void Kill() {
    honed_->Signal(SIGKILL);
    honed_->Wait();
  }
  // Ends this program, with what the daemon said last, when it has ended by itself.
  void CheckRuns() {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0)
      return;
    const int code = honed_->Wait();
    const std::string said = honed_->Errors();
    HONE_CHECK(false) << "honed ended by itself, with code " << code << ": .. "
                      << said.substr(said.size() - std::min<size_t>(said.size(), 1000));
  }
  pid_t pid() const { return honed_->pid(); }
  void Signal(int number) { honed_->Signal(number); }
  void FillDisk() { std::ofstream(full_disk_).put('x'); }
  void EmptyDisk() { std::remove(full_disk_.c_str()); }
  const std::string& database() const { return database_; }

 private:
  static void Submit(v1::Tune::Stub& stub, int number) {
    v1::SubmitRequest request;
    request.set_request_id(absl::StrCat("load ", number));
    request.set_model_name("load");
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    v1::TaskSpec& task = *request.add_tasks();
    *task.mutable_workload() = WorkloadOf(number);
    task.set_weight(1);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    v1::SubmitReply reply;
    const auto writer = stub.Submit(&context, &reply);
    writer->WriteLast(request, grpc::WriteOptions());
    const grpc::Status status = writer->Finish();
    HONE_CHECK(status.ok()) << status.error_message();
  }

  const Options& options_;
  const int port_;
  const std::string database_, full_disk_;
  std::unique_ptr<HonedProcess> honed_;
};

// ---- the soak ----

constexpr double kMostGrowth = 1;     // MiB an hour, by more than twice the standard error of the slope
constexpr double kLeastMinutes = 30;  // of a soak whose memory is judged: twenty points

void DoSomeFault(Random& random, Load& load, LoadedDaemon& daemon, bool may_kill) {
  switch (random.Below(may_kill ? 5 : 4)) {
    case 0: return load.worker(random.Below(1 << 20)).Vanish();
    case 1:
      for (const pid_t search : ChildrenOf(daemon.pid())) ::kill(search, SIGKILL);
      return;
    case 2:
      daemon.Signal(SIGSTOP);
      absl::SleepFor(absl::Seconds(1));
      return daemon.Signal(SIGCONT);
    case 3:
      daemon.FillDisk();
      absl::SleepFor(absl::Seconds(2));
      return daemon.EmptyDisk();
    default: daemon.Kill(); daemon.Start();
  }
}

struct Slope {
  double slope = 0;
  double error = 0;  // its standard error
};

// Of a straight line through the points, by least squares.
Slope SlopeOf(const std::vector<std::pair<double, double>>& points) {
  const double n = static_cast<double>(points.size());
  if (n < 3) return {};
  double x = 0, y = 0, xx = 0, xy = 0, squares = 0;
  for (const auto& [at, value] : points) x += at / n, y += value / n;
  for (const auto& [at, value] : points) {
    xx += (at - x) * (at - x);
    xy += (at - x) * (value - y);
  }
  const double slope = xy / xx;
  for (const auto& [at, value] : points) squares += std::pow(value - y - slope * (at - x), 2);
  return {slope, std::sqrt(squares / (n - 2) / xx)};
}

// The lowest of each minute: what is in use for a moment, for the calls that are open, comes and goes.
std::vector<std::pair<double, double>> LowestByMinute(const std::vector<std::pair<double, double>>& by_hours) {
  std::map<int, std::pair<double, double>> lowest;
  for (const auto& [hours, value] : by_hours) {
    const auto found = lowest.try_emplace(static_cast<int>(hours * 60), hours, value).first;
    if (value < found->second.second) found->second = {hours, value};
  }
  std::vector<std::pair<double, double>> points;
  for (const auto& [minute, point] : lowest) points.push_back(point);
  return points;
}

// Of the trials that were acknowledged, those that the database does not know as ended.
int64_t LostOf(const std::string& database, const std::vector<uint64_t>& acked) {
  auto connection = SqliteConnection::Open(database, SqliteConnection::Mode::kWrite);
  HONE_CHECK(connection.ok()) << connection.status();
  int64_t lost = 0;
  for (const uint64_t id : acked) {
    const auto query = (*connection)->Prepare("SELECT 1 FROM trial WHERE id = ? AND state = 2");
    HONE_CHECK(query.ok()) << query.status();
    (*query)->Int(static_cast<int64_t>(id));
    const absl::StatusOr<bool> row = (*query)->Next();
    HONE_CHECK(row.ok()) << row.status();
    lost += !*row;
  }
  return lost;
}

int Soak(const Options& options, const TempFolder& folder) {
  LoadedDaemon daemon(options, folder);
  Load load("soak", options);
  Random random(1);
  std::vector<std::pair<double, double>> memory;  // by hours
  int faults = 0;
  const absl::Time began = absl::Now(), end = began + absl::Minutes(options.soak_minutes);
  for (int rounds = 0; absl::Now() < end; ++rounds) {
    absl::SleepFor(absl::Seconds(5));
    const bool settled = absl::Now() - began > (end - began) / 3;
    DoSomeFault(random, load, daemon, !settled);
    daemon.CheckRuns();
    ++faults;
    const double hours = absl::ToDoubleHours(absl::Now() - began);
    if (settled) memory.emplace_back(hours, MemoryOf(daemon.pid(), "VmRSS"));
    if (rounds % 6 == 5) {
      std::printf("soak    %5.1f minutes, %d faults: memory %.1f MiB, %d descriptors, %lld acknowledged\n", hours * 60,
                  faults, MemoryOf(daemon.pid(), "VmRSS"), DescriptorsOf(daemon.pid()),
                  static_cast<long long>(load.counts().acked.load()));
    }
  }
  daemon.Print();
  daemon.Kill();
  std::vector<uint64_t> acked;
  {
    const std::lock_guard<std::mutex> guard(load.counts().mutex);
    acked = load.counts().acked_trials;
  }
  const int64_t lost = LostOf(daemon.database(), acked);
  const Slope growth = SlopeOf(LowestByMinute(memory));
  const bool judged = options.soak_minutes >= kLeastMinutes;
  const bool grew = judged && growth.slope - 2 * growth.error > kMostGrowth;
  std::printf(
      "soak    memory grew by %.1f MiB an hour, give or take %.1f, after the first third%s; %zu acknowledged, %lld "
      "lost\n",
      growth.slope, 2 * growth.error, judged ? "" : " (too short to judge)", acked.size(),
      static_cast<long long>(lost));
  return lost == 0 && !grew ? 0 : 1;
}

int Run(Options options) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as honed does
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = descriptors.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const TempFolder folder;
  options.load.address = "unix:" + (folder / "daemon");
  if (options.soak_minutes > 0) return Soak(options, folder);
  std::unique_ptr<PrivateServer> server;
  if (options.db == "postgres") {
    auto started = PrivateServer::Start(/*durable=*/true);
    HONE_CHECK(started.ok()) << started.status();
    server = *std::move(started);
    options.db = server->NewDatabase();
  }
  const std::string beside = server == nullptr && !options.db.empty() ? options.db : folder / "load";
  PrintSyncsOfDisk(beside + ".page");
  PrintBareCommits(beside + ".bare");
  Options echo = options;
  echo.load.address = "unix:" + (folder / "echo");  // another name: gRPC removes it late
  EchoAlone(echo);
  LoadedDaemon daemon(options, folder);
  Load load("daemon", options);
  absl::SleepFor(absl::Seconds(options.warm_up));
  const std::string warm = daemon.Page();
  {
    std::optional<LookUps> look_ups;
    if (options.look_ups > 0) look_ups.emplace(options);
    load.Measure(absl::Seconds(options.seconds));
  }
  daemon.Print(warm);
  daemon.Kill();
  server.reset();  // main ends the process at once
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  bool quick = false;
  CLI::App app("a daemon under the load of a fleet");
  app.add_option("--workers", options.workers, "simulated, a connection each")->capture_default_str();
  app.add_option("--jobs", options.jobs, "of a task each")->capture_default_str();
  app.add_option("--credits", options.load.credits, "leases that a worker takes at once")->capture_default_str();
  app.add_option("--work-ms", options.load.work_ms, "what it takes for them")->capture_default_str();
  app.add_option("--spread", options.load.spread, "0 to 1: it takes up to that part of it less or more, by chance")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--warm-up", options.warm_up, "seconds before anything counts")->capture_default_str();
  app.add_option("--seconds", options.seconds, "of the measurement")->capture_default_str();
  app.add_option("--searches", options.searches, "search processes")->capture_default_str();
  app.add_option("--db", options.db, "a new SQLite file, or \"postgres\" (default: a file in a folder of its own)");
  app.add_option("--look-ups", options.look_ups, "of best records a second, by the kernels of a model, beside the load")
      ->capture_default_str();
  app.add_option("--soak-minutes", options.soak_minutes, "with a fault every 5 s, in place of the measurement");
  app.add_flag("--quick", quick, "a moment, to see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    options.workers = 20;
    options.jobs = 10;
    options.load.work_ms = 200;
    options.look_ups = 1000;
    options.warm_up = 0.5;
    options.seconds = 1;
  }
  const int code = hone::Run(options);
  std::fflush(nullptr);
  ::_exit(code);  // not by way of the calls that are still out
}
