// What code for a candidate costs, from its trace to an image that can be loaded, as a builder makes it:
//   hone-candidate-bench MODEL.onnx... [--candidates 8] [--threads 2] [--target cpu:native]
//
// Of every distinct kernel of the models so many candidates are drawn as a search draws them: the best of each
// generator by the draft, and at random among those the draft takes for no worse than four times the best. One row a
// kernel: the median of its candidates, of the whole and of its parts, and the bytes of code; the last lines are over
// all candidates. The work is on one thread.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/driver/models/model.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/trace/replay.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/check.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/random.h"
#include "tests/bench/percentiles.h"
#include "tuner/space/generator.h"
#include "worker/measure/statistics.h"

namespace hone {
namespace {

struct Options {
  std::vector<std::string> files;
  size_t candidates = 8;
  int threads = 2;
  std::string target = "cpu:native";
};

double MillisecondsSince(Clock::time_point start) { return 1e3 * SecondsSince(start); }

// Traces of distinct candidates, as text.
std::vector<std::string> Draw(const PrimFunc& workload, const SpaceOptions& space, size_t candidates) {
  constexpr double kHopeful = 4;  // times the best by the draft
  constexpr int kDraws = 4000;
  const auto generators = Generators(workload, space);
  HONE_CHECK(generators.ok()) << generators.status();
  std::vector<std::pair<double, std::pair<const Generator*, Choice>>> pool;
  Random random(7);
  for (const auto& generator : *generators) {
    const absl::StatusOr<Choice> best = BestByDraft(*generator, 4);
    if (!best.ok()) continue;
    pool.push_back({*generator->Draft(*best), {generator.get(), *best}});
    for (int i = 0; i < kDraws; ++i) {
      const Choice choice = RandomChoice(*generator, random);
      if (const std::optional<double> us = generator->Draft(choice)) pool.push_back({*us, {generator.get(), choice}});
    }
  }
  std::sort(pool.begin(), pool.end());
  std::erase_if(pool, [limit = pool.front().first * kHopeful](const auto& one) { return one.first > limit; });
  std::vector<std::string> traces;
  std::set<std::string> seen;
  const auto offer = [&](const auto& one) {
    const absl::StatusOr<Schedule> built = BuildCandidate(*one.second.first, one.second.second);
    if (!built.ok()) return;
    std::string text = ToText(built->trace());
    if (seen.insert(text).second) traces.push_back(std::move(text));
  };
  std::set<const Generator*> favoured;
  for (const auto& one : pool) {
    if (traces.size() < candidates && favoured.insert(one.second.first).second) offer(one);
  }
  for (size_t i = 0; i < candidates * 4 && traces.size() < candidates; ++i) offer(pool[random.Below(pool.size())]);
  return traces;
}

struct Times {
  std::vector<double> replay, lower, compile, link, all, kilobytes;

  void Add(const Times& other) {
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(replay, other.replay);
    append(lower, other.lower);
    append(compile, other.compile);
    append(link, other.link);
    append(all, other.all);
    append(kilobytes, other.kilobytes);
  }
};

Times TimesOf(const PrimFunc& workload, const std::vector<std::string>& traces, const ResolvedSettings& settings) {
  CompileOptions compile;
  compile.threads = settings.threads;
  compile.numeric = settings.numeric;
  const LowerOptions lower = LowerOptionsFor(settings.target);
  Times times;
  for (const std::string& text : traces) {
    auto start = Clock::now();
    const absl::StatusOr<Trace> trace = ParseTrace(text);
    HONE_CHECK(trace.ok()) << trace.status();
    const absl::StatusOr<Schedule> schedule = Replay(*trace, workload);
    HONE_CHECK(schedule.ok()) << schedule.status();
    const ScheduledProgram program = schedule->Program();
    const double replay = MillisecondsSince(start);

    start = Clock::now();
    const absl::StatusOr<CompiledKernel> kernel = CompileKernel(program, settings.target, compile);
    HONE_CHECK(kernel.ok()) << kernel.status();
    const double compiled = MillisecondsSince(start);

    start = Clock::now();
    HONE_CHECK(LinkImage(std::span<const std::string>(&kernel->object, 1)).ok());
    const double link = MillisecondsSince(start);

    start = Clock::now();  // once more, a part of what was just timed
    HONE_CHECK(Lower(program.main, lower).ok());
    times.lower.push_back(MillisecondsSince(start));
    times.replay.push_back(replay);
    times.compile.push_back(compiled);
    times.link.push_back(link);
    times.all.push_back(replay + compiled + link);
    times.kilobytes.push_back(static_cast<double>(kernel->object.size()) / 1024);
  }
  return times;
}

void PrintRow(const std::string& name, const Times& times) {
  std::printf("%-44s %3zu candidates  %7.1f ms  replay %6.2f  compile %7.1f (lowering %6.2f)  link %5.2f  %6.1f KiB\n",
              name.c_str(), times.all.size(), Median(times.all), Median(times.replay), Median(times.compile),
              Median(times.lower), Median(times.link), Median(times.kilobytes));
  std::fflush(stdout);
}

int Run(const Options& options) {
  BuildSettings wanted;
  wanted.target_text = options.target;
  wanted.threads = options.threads;
  const absl::StatusOr<ResolvedSettings> settings = Resolve(wanted);
  HONE_CHECK(settings.ok()) << settings.status();
  Times all;
  for (const std::string& file : options.files) {
    const absl::StatusOr<Model> model = LoadModel(file);
    if (!model.ok()) {
      std::fprintf(stderr, "hone-candidate-bench: %s\n", std::string(model.status().message()).c_str());
      return 1;
    }
    for (const auto& task : model->plan.tasks) {
      const std::vector<std::string> traces = Draw(task.func, settings->space(), options.candidates);
      const Times times = TimesOf(task.func, traces, *settings);
      PrintRow(task.name, times);
      all.Add(times);
    }
  }
  PrintRow("all", all);
  std::printf("a candidate: %s\n", Percentiles(all.all, 1).c_str());
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  CLI::App app("what code for a candidate costs");
  app.add_option("model", options.files, "ONNX files")->required();
  app.add_option("--candidates", options.candidates, "of each kernel")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", options.threads, "the kernels' threads")->capture_default_str();
  app.add_option("--target", options.target, "what they are compiled for")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return hone::Run(options);
}
