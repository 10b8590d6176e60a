// How well the cost model ranks programs of a network that it has never seen: leave one network out.
//   hone-cost-model-bench tests/bench/search/networks/*.space     recorded spaces that name their networks
//
// For every network the model is trained on the tasks that it does not have, and ranks the programs of each of its own.
// The score of a ranking is top-k = sum over tasks of weight * best time / sum of weight * best time among the first k
// (search.md 2c): 1 where the fastest is always among them. "random" is a mean of 20 shuffles, "model" ranks without
// the draft (neither as a feature nor as what its output is a correction of), "both" is what the search uses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/structural.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "tuner/model/device_model.h"
#include "tuner/search/replay/recorded_space.h"

namespace hone {
namespace {

constexpr size_t kLeastPrograms = 8;  // of a task that is scored
constexpr uint64_t kSeed = 1;

struct Program {
  size_t task = 0;
  double us = 0, draft_us = 0;
  TrainingRow row;
};
struct Data {
  std::vector<std::map<std::string, double>> tasks;  // the networks of each, with their weights
  std::set<std::string> networks;
  std::vector<Program> programs;
  size_t left_out = 0;  // candidates that do not replay
};

absl::Status AddSpace(const std::string& file, Data* data) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  HONE_ASSIGN_OR_RETURN(const Recording recording, ParseRecording(text));
  if (recording.networks.empty())
    return absl::InvalidArgumentError("the recorded space names no network; see --network");
  HONE_ASSIGN_OR_RETURN(const auto space, RecordedSpace::Make(recording, HostTarget().cores));
  data->left_out += space->left_out();
  const size_t task = data->tasks.size();
  data->tasks.push_back(recording.networks);
  for (const auto& [network, weight] : recording.networks) data->networks.insert(network);
  for (const Recording::Candidate& candidate : recording.candidates) {
    const absl::StatusOr<Identified> identified = space->Identify(candidate.trace);
    if (!identified.ok()) continue;
    Program& program = data->programs.emplace_back();
    program.task = program.row.task = task;
    program.us = candidate.us;
    program.draft_us = identified->program.draft_us;
    program.row.features = identified->program.features;
    program.row.log_us = static_cast<float>(std::log(program.us));
    program.row.log_ratio = static_cast<float>(std::log(program.us / program.draft_us));
    program.row.program = identified->program.hash;
  }
  return absl::OkStatus();
}

struct Score {
  double top1 = 0, top5 = 0;
};

// `rank` beside `programs`: less is better.
Score ScoreOf(const Data& data, const std::string& network, const std::vector<const Program*>& programs,
              const std::vector<double>& rank) {
  std::map<size_t, std::vector<size_t>> by_task;
  for (size_t i = 0; i < programs.size(); ++i) by_task[programs[i]->task].push_back(i);
  double best_sum = 0, first = 0, five = 0;
  for (auto& [task, places] : by_task) {
    if (places.size() < kLeastPrograms) continue;
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return rank[a] < rank[b]; });
    std::vector<double> least;  // among the first 1, 2, ...
    for (const size_t place : places)
      least.push_back(least.empty() ? programs[place]->us : std::min(least.back(), programs[place]->us));
    const double weight = data.tasks[task].at(network);
    best_sum += weight * least.back();
    first += weight * least[0];
    five += weight * least[4];
  }
  return first > 0 ? Score{best_sum / first, best_sum / five} : Score{};
}

// Trees alone: the draft is neither a feature nor what is corrected.
absl::StatusOr<std::vector<double>> RankByTrees(const std::vector<const Program*>& seen,
                                                const std::vector<const Program*>& unseen) {
  std::set<size_t> hidden;
  for (size_t f = 0; f < NumFeatures(); ++f) {
    if (FeatureName(f).rfind("draft", 0) == 0) hidden.insert(f);
  }
  const auto features = [&](const Program& program) {
    ProgramFeatures shown = program.row.features;
    for (size_t i = 0; i < shown.rows.size(); ++i) {
      if (hidden.count(i % NumFeatures()) > 0) shown.rows[i] = 0;
    }
    return shown;
  };
  std::vector<TrainingRow> rows;
  for (const Program* program : seen) {
    TrainingRow& row = rows.emplace_back(program->row);
    row.features = features(*program);
    row.log_ratio = row.log_us;
  }
  CostModel model;
  HONE_RETURN_IF_ERROR(model.Train(rows, kSeed));
  std::vector<ProgramFeatures> asked;
  for (const Program* program : unseen) asked.push_back(features(*program));
  HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model.Predict(asked));
  std::vector<double> rank;
  for (const Prediction& prediction : predictions) rank.push_back(prediction.log_ratio);
  return rank;
}

