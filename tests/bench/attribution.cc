// Where a model's time goes, kernel by kernel: what an untuned build takes, what tuning found, the best of many
// candidates of the space, what a prototype written by hand takes, and what the machine could do at most; and so what
// is missing. A candidate is compiled and timed in this process, against nothing but the clock; it is not verified, so
// a figure here is a question to the tuner and not a record. A prototype's numbers are held against a plain loop's.
//
//   hone-attribution MODEL.onnx|PROGRAM.py... [--candidates 200] [--threads 2] [--target cpu:native] [--db FILE]
//                    [--filter TEXT] [--source TEXT] [--usual] [--all] [--traces]
//
// Drafts are computed from what a probe measures of this machine; --usual: from the usual facts of such a core.
// --db: a tuning database whose best records are timed as well.
// Constants that calls find in memory inside the model are out of the caches before every call here, too.
// --all prints every candidate that was timed, --traces the best one's trace.
// --filter takes the kernels whose name contains a text, --source the generators whose name does.
//
// One row a kernel: GFLOP (of the direct algorithm), the default's time and share of the peak, the tuned one's, the
// prototype's where one is written for every block that sums (bench/prototypes: the fastest choice of each, one after
// the other where there are several, timed in turn with the best program), the best of the candidates, its source, how
// much of the gain each source reaches alone, the draft's time for the best, and the limit: what peak and bandwidth
// allow the cheapest algorithm. A prototype computes such a block and a ReLU in place of all that the kernel does
// besides: a sum with another tensor or an error function is not in its time, the padding is. What is missing is named
// where it is more than 5 %: the "draft" chose another default than the best, the "trials" (or the model that spent
// them) found less than the best, the "space" does not reach the prototype, or the limit where there is none. The last
// lines sum up, weighted by how often the model runs a kernel, and say how much of the prototypes' speed the best in
// the space reaches, at least and in the geometric mean.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/service_options.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/annotations.h"
#include "compiler/schedule/trace/replay.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "deploy/runtime/run/invoke.h"
#include "tests/bench/prototypes/recognise.h"
#include "tests/bench/prototypes/search.h"
#include "tests/bench/stopwatch.h"
#include "tuner/dispatch/state/roofline.h"
#include "tuner/service/client.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"
#include "tuner/space/workload/workload_info.h"
#include "worker/agent/device_probe.h"

namespace hone {
namespace {

struct Options {
  std::vector<std::string> files;
  int candidates = 200;
  int threads = 2;
  std::string target = "cpu:native", filter, source, db;
  bool traces = false, all = false, usual = false;
};

// Times kernels of one workload on the same arguments.
class KernelTimer {
 public:
  KernelTimer(const PrimFunc& workload, const ResolvedSettings& settings, ThreadPool& pool)
      : settings_(settings), pool_(pool), args_(RandomArguments(workload, 1, InputKind::kUniform)) {
    for (NdArray& arg : args_) tensors_.push_back(arg.data.data());
    for (int i = 0; i < static_cast<int>(args_.size()); ++i) {
      if (IsCold(workload, i)) cold_.insert(i);
    }
  }

  // Microseconds (TimeCalls).
  absl::StatusOr<double> Time(const ScheduledProgram& program, double champion_us) {
    CompileOptions compile;
    compile.threads = settings_.threads;
    compile.numeric = settings_.numeric;
    HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompileKernel(program, settings_.target, compile));
    HONE_ASSIGN_OR_RETURN(const std::string bytes, LinkImage(std::span<const std::string>(&kernel.object, 1)));
    auto image = Image::Load(bytes);
    if (!image.ok()) return absl::InternalError(image.error().message());
    auto invocation = Invocation::Create(*image, kernel.set, pool_);
    if (!invocation.ok()) return absl::InternalError(invocation.error().message());
    if (const RuntimeError error = invocation->Prepare(tensors_); !error.ok())
      return absl::InternalError(error.message());
    invocation->Bind(tensors_);
    bool failed = false;
    TimedCall call{[&] { failed = invocation->Run() != 0 || failed; }, {}};
    for (const int param : cold_) call.cold.push_back(invocation->operand(param));  // as the kernel reads them
    const double us = TimeCalls(call, pool_, champion_us);
    if (failed) return absl::InternalError("the kernel failed");
    return us;
  }

