#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <regex>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/numeric_level.h"
#include "tuner/search/replay/replay.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kFailed = 1, kUsage = 2;

const std::map<std::string, v1::SearchStrategy>& StrategyNames() {
  static const auto* names = new std::map<std::string, v1::SearchStrategy>{
      {"model", v1::SEARCH_MODEL}, {"random", v1::SEARCH_RANDOM}, {"draft", v1::SEARCH_DRAFT}};
  return *names;
}

int Complain(const char* program, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", program, std::string(status.message()).c_str());
  return kFailed;
}

// CLI11's --help is no failure.
int Parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? -1 : kUsage; }
  return 0;
}

struct ReplayArguments {
  std::vector<std::string> files;
  std::vector<std::string> strategies = {"model", "random", "draft"};
  int seeds = 20;
  int threads = HostTarget().cores;
  std::string kind;  // of the sources searched; "": all
  ReplayOptions options;
  bool json_output = false;
};

// After 10 trials, 16, 32, ..., and at the end.
std::vector<int> Checkpoints(int trials) {
  std::vector<int> found;
  if (trials > 10) found.push_back(10);
  for (int at = 16; at < trials; at *= 2) found.push_back(at);
  found.push_back(trials);
  return found;
}

double QualityAt(const std::vector<double>& curve, int trials) {
  return curve.empty() ? 0 : curve[std::min(curve.size(), static_cast<size_t>(trials)) - 1];
}

// One line of the table: the mean over the seeds at every checkpoint. `values_at(trials)` has one value for each seed.
template <class ValuesAt>
void PrintStrategy(const ReplayArguments& arguments, const std::string& task, const std::string& strategy,
                   const std::vector<int>& checkpoints, const ValuesAt& values_at) {
  std::string line = absl::StrFormat("  %-7s", strategy);
  for (const int at : checkpoints) {
    const Mean mean = MeanOf(values_at(at));
    if (arguments.json_output) {
      const json object = {{"task", task},         {"strategy", strategy}, {"trials", at},
                           {"quality", mean.mean}, {"half", mean.half},    {"seeds", arguments.seeds}};
      std::printf("%s\n", object.dump().c_str());
    }
    absl::StrAppend(&line, absl::StrFormat("  %3d: %.3f +- %.3f", at, mean.mean, mean.half));
  }
  if (!arguments.json_output) std::printf("%s\n", line.c_str());
}

// A file's space, as far as it is searched.
struct ReplayedTask {
  std::string name;
  std::shared_ptr<const RecordedSpace> space;  // nullptr: it has no candidate of the kind asked for
  double of_best = 1;                          // the best time of the whole space over that of the part
};

absl::StatusOr<ReplayedTask> ReadTask(const ReplayArguments& arguments, const std::string& file) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  absl::StatusOr<Recording> recording = ParseRecording(text);
  if (!recording.ok()) return Annotate(recording.status(), file);
  double best_us = std::numeric_limits<double>::infinity();
  for (const Recording::Candidate& candidate : recording->candidates) best_us = std::min(best_us, candidate.us);
  if (!arguments.kind.empty()) {
    recording = OfKind(*std::move(recording), arguments.kind);
    if (recording->candidates.empty()) {
      std::fprintf(stderr, "%s: has no candidate of a %s; it is left out\n", file.c_str(), arguments.kind.c_str());
      return ReplayedTask{};
    }
  }
  absl::StatusOr<std::shared_ptr<const RecordedSpace>> made = RecordedSpace::Make(*recording, arguments.threads);
  if (!made.ok()) return Annotate(made.status(), file);
  const RecordedSpace& space = **made;
  if (!arguments.json_output) {
    std::printf("%s: %zu candidates of %zu sources, the best %.1f us%s\n", recording->name.c_str(), space.size(),
                space.sources().size(), space.best_us(),
                absl::StrCat(space.left_out() > 0 ? absl::StrCat(", ", space.left_out(), " do not replay") : "",
                             space.built_otherwise() > 0
                                 ? absl::StrCat(", ", space.built_otherwise(), " are built otherwise today")
                                 : "")
                    .c_str());
  }
  return ReplayedTask{recording->name, *made, std::min(1.0, best_us / space.best_us())};
}