// As the search does of a task without times, after those seen.
absl::StatusOr<std::vector<double>> RankByBoth(const std::vector<const Program*>& seen,
                                               const std::vector<const Program*>& unseen) {
  DeviceModel model;
  for (const Program* program : seen) model.Observe(program->row);
  HONE_RETURN_IF_ERROR(model.TrainIfDue(kSeed));
  std::map<size_t, std::vector<size_t>> by_task;
  for (size_t i = 0; i < unseen.size(); ++i) by_task[unseen[i]->task].push_back(i);
  std::vector<double> rank(unseen.size());
  for (const auto& [task, places] : by_task) {
    std::vector<ProgramFeatures> asked;
    for (const size_t i : places) asked.push_back(unseen[i]->row.features);
    HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model.Predict(task, asked));
    for (size_t p = 0; p < places.size(); ++p)
      rank[places[p]] = std::log(unseen[places[p]]->draft_us) + predictions[p].log_ratio;
  }
  return rank;
}

absl::Status Run(const std::vector<std::string>& files) {
  Data data;
  for (const std::string& file : files) {
    if (const absl::Status added = AddSpace(file, &data); !added.ok()) return Annotate(added, file);
  }
  std::printf("%zu programs of %zu tasks; %zu features a store; %zu candidates left out\n", data.programs.size(),
              data.tasks.size(), NumFeatures(), data.left_out);
  std::printf("%-24s %8s  %15s %15s %15s %15s\n", "left out", "programs", "random 1   5", "draft 1   5", "model 1   5",
              "both 1   5");
  std::map<std::string, Score> sums;
  int networks = 0;
  for (const std::string& network : data.networks) {
    std::vector<const Program*> seen, unseen;
    for (const Program& program : data.programs) {
      (data.tasks[program.task].count(network) > 0 ? unseen : seen).push_back(&program);
    }
    std::map<std::string, Score> scores;
    std::vector<double> draft;
    for (const Program* program : unseen) draft.push_back(program->draft_us);
    scores["2 draft"] = ScoreOf(data, network, unseen, draft);
    if (scores["2 draft"].top1 == 0 || seen.size() < CostModel::kMinRows) continue;
    for (uint64_t shuffle = 0; shuffle < 20; ++shuffle) {
      Random random(kSeed, shuffle);
      std::vector<double> rank;
      for (size_t i = 0; i < unseen.size(); ++i) rank.push_back(random.Uniform());
      const Score score = ScoreOf(data, network, unseen, rank);
      scores["1 random"].top1 += score.top1 / 20;
      scores["1 random"].top5 += score.top5 / 20;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> alone, RankByTrees(seen, unseen));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> both, RankByBoth(seen, unseen));
    scores["3 model"] = ScoreOf(data, network, unseen, alone);
    scores["4 both"] = ScoreOf(data, network, unseen, both);
    std::printf("%-24s %8zu ", network.c_str(), unseen.size());
    for (const auto& [name, score] : scores) {
      std::printf("   %.3f %.3f  ", score.top1, score.top5);
      sums[name].top1 += score.top1;
      sums[name].top5 += score.top5;
    }
    std::printf("\n");
    ++networks;
  }
  if (networks == 0) return absl::FailedPreconditionError("records of two networks at least are needed");
  std::printf("%-24s %8s ", "mean", "");
  for (const auto& [name, score] : sums) std::printf("   %.3f %.3f  ", score.top1 / networks, score.top5 / networks);
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: hone-cost-model-bench FILE.space...\n");
    return 2;
  }
  const absl::Status status = hone::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-cost-model-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
