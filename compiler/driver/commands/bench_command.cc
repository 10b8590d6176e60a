// `hone bench`: how long a bundle takes, in all and kernel by kernel; or how much faster one is than another.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/bundles/bench.h"
#include "compiler/driver/bundles/compare_bundles.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/models/import_flags.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

constexpr int kLeastRounds = 12;      // with fewer the interval would be as wide as the worst accident
constexpr double kRoundsASecond = 6;  // of bundles that take milliseconds

struct BenchOptions {
  std::string bundle, other;
  int threads = 0;
  double seconds = 2;
  bool json = false;
  ImportFlags import;  // --dim alone
};

// --dim NAME=SIZE, of the dimensions that a bundle leaves open.
absl::StatusOr<Sizes> SizesOf(const BenchOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(options.import));
  if (!import.ranges.empty())
    return absl::InvalidArgumentError(absl::StrCat("--dim ", import.ranges.begin()->first, ": give one size"));
  return import.dims;
}

void PrintTwo(const BenchOptions& options, const SpeedUp& speed_up) {
  if (options.json) {
    const nlohmann::ordered_json json = {{"before", {{"bundle", options.bundle}, {"ms", speed_up.before_ms}}},
                                         {"after", {{"bundle", options.other}, {"ms", speed_up.after_ms}}},
                                         {"ratio", speed_up.ratio},
                                         {"low", speed_up.low},
                                         {"high", speed_up.high},
                                         {"confidence", speed_up.confidence},
                                         {"rounds", speed_up.rounds},
                                         {"changed", speed_up.changed()}};
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("%10.3f ms  %s\n%10.3f ms  %s\n", speed_up.before_ms, options.bundle.c_str(), speed_up.after_ms,
              options.other.c_str());
  std::printf("the second against the first: %s, of %d rounds in turn\n", ToText(speed_up).c_str(), speed_up.rounds);
}

absl::Status BenchTwo(const BenchOptions& options) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  CompareOptions compare;
  compare.threads = options.threads;
  HONE_ASSIGN_OR_RETURN(compare.sizes, SizesOf(options));
  compare.rounds = std::max(kLeastRounds, static_cast<int>(options.seconds * kRoundsASecond));
  compare.phase = [terminal](const std::string& doing) {
    if (terminal) std::fprintf(stderr, "\r\033[K%s", doing.c_str());
    return absl::OkStatus();
  };
  const absl::StatusOr<SpeedUp> speed_up = CompareBundles(options.bundle, options.other, compare);
  if (terminal) std::fprintf(stderr, "\r\033[K");
  if (!speed_up.ok()) return speed_up.status();
  PrintTwo(options, *speed_up);
  return absl::OkStatus();
}

absl::Status Bench(const BenchOptions& options) {
  if (!options.other.empty()) return BenchTwo(options);
  HONE_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(options));
  HONE_ASSIGN_OR_RETURN(const BenchResult result, BenchBundle(options.bundle, options.threads, options.seconds, sizes));
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
  double total_us = 0;  // of the profiled runs, so that the shares are of one thing
  for (const BenchResult::Kernel& kernel : result.kernels) total_us += kernel.us;
  std::printf("latency: p50 %.3f ms, p10 %.3f ms, p90 %.3f ms (%d runs, %d threads)\n", result.p50_ms, result.p10_ms,
              result.p90_ms, result.runs, result.threads);
  std::printf("%10s  %6s  %-16s %s\n", "us", "share", "record", "kernel");
  for (const BenchResult::Kernel& kernel : result.kernels) {
    std::printf("%10.1f  %5.1f%%  %-16s %s\n", kernel.us, total_us > 0 ? 100 * kernel.us / total_us : 0,
                kernel.record.empty() ? "default" : kernel.record.c_str(), kernel.name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench",
      "Time a bundle, in all and kernel by kernel; or two of them in turn, which says how much faster one is.");
  command->add_option("bundle", options->bundle, "a bundle made by hone compile")->required();
  command->add_option("other", options->other,
                      "another one: the two are timed in turn, while nothing else of Hone's measures");
  command->add_option("--threads", options->threads, "threads to run with (default: what it was tuned for)");
  command->add_option("--seconds", options->seconds, "how long to measure")->capture_default_str();
  command
      ->add_option("--dim", options->import.dims,
                   "the size of a dimension that the bundle leaves open: NAME=SIZE (default: the greatest)")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(Examples({"hone bench resnet18.hone", "hone bench resnet18.hone --threads 1 --json",
                            "hone bench untuned.hone tuned.hone", "hone bench bert.hone --dim seq=17"}));
  command->callback([options, chosen] { *chosen = [options] { return Bench(*options); }; });
}

}  // namespace hone
