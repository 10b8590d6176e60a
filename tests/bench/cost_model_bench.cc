// How well the cost model ranks programs of a network that it has never seen: leave one network out.
//   hone-cost-model-bench FILE.db     records of tuning (`hone tune --db FILE.db` on several models, many trials each)
//
// For every network in the database the model is trained on the tasks of all others and ranks the programs of this
// one's. The score of a ranking is top-k = sum over tasks of weight * best time / sum of weight * best time among the
// first k (search.md 2c): 1 where the fastest is always among them. "random" is a mean of 20 shuffles, "model" ranks
// without the draft (neither as a feature nor as what its output is a correction of), "both" is what the search uses.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite_store.h"
#include "tuner/model/cost_model.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

constexpr size_t kLeastPrograms = 8;  // of a task that is scored
constexpr uint64_t kSeed = 1;

struct Task {
  std::set<std::string> networks;
  double weight = 0;
  PrimFunc func;
  std::vector<std::unique_ptr<Generator>> generators;
};
struct Program {
  std::string task;  // its workload's hash
  double us = 0, draft_us = 0;
  TrainingRow row;
};
struct Data {
  std::map<std::string, Task> tasks;  // by workload hash
  std::set<std::string> networks;
  std::vector<Program> programs;
  double lower_ms = 0, extract_ms = 0;  // for a program
  int left_out = 0;                     // records that no generator of today makes
};

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

absl::Status ReadTasks(TuningStore& store, Data* data) {
  HONE_ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store.ListJobs(kLocalTenant));
  for (const JobRow& job : jobs) {
    HONE_ASSIGN_OR_RETURN(const std::vector<TaskRow> tasks, store.GetTasks(kLocalTenant, job.id));
    for (const TaskRow& row : tasks) {
      Task& task = data->tasks[row.workload_hash];
      if (task.networks.insert(job.request.model_name()).second) task.weight += row.weight;
      data->networks.insert(job.request.model_name());
    }
  }
  return absl::OkStatus();
}

absl::Status AddProgram(const v1::Record& record, Data* data) {
  Task& task = data->tasks[record.workload_hash()];
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(record.target()));
  if (task.generators.empty()) {
    HONE_ASSIGN_OR_RETURN(task.func, ParsePrimFunc(record.workload_text()));
    HONE_ASSIGN_OR_RETURN(task.generators, Generators(task.func, {target, record.threads(), NumericLevel::kDefault}));
  }
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(record.trace()));
  const std::optional<Origin> origin = OriginOf(trace);
  Program program;
  if (origin.has_value()) {
    for (const auto& generator : task.generators) {
      const std::vector<Knob>& knobs = generator->knobs();
      bool fits = generator->name() == origin->generator && knobs.size() == origin->choice.size();
      for (size_t k = 0; fits && k < knobs.size(); ++k)
        fits = origin->choice[k] >= 0 && origin->choice[k] < static_cast<int>(knobs[k].candidates.size());
      if (fits) program.draft_us = generator->Draft(origin->choice).value_or(0);
    }
  }
  if (program.draft_us <= 0) return absl::NotFoundError("of another generator");
  const auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, task.func));
  HONE_ASSIGN_OR_RETURN(const LoweredFunc lowered, Lower(schedule.func()));
  data->lower_ms += Milliseconds(start);
  const auto extract = std::chrono::steady_clock::now();
  program.row.features = ExtractFeatures(lowered, target, UsualMachine(target), record.threads(),
                                         {program.draft_us, origin->generator.substr(0, origin->generator.find(':'))});
  data->extract_ms += Milliseconds(extract);
  program.task = record.workload_hash();
  program.us = record.median_us();
  program.row.log_us = static_cast<float>(std::log(program.us));
  program.row.log_ratio = static_cast<float>(std::log(program.us / program.draft_us));
  program.row.task = StructuralHash(task.func) + static_cast<uint64_t>(record.threads());
  program.row.program = StructuralHash(lowered.func);
  data->programs.push_back(std::move(program));
  return absl::OkStatus();
}

absl::StatusOr<Data> Read(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenSqliteStore(path, StoreMode::kRead));
  Data data;
  HONE_RETURN_IF_ERROR(ReadTasks(*store, &data));
  RecordFilter filter;
  filter.limit = 500;
  do {
    HONE_ASSIGN_OR_RETURN(const RecordPage page, store->Records(kLocalTenant, filter));
    for (const RecordRow& row : page.rows) data.left_out += AddProgram(row.record, &data).ok() ? 0 : 1;
    filter.after = page.last;
  } while (filter.after != 0);
  if (data.programs.empty()) return absl::NotFoundError(path + ": no record that a generator of today makes");
  return data;
}