  bool cold() const { return !cold_.empty(); }

 private:
  const ResolvedSettings& settings_;
  ThreadPool& pool_;
  std::set<int> cold_;  // the params that hold constants which calls find in memory
  std::vector<NdArray> args_;
  std::vector<void*> tensors_;
};

struct Measured {
  double us = 0, draft_us = 0;
  std::string source, trace;
  size_t generator = 0;
  Choice choice;
};

// Half by the draft, a quarter at random among what it takes for no worse than four times its best, the rest around the
// best that was measured.
class Explorer {
 public:
  Explorer(const PrimFunc& workload, const ResolvedSettings& settings, const SpaceOptions& space, ThreadPool& pool)
      : workload_(workload), timer_(workload, settings, pool) {
    absl::StatusOr<std::vector<std::unique_ptr<Generator>>> generators = Generators(workload, space);
    HONE_CHECK(generators.ok()) << generators.status();
    generators_ = *std::move(generators);
  }

  absl::StatusOr<double> TimeTrace(const Trace& trace) {
    HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload_));
    return timer_.Time(schedule.Program(), 0);
  }
  bool cold() const { return timer_.cold(); }

  void Explore(int candidates, const std::string& source) {
    std::vector<std::pair<double, std::pair<size_t, Choice>>> pool;
    Random random(7);
    for (size_t g = 0; g < generators_.size(); ++g) {
      const Generator& generator = *generators_[g];
      if (!absl::StrContains(generator.name(), source)) continue;
      const absl::StatusOr<Choice> favourite = BestByDraft(generator, 8);
      if (!favourite.ok()) continue;
      const auto offer = [&](const Choice& choice) {
        if (const std::optional<double> us = generator.Draft(choice)) pool.push_back({*us, {g, choice}});
      };
      offer(*favourite);
      for (int i = 0; i < 20000; ++i) offer(RandomChoice(generator, random));
    }
    std::sort(pool.begin(), pool.end());
    const int by_draft = candidates / 2;
    for (const auto& [us, point] : pool) {
      if (static_cast<int>(seen_.size()) >= by_draft) break;
      Try(point.first, point.second, us);
    }
    const double limit = pool.empty() ? 0 : pool.front().first * 4;
    const size_t hopeful = static_cast<size_t>(
        std::lower_bound(pool.begin(), pool.end(), limit, [](const auto& p, double us) { return p.first < us; }) -
        pool.begin());
    for (int i = 0; i < candidates * 4 && static_cast<int>(seen_.size()) < candidates * 3 / 4 && hopeful > 0; ++i) {
      const auto& [us, point] = pool[random.Below(hopeful)];
      Try(point.first, point.second, us);
    }
    for (size_t next = 0; static_cast<int>(seen_.size()) < candidates && next < measured_.size() && next < 8;) {
      std::stable_sort(measured_.begin(), measured_.end(),
                       [](const Measured& a, const Measured& b) { return a.us < b.us; });
      const Measured parent = measured_[next];
      const size_t before = seen_.size();
      for (size_t k = 0; k < parent.choice.size(); ++k) {
        for (const int step : {-1, 1}) {
          Choice near = parent.choice;
          near[k] += step;
          const Generator& generator = *generators_[parent.generator];
          if (near[k] < 0 || near[k] >= static_cast<int>(generator.knobs()[k].candidates.size())) continue;
          if (const std::optional<double> us = generator.Draft(near)) Try(parent.generator, near, *us);
        }
      }
      next = seen_.size() == before ? next + 1 : 0;
    }
    std::stable_sort(measured_.begin(), measured_.end(),
                     [](const Measured& a, const Measured& b) { return a.us < b.us; });
  }

  const std::vector<Measured>& measured() const { return measured_; }
  int refused() const { return refused_; }
  const Generator* Find(const std::string& name) const {
    for (const auto& generator : generators_) {
      if (generator->name() == name) return generator.get();
    }
    return nullptr;
  }

 private:
  void Try(size_t g, const Choice& choice, double draft_us) {
    if (!seen_.insert({g, choice}).second) return;
    const absl::StatusOr<Schedule> schedule = generators_[g]->Build(choice);
    if (!schedule.ok()) {
      if (++refused_ == 1) std::fprintf(stderr, "refused: %s\n", std::string(schedule.status().message()).c_str());
      return;
    }
    const absl::StatusOr<double> us = timer_.Time(schedule->Program(), best_us_);
    if (!us.ok()) {
      if (++refused_ == 1) std::fprintf(stderr, "refused: %s\n", std::string(us.status().message()).c_str());
      return;
    }
    best_us_ = best_us_ == 0 ? *us : std::min(best_us_, *us);
    measured_.push_back({*us, draft_us, generators_[g]->name(), ToText(schedule->trace()), g, choice});
  }

  const PrimFunc& workload_;
  KernelTimer timer_;
  std::vector<std::unique_ptr<Generator>> generators_;
  std::set<std::pair<size_t, Choice>> seen_;
  std::vector<Measured> measured_;
  double best_us_ = 0;
  int refused_ = 0;
};

