// `hone bench`: how long a bundle takes, in all and kernel by kernel.
#include <cstdio>
#include <memory>

#include "compiler/driver/bench.h"
#include "compiler/driver/command.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct BenchOptions {
  std::string bundle;
  int threads = 0;
  double seconds = 2;
  bool json = false;
};

absl::Status Bench(const BenchOptions& options) {
  HONE_ASSIGN_OR_RETURN(const BenchResult result, BenchBundle(options.bundle, options.threads, options.seconds));
  if (options.json) {
    nlohmann::ordered_json json;
    json["latency_ms"] = {{"p10", result.p10_ms}, {"p50", result.p50_ms}, {"p90", result.p90_ms}};
    json["runs"] = result.runs;
    json["threads"] = result.threads;
    json["kernels"] = nlohmann::ordered_json::array();
    for (const BenchResult::Kernel& kernel : result.kernels) {
      json["kernels"].push_back({{"name", kernel.name}, {"us", kernel.us}, {"record", kernel.record}});
    }
    std::printf("%s\n", json.dump().c_str());
    return absl::OkStatus();
  }
  std::printf("latency: p50 %.3f ms, p10 %.3f ms, p90 %.3f ms (%d runs, %d threads)\n", result.p50_ms, result.p10_ms,
              result.p90_ms, result.runs, result.threads);
  std::printf("%10s  %6s  %-16s %s\n", "us", "share", "record", "kernel");
  for (const BenchResult::Kernel& kernel : result.kernels) {
    std::printf("%10.1f  %5.1f%%  %-16s %s\n", kernel.us, kernel.us / (result.p50_ms * 10),
                kernel.record.empty() ? "default" : kernel.record.c_str(), kernel.name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Time a bundle, in all and kernel by kernel.");
  command->add_option("bundle", options->bundle, "a bundle made by hone compile")->required();
  command->add_option("--threads", options->threads, "threads to run with (default: what it was tuned for)");
  command->add_option("--seconds", options->seconds, "how long to measure")->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(Examples({"hone bench resnet18.hone", "hone bench resnet18.hone --threads 1 --json"}));
  command->callback([options, chosen] { *chosen = [options] { return Bench(*options); }; });
}

}  // namespace hone