struct Score {
  double top1 = 0, top5 = 0;
};

// `rank` beside `programs`: less is better.
Score ScoreOf(const Data& data, const std::vector<const Program*>& programs, const std::vector<double>& rank) {
  std::map<std::string, std::vector<size_t>> by_task;
  for (size_t i = 0; i < programs.size(); ++i) by_task[programs[i]->task].push_back(i);
  double best_sum = 0, first = 0, five = 0;
  for (auto& [task, places] : by_task) {
    if (places.size() < kLeastPrograms) continue;
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return rank[a] < rank[b]; });
    std::vector<double> least;  // among the first 1, 2, ...
    for (const size_t place : places)
      least.push_back(least.empty() ? programs[place]->us : std::min(least.back(), programs[place]->us));
    const double weight = data.tasks.at(task).weight;
    best_sum += weight * least.back();
    first += weight * least[0];
    five += weight * least[4];
  }
  return first > 0 ? Score{best_sum / first, best_sum / five} : Score{};
}

absl::StatusOr<std::vector<double>> Predicted(const std::vector<const Program*>& seen,
                                              const std::vector<const Program*>& unseen, bool with_draft) {
  std::set<size_t> hidden;
  for (size_t f = 0; f < NumFeatures() && !with_draft; ++f) {
    if (FeatureName(f).rfind("draft", 0) == 0) hidden.insert(f);
  }
  const auto features = [&](const Program& program) {
    ProgramFeatures shown = program.row.features;
    for (size_t i = 0; i < shown.rows.size() && !with_draft; ++i) {
      if (hidden.count(i % NumFeatures()) > 0) shown.rows[i] = 0;
    }
    return shown;
  };
  std::vector<TrainingRow> rows;
  for (const Program* program : seen) {
    TrainingRow& row = rows.emplace_back(program->row);
    row.features = features(*program);
    if (!with_draft) row.log_ratio = row.log_us;
  }
  CostModel model;
  HONE_RETURN_IF_ERROR(model.Train(rows, kSeed));
  std::vector<ProgramFeatures> asked;
  for (const Program* program : unseen) asked.push_back(features(*program));
  HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model.Predict(asked));
  std::vector<double> rank;
  for (size_t i = 0; i < unseen.size(); ++i)
    rank.push_back(predictions[i].log_ratio + (with_draft ? std::log(unseen[i]->draft_us) : 0));
  return rank;
}

absl::Status Run(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const Data data, Read(path));
  const double count = static_cast<double>(data.programs.size());
  std::printf(
      "%zu programs of %zu tasks; %zu features a store; %.3f ms to replay and lower, %.3f ms for features;"
      " %d records left out\n",
      data.programs.size(), data.tasks.size(), NumFeatures(), data.lower_ms / count, data.extract_ms / count,
      data.left_out);
  std::printf("%-24s %8s  %15s %15s %15s %15s\n", "left out", "programs", "random 1   5", "draft 1   5", "model 1   5",
              "both 1   5");
  std::map<std::string, Score> sums;
  int networks = 0;
  for (const std::string& network : data.networks) {
    std::vector<const Program*> seen, unseen;
    for (const Program& program : data.programs) {
      (data.tasks.at(program.task).networks.count(network) > 0 ? unseen : seen).push_back(&program);
    }
    std::map<std::string, Score> scores;
    std::vector<double> draft;
    for (const Program* program : unseen) draft.push_back(program->draft_us);
    scores["2 draft"] = ScoreOf(data, unseen, draft);
    if (scores["2 draft"].top1 == 0 || seen.size() < CostModel::kMinRows) continue;
    for (uint64_t shuffle = 0; shuffle < 20; ++shuffle) {
      Random random(kSeed, shuffle);
      std::vector<double> rank;
      for (size_t i = 0; i < unseen.size(); ++i) rank.push_back(random.Uniform());
      const Score score = ScoreOf(data, unseen, rank);
      scores["1 random"].top1 += score.top1 / 20;
      scores["1 random"].top5 += score.top5 / 20;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> alone, Predicted(seen, unseen, /*with_draft=*/false));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> both, Predicted(seen, unseen, /*with_draft=*/true));
    scores["3 model"] = ScoreOf(data, unseen, alone);
    scores["4 both"] = ScoreOf(data, unseen, both);
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
  if (argc != 2) {
    std::fprintf(stderr, "usage: hone-cost-model-bench FILE.db\n");
    return 2;
  }
  const absl::Status status = hone::Run(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-cost-model-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
