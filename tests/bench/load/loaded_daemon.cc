#include "tests/bench/load/loaded_daemon.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.grpc.pb.h"
#include "httplib.h"
#include "tests/bench/load/histogram.h"
#include "tests/processes.h"
#include "tuner/dispatch/events/events.h"

namespace hone {
namespace {

double MemoryOf(pid_t pid, const std::string& field) { return static_cast<double>(KiBOf(pid, field)) / 1024; }

void SubmitJob(v1::Tune::Stub& stub, int number, double max_seconds) {
  v1::SubmitRequest request;
  request.set_request_id(absl::StrCat("load ", number));
  request.set_model_name("load");
  request.set_threads(2);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_max_seconds(max_seconds);
  v1::TaskSpec& task = *request.add_tasks();
  *task.mutable_workload() = WorkloadOf(number);
  task.set_weight(1);
  // A soak has just killed the daemon, stopped it or filled its disk: a request that fails is made again, as itself.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  grpc::Status status;
  do {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(deadline));
    v1::SubmitReply reply;
    const auto writer = stub.Submit(&context, &reply);
    writer->WriteLast(request, grpc::WriteOptions());
    status = writer->Finish();
    if (!status.ok()) absl::SleepFor(absl::Milliseconds(200));
  } while (!status.ok() && absl::Now() < deadline);
  HONE_CHECK(status.ok()) << status.error_message();
}

}  // namespace

v1::Workload WorkloadOf(int job) {
  v1::Workload workload;
  workload.set_name(absl::StrCat("dense_", job));
  workload.set_text(absl::StrCat("workload ", job, std::string(2000, 'w')));
  workload.set_hash(Sha256(workload.text()));
  workload.set_flop(1e6);
  return workload;
}

LoadedDaemon::LoadedDaemon(const LoadBenchOptions& options, const TempFolder& folder)
    : options_(options),
      port_(FreePort()),
      database_(options.db.empty() ? folder / "load.db" : options.db),
      full_disk_(folder / "full") {
  if (options.soak_minutes > 0) {  // of the daemon, not of this process; it costs a system call for each write
    ::setenv("LD_PRELOAD", HONE_BIN "/../lib/libhone_full_disk.so", 1);
    ::setenv("HONE_TEST_FULL_DISK", full_disk_.c_str(), 1);
  }
  Start();
  std::vector<double> lives;
  for (int i = 0; i < options.jobs; ++i)
    lives.push_back(options.soak_minutes > 0 ? kSecondsOfRound * (1 + i % kRoundsOfJob) : 0);
  Submit(lives);
}

void LoadedDaemon::Submit(const std::vector<double>& max_seconds) {
  const auto stub = v1::Tune::NewStub(grpc::CreateChannel(options_.load.address, grpc::InsecureChannelCredentials()));
  for (const double seconds : max_seconds) SubmitJob(*stub, submitted_++, seconds);
}

void LoadedDaemon::SubmitMore() {
  Submit(std::vector<double>(static_cast<size_t>(std::max(1, options_.jobs / kRoundsOfJob)),
                             kSecondsOfRound * kRoundsOfJob));
}

void LoadedDaemon::Start() {
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

std::string LoadedDaemon::Page() const {
  httplib::Client http("127.0.0.1", port_);
  const auto page = http.Get("/metrics");
  HONE_CHECK(page && page->status == 200);
  return page->body;
}

void LoadedDaemon::Print(const std::string& since) const {
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
      commits.Quantile(0.5) * 1e-3, commits.Quantile(0.99) * 1e-3, MemoryOf(pid(), "VmRSS"), MemoryOf(pid(), "VmHWM"));
  for (const char* event : kEventNames) {
    const Histogram one = of("hone_event_processor_seconds", absl::StrCat("event=\"", event, "\""));
    if (one.count() < 100) continue;
    std::printf("        %-14s %8.0f, processor time p50 %.0f us, p99 %.0f us\n", event, one.count(), one.Quantile(0.5),
                one.Quantile(0.99));
  }
}

void LoadedDaemon::Kill() {
  honed_->Signal(SIGKILL);
  honed_->Wait();
}

void LoadedDaemon::CheckRuns() {
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) return;
  const int code = honed_->Wait();
  const std::string said = honed_->Errors();
  HONE_CHECK(false) << "honed ended by itself, with code " << code << ": .. "
                    << said.substr(said.size() - std::min<size_t>(said.size(), 1000));
}

void LoadedDaemon::FillDisk() { std::ofstream(full_disk_).put('x'); }
void LoadedDaemon::EmptyDisk() { std::remove(full_disk_.c_str()); }

double LoadedDaemon::MemoryMiB() const {
  const std::string page = Page();
  constexpr std::string_view kCache = "\nhone_database_cache_bytes ";
  const size_t at = page.find(kCache);
  HONE_CHECK(at != std::string::npos) << page;
  return MemoryOf(pid(), "RssAnon") - std::atof(page.c_str() + at + kCache.size()) / (1 << 20);
}
int LoadedDaemon::Descriptors() const { return DescriptorsOf(pid()); }

}  // namespace hone