struct Row {
  std::string name;
  PrimFunc workload;
  double weight = 1;
  double bytes = 0;   // that have to move
  std::string tuned;  // the best record's trace; empty: none
};

// Weighted microseconds, of the kernels that have all of them.
struct Sums {
  double untuned = 0, tuned = 0, best = 0, limit = 0;
  bool all_tuned = true;
  std::vector<double> of_prototype;  // for each kernel that has one, its time over the best program's
};

absl::StatusOr<std::vector<Row>> Rows(const std::string& file, const ResolvedSettings& settings,
                                      const std::string& db) {
  std::vector<Row> rows;
  if (absl::EndsWith(file, ".onnx")) {
    HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(file));
    for (size_t t = 0; t < model.plan.tasks.size(); ++t)
      rows.push_back({model.plan.tasks[t].name, model.plan.tasks[t].func, model.plan.tasks[t].weight,
                      model.plan.tasks[t].bytes, ""});
    if (db.empty()) return rows;
    std::vector<v1::BestKey> keys(rows.size());
    for (size_t t = 0; t < rows.size(); ++t) {
      keys[t].set_workload_hash(model.workloads[t].hash);
      keys[t].set_device_class(DeviceClass(settings.target));
      keys[t].set_threads(settings.threads);
      keys[t].set_numeric(settings.wire_numeric());
    }
    ServiceOptions records;
    records.db = db;
    HONE_ASSIGN_OR_RETURN(const auto best, FindBest(records, keys));
    for (size_t t = 0; t < rows.size(); ++t) {
      if (best[t].has_value()) rows[t].tuned = best[t]->record().trace();
    }
    return rows;
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  HONE_ASSIGN_OR_RETURN(const PrimFunc func, ParsePrimFunc(text));
  rows.push_back({func.name, func, 1, 0, ""});
  return rows;
}

std::string Describe(const Explorer& explorer, const Origin& origin) {
  const Generator* generator = explorer.Find(origin.generator);
  if (generator == nullptr) return origin.generator;
  std::string text = origin.generator;
  for (size_t k = 0; k < origin.choice.size(); ++k) {
    const Knob& knob = generator->knobs()[k];
    absl::StrAppend(&text, " ", knob.name, "=", knob.candidates[static_cast<size_t>(origin.choice[k])]);
  }
  return absl::StrCat(text, "  draft ", *generator->Draft(origin.choice));
}

// The time of a kernel's prototypes and that of the best program, taken in turn.
struct Race {
  double prototype_us = 1e30, best_us = 1e30;
  std::string prototype;  // its name and choice

  double share() const { return prototype_us / best_us; }
};

// The fastest prototypes of a kernel's layers against a program; nullopt: none are written for it.
std::optional<Race> RacePrototype(const WorkloadInfo& info, Explorer& explorer, const Trace& best, ThreadPool& pool) {
  constexpr int kRounds = 6;
  prototypes::Chain chain;
  const std::vector<prototypes::LayerSize> layers = prototypes::LayersOf(info);
  for (const prototypes::LayerSize& layer : layers)
    prototypes::AddFastest(prototypes::PrototypesOf(layer, pool), pool, explorer.cold(), &chain);
  if (layers.empty() || chain.prototypes.size() != layers.size()) return std::nullopt;
  Race race;
  race.prototype = chain.text;
  for (int round = 0; round < kRounds; ++round) {
    race.best_us = std::min(race.best_us, explorer.TimeTrace(best).value_or(1e30));
    race.prototype_us = std::min(race.prototype_us, prototypes::Time(chain, pool, explorer.cold()));
  }
  return race;
}