absl::Status RunReplay(const ReplayArguments& arguments) {
  const std::vector<int> checkpoints = Checkpoints(arguments.options.trials);
  // By strategy and seed: curves over the tasks.
  std::map<std::string, std::vector<std::vector<std::vector<double>>>> curves;
  int searched = 0;
  for (const std::string& file : arguments.files) {
    HONE_ASSIGN_OR_RETURN(const ReplayedTask task, ReadTask(arguments, file));
    if (task.space == nullptr) continue;
    ++searched;
    for (const std::string& strategy : arguments.strategies) {
      std::vector<std::vector<std::vector<double>>>& of_strategy = curves[strategy];
      of_strategy.resize(static_cast<size_t>(arguments.seeds));
      std::vector<std::vector<double>> here;
      for (int seed = 0; seed < arguments.seeds; ++seed) {
        HONE_ASSIGN_OR_RETURN(
            std::vector<double> curve,
            ReplaySearch(task.space, StrategyNames().at(strategy), static_cast<uint64_t>(seed) + 1, arguments.options));
        for (double& quality : curve) quality *= task.of_best;
        here.push_back(curve);
        of_strategy[static_cast<size_t>(seed)].push_back(std::move(curve));
      }
      PrintStrategy(arguments, task.name, strategy, checkpoints, [&](int at) {
        std::vector<double> values;
        for (const std::vector<double>& curve : here) values.push_back(QualityAt(curve, at));
        return values;
      });
      std::fflush(stdout);
    }
  }
  if (searched < 2) return absl::OkStatus();
  if (!arguments.json_output) std::printf("all %d tasks, geometric mean\n", searched);
  for (const std::string& strategy : arguments.strategies) {
    PrintStrategy(arguments, "all", strategy, checkpoints, [&](int at) {
      std::vector<double> values;
      for (const auto& tasks : curves[strategy]) {
        double sum = 0;
        for (const std::vector<double>& curve : tasks) sum += std::log(QualityAt(curve, at));
        values.push_back(std::exp(sum / static_cast<double>(tasks.size())));
      }
      return values;
    });
  }
  return absl::OkStatus();
}

struct RecordArguments {
  std::string lines, folder, machine, note;
  std::string workload = ".";
  std::vector<std::string> networks;  // NAME=FILE
  size_t most = 2000, least = 1;
};

using Weights = std::map<std::string, std::map<std::string, double>>;  // by name of the workload, by network

// Of what `hone inspect` printed of each network: the weight is the first column, the name of the task the last.
absl::StatusOr<Weights> ReadWeights(const std::vector<std::string>& networks) {
  Weights weights;
  for (const std::string& argument : networks) {
    const std::vector<std::string> parts = absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (parts.size() != 2)
      return absl::InvalidArgumentError(
          absl::StrCat("--network ", argument, ": not NAME=FILE with what hone inspect printed of it"));
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(parts[1]));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<std::string> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
      double weight = 0;
      if (columns.size() == 4 && absl::SimpleAtod(columns[0], &weight)) weights[columns[3]][parts[0]] += weight;
    }
  }
  return weights;
}

// By workload, target, threads and level: what was recorded of it.
absl::StatusOr<std::map<std::string, Recording>> ReadRecords(const RecordArguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.lines));
  HONE_ASSIGN_OR_RETURN(const Weights weights, ReadWeights(arguments.networks));
  std::regex wanted;
  try {
    wanted = std::regex(arguments.workload, std::regex::extended);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("--workload ", arguments.workload, ": ", error.what()));
  }
  std::map<std::string, Recording> found;
  size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("hone_record"))
      return absl::InvalidArgumentError(
          absl::StrCat(arguments.lines, ":", number, ": not a record of hone records export"));
    const std::string name = record.value("workload_name", "");
    if (!std::regex_search(name, wanted)) continue;
    const std::string numeric = record.value("numeric", "default"), target = record.value("target", "");
    const int threads = record.value("threads", 1);
    Recording& recording =
        found[absl::StrCat(name, ", ", target, ", ", threads, ", ", numeric, ", ", record.value("workload", ""))];
    recording.name = name;
    recording.workload = record.value("workload_text", "");
    recording.target = target;
    recording.threads = threads;
    recording.numeric = NumericLevelOfName(numeric);
    recording.machine = arguments.machine;
    recording.note = arguments.note;
    if (const auto known = weights.find(name); known != weights.end()) recording.networks = known->second;
    const double low = record.value("low_us", 0.0), high = record.value("high_us", 0.0);
    Recording::Candidate& candidate = recording.candidates.emplace_back();
    candidate.us = record.value("median_us", 0.0);
    candidate.spread = low > 0 && high >= low ? (high - low) / (high + low) : 0;
    candidate.trace = record.value("trace", "");
  }
  return found;
}

