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
// A soak (soak.h) lets the load go on with a fault every five seconds; tests/system/soak runs it beside real workers.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "tests/bench/load/beside.h"
#include "tests/bench/load/load.h"
#include "tests/bench/load/loaded_daemon.h"
#include "tests/bench/load/look_ups.h"
#include "tests/bench/load/soak.h"
#include "tests/database/postgres/private_server.h"

namespace hone {
namespace {

int Run(LoadBenchOptions options) {
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
  std::unique_ptr<PrivateServer> server = ServerFor(options.db);
  const std::string beside = server == nullptr && !options.db.empty() ? options.db : folder / "load";
  PrintSyncsOfDisk(beside + ".page");
  PrintBareCommits(beside + ".bare");
  LoadBenchOptions echo = options;
  echo.load.address = "unix:" + (folder / "echo");  // another name: gRPC removes it late
  PrintEcho(echo);
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
  hone::LoadBenchOptions options;
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