// What keeps the kernel from what is possible, in per cent of the time that is lost to it.
std::string Missing(double untuned, double tuned, double best, double limit, const std::optional<Race>& race) {
  constexpr double kWorthNaming = 1.05;
  std::string missing;
  const auto name = [&](const char* what, double slow, double fast) {
    if (fast > 0 && slow > fast * kWorthNaming)
      absl::StrAppendFormat(&missing, " %s %.0f%%", what, 100 * (1 - fast / slow));
  };
  name("draft", untuned, best);
  name("trials", tuned, best);
  if (race.has_value()) {
    name("space", race->best_us, race->prototype_us);
  } else {
    name("space", best, limit);
  }
  return missing.empty() ? " nothing" : missing;
}

void Print(const Row& row, const Options& options, const ResolvedSettings& settings, const SpaceOptions& space,
           const v1::DeviceProfile& device, ThreadPool& pool, Sums* sums) {
  const double peak = device.peak_gflops_all();
  const absl::StatusOr<WorkloadInfo> info = AnalyzeWorkload(row.workload);
  double flop = 0;
  for (const BlockInfo& block : info->blocks) flop += block.flop();
  Explorer explorer(row.workload, settings, space, pool);
  const absl::StatusOr<Trace> trace = DefaultTrace(row.workload, space);
  HONE_CHECK(trace.ok()) << trace.status();
  const absl::StatusOr<double> untuned = explorer.TimeTrace(*trace);
  explorer.Explore(options.candidates, options.source);
  const absl::StatusOr<double> again = explorer.TimeTrace(*trace);
  const double default_us = std::min(untuned.value_or(1e30), again.value_or(1e30));
  double best_us = default_us, tuned_us = 0;
  Trace best_trace = *trace;  // of all that were timed
  const auto parse = [](const std::string& text) {
    absl::StatusOr<Trace> parsed = ParseTrace(text);
    HONE_CHECK(parsed.ok()) << parsed.status();
    return *std::move(parsed);
  };
  const auto offer = [&](double us, const Trace& candidate) {
    if (us >= best_us) return;
    best_us = us;
    best_trace = candidate;
  };
  if (!row.tuned.empty()) {
    const Trace tuned = parse(row.tuned);
    tuned_us = explorer.TimeTrace(tuned).value_or(0);
    if (tuned_us > 0) offer(tuned_us, tuned);
  }
  const double least_flop = LeastFlop(row.workload, space).value_or(flop);
  const double limit_us = LowerBoundUs(least_flop, row.bytes, device, options.threads);
  const auto share = [&](double us) { return us > 0 ? 100 * flop / (us * 1e3) / peak : 0; };
  std::printf("%-44s x%-3g %8.3f GF  default %9.1f us %5.1f%%", row.name.c_str(), row.weight, flop / 1e9, default_us,
              share(default_us));
  if (tuned_us > 0) std::printf("  tuned %9.1f us %5.1f%%", tuned_us, share(tuned_us));
  if (!explorer.measured().empty()) {
    const Measured& best = explorer.measured().front();
    offer(best.us, parse(best.trace));
    const std::optional<Race> race = RacePrototype(*info, explorer, best_trace, pool);
    if (race.has_value()) {
      best_us = std::min(best_us, race->best_us);
      sums->of_prototype.push_back(race->share());
      std::printf("  prototype %9.1f us %5.1f%%", race->prototype_us, share(race->prototype_us));
    }
    std::printf("  best %9.1f us %5.1f%%  draft %9.1f  %zu tried, %d refused  %s", best.us, share(best.us),
                best.draft_us, explorer.measured().size(), explorer.refused(), best.source.c_str());
    std::printf("  limit %9.1f us  missing:%s", limit_us,
                Missing(default_us, tuned_us, best_us, limit_us, race).c_str());
    sums->untuned += row.weight * default_us;
    sums->tuned += row.weight * tuned_us;
    sums->best += row.weight * best_us;
    sums->limit += row.weight * limit_us;
    sums->all_tuned = sums->all_tuned && tuned_us > 0;
    std::map<std::string, double> by_source;
    for (const Measured& m : explorer.measured()) by_source.emplace(m.source, m.us);
    std::printf("\n    ");
    for (const auto& [source, us] : by_source) std::printf(" %s %.1f", source.c_str(), us);
    std::printf("\n     default %s\n     best   ", Describe(explorer, *OriginOf(*trace)).c_str());
    std::printf(" %s", Describe(explorer, {best.source, best.choice}).c_str());
    if (race.has_value()) {
      std::printf("\n     prototype %s, in turn with it the best takes %.1f us: %.3f of its speed",
                  race->prototype.c_str(), race->best_us, race->share());
    }
    if (options.all) {
      for (const Measured& m : explorer.measured())
        std::printf("\n     %9.1f us  %s", m.us, Describe(explorer, {m.source, m.choice}).c_str());
    }
    if (options.traces) std::printf("\n%s", best.trace.c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

int Run(const Options& options) {
  BuildSettings wanted;
  wanted.target_text = options.target;
  wanted.threads = options.threads;
  const absl::StatusOr<ResolvedSettings> settings = Resolve(wanted);
  HONE_CHECK(settings.ok()) << settings.status();
  auto pool = ThreadPool::Create(
      {.threads = options.threads, .pin_workers = true, .pin_caller = true});  // as the runner measures
  HONE_CHECK(pool.ok());
  const v1::DeviceProfile device = ProbeDevice(settings->target, options.threads);
  SpaceOptions space = settings->space();
  if (!options.usual) {
    const absl::StatusOr<Machine> machine = ParseMachine(device.machine(), settings->target);
    HONE_CHECK(machine.ok()) << machine.status();
    space.machine = *machine;
  }
  std::printf("%s\n", ToText(space.machine).c_str());
  std::printf("%s, %d threads, peak %.0f GFLOP/s\n", settings->target.text.c_str(), options.threads,
              device.peak_gflops_all());
  for (const std::string& file : options.files) {
    const absl::StatusOr<std::vector<Row>> rows = Rows(file, *settings, options.db);
    if (!rows.ok()) {
      std::fprintf(stderr, "hone-attribution: %s\n", std::string(rows.status().message()).c_str());
      return 1;
    }
    Sums sums;
    for (const Row& row : *rows) {
      if (absl::StrContains(row.name, options.filter)) Print(row, options, *settings, space, device, **pool, &sums);
    }
    if (sums.best <= 0) continue;
    std::printf("%s: weighted: default %.1f us (%.3f of the best)", file.c_str(), sums.untuned,
                sums.best / sums.untuned);
    if (sums.all_tuned) std::printf(", tuned %.1f us (%.3f)", sums.tuned, sums.best / sums.tuned);
    std::printf(", best %.1f us, limit %.1f us (%.3f of the best)\n", sums.best, sums.limit, sums.limit / sums.best);
    if (!sums.of_prototype.empty()) {
      double logs = 0;
      for (const double share : sums.of_prototype) logs += std::log(share);
      std::printf("%s: best in space over prototype, speeds of %zu kernels: least %.3f, geometric mean %.3f\n",
                  file.c_str(), sums.of_prototype.size(), *std::ranges::min_element(sums.of_prototype),
                  std::exp(logs / static_cast<double>(sums.of_prototype.size())));
    }
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Options options;
  CLI::App app{"where a model's time goes, kernel by kernel"};
  app.add_option("files", options.files, "models (.onnx) and programs (.py)")->required();
  app.add_option("--candidates", options.candidates, "of each kernel")->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--target", options.target)->capture_default_str();
  app.add_option("--db", options.db, "a tuning database whose best records are timed as well");
  app.add_option("--filter", options.filter, "only kernels whose name contains this");
  app.add_option("--source", options.source, "only generators whose name contains this");
  app.add_flag("--usual", options.usual, "usual facts of such a core, in place of what a probe measures");
  app.add_flag("--all", options.all, "every candidate that was timed");
  app.add_flag("--traces", options.traces, "the best one's trace");
  CLI11_PARSE(app, argc, argv);
  return hone::Run(options);
}