// What is left out is left out at random: the space keeps its spread, and its best.
void KeepAtMost(size_t most, std::vector<Recording::Candidate>* candidates) {
  if (candidates->size() <= most) return;
  const auto best = std::min_element(candidates->begin(), candidates->end(),
                                     [](const auto& a, const auto& b) { return a.us < b.us; });
  std::iter_swap(candidates->begin(), best);
  for (size_t i = 1; i < most; ++i) {
    Random random(1, i);
    std::swap((*candidates)[i], (*candidates)[i + random.Below(candidates->size() - i)]);
  }
  candidates->resize(most);
}

absl::Status RunRecord(const RecordArguments& arguments) {
  HONE_ASSIGN_OR_RETURN(auto recordings, ReadRecords(arguments));
  std::map<std::string, int> files;  // of a name: workloads may differ in their text alone
  for (auto& [key, recording] : recordings) {
    if (recording.candidates.size() < arguments.least) continue;
    KeepAtMost(arguments.most, &recording.candidates);
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const RecordedSpace> space,
                          RecordedSpace::Make(recording, HostTarget().cores));
    for (Recording::Candidate& candidate : recording.candidates) {
      const absl::StatusOr<Identified> known = space->Identify(candidate.trace);
      if (known.ok()) candidate.draft_us = known->program.draft_us;
    }
    const int same_name = ++files[recording.name];
    const std::string file = absl::StrCat(arguments.folder, "/", recording.name,
                                          same_name > 1 ? absl::StrCat("-", same_name) : "", ".space");
    HONE_RETURN_IF_ERROR(WriteFileAtomically(file, ToText(recording)));
    std::printf("%s: %zu candidates\n", file.c_str(), recording.candidates.size());
    std::fflush(stdout);
  }
  if (!files.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(arguments.lines, ": no workload that matches ", arguments.workload, " has ",
                                          arguments.least, " records"));
}

}  // namespace

int ReplayMain(int argc, const char* const* argv) {
  CLI::App app(
      "hone replay: searches recorded spaces without a device and compares strategies.\n"
      "Prints the recorded best time over that of the best candidate found, after so many trials: the mean over\n"
      "the seeds and half its 95 % interval.");
  app.footer(
      "Examples:\n"
      "  hone replay tests/bench/search/spaces/*.space\n"
      "  hone replay dense.space --strategy model,random --seeds 100 --trials 256\n"
      "  hone replay record records.jsonl --workload '^dense' -o spaces");
  ReplayArguments arguments;
  app.add_option("files", arguments.files, "recorded spaces, one workload each")->required();
  app.add_option("--strategy", arguments.strategies, "which to compare: model, random, draft")
      ->delimiter(',')
      ->check(CLI::IsMember({"model", "random", "draft"}))
      ->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "searches of each")->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--trials", arguments.options.trials, "of one search")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--batch", arguments.options.batch, "proposed at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--sources", arguments.kind,
                 "search the candidates of these alone; what is found is held against the best of all (default: all)")
      ->check(CLI::IsMember({"template", "sketch"}));
  app.add_flag("--json", arguments.json_output, "one JSON object a line");
  if (const int code = Parse(app, argc, argv); code != 0) return std::max(code, 0);
  const absl::Status status = RunReplay(arguments);
  return status.ok() ? 0 : Complain("hone replay", status);
}

int RecordMain(int argc, const char* const* argv) {
  CLI::App app(
      "hone replay record: makes recorded spaces, one a workload, of what hone records export wrote.\n"
      "A space of random draws: hone tune --strategy random --trials 2000 --tasks NAME, with a database of its own.");
  RecordArguments arguments;
  app.add_option("lines", arguments.lines, "the file of hone records export")->required();
  app.add_option("-o,--output", arguments.folder, "folder that the spaces are written to, NAME.space each")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--workload", arguments.workload, "regular expression that names of workloads match (default: all)");
  app.add_option("--most", arguments.most, "candidates to keep of each, the best among them")->capture_default_str();
  app.add_option("--least", arguments.least, "workloads with fewer are left out")->capture_default_str();
  app.add_option("--network", arguments.networks,
                 "NAME=FILE: a network that has the workloads, and what hone inspect printed of it");
  app.add_option("--machine", arguments.machine,
                 "facts of the machine, as hone doctor prints them (default: usual ones)");
  app.add_option("--note", arguments.note, "kept with each: how it was measured");
  if (const int code = Parse(app, argc, argv); code != 0) return std::max(code, 0);
  const absl::Status status = RunRecord(arguments);
  return status.ok() ? 0 : Complain("hone replay record", status);
}

}  // namespace hone
