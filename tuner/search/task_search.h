// The search for one task: proposes the next candidates from what was observed so far.
//
// Draft, then verify: choices are bred from the best ones measured and from the draft's favourites, and judged by the
// analytic draft; the survivors are built and lowered and ranked by the cost model, with credit for what it is unsure
// of; a batch of them, spread over the space, goes out (search.md 2b and 2f). What comes next is a function of the seed
// and the observations in their order, so a search can be repeated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/support/random.h"
#include "compiler/target/target.h"
#include "hone/v1/search.pb.h"
#include "tuner/model/cost_model.h"
#include "tuner/space/generator.h"

namespace hone {

struct SearchTuning {
  int pool = 1024;        // choices judged by the draft in a round
  int finalists = 24;     // built, lowered and ranked by the model; half as many again as the batch at least
  int parents = 8;        // best measured choices that are bred from
  double explore = 0.08;  // share of the batch taken at random from the finalists
  int sourced = 8;        // one in so many of a batch is of the generator tried least
  int threads = 1;        // to build finalists with
};

class TaskSearch {
 public:
  // FailedPrecondition where no generator applies.
  static absl::StatusOr<std::unique_ptr<TaskSearch>> Create(const PrimFunc& workload, const SpaceOptions& options,
                                                            uint64_t seed, const SearchTuning& tuning = {});

  size_t num_observations() const { return observations_; }
  void Observe(const v1::Observation& observation);
  // A candidate that is out already, proposed by an earlier life of this search: not to be proposed again.
  void NotePending(const std::string& trace);
  // Traces of like workloads, tried once before all else where they replay.
  void AddSeed(const std::string& trace);

  // At most `count` candidates that were never proposed or observed; fewer when the space runs out.
  absl::StatusOr<std::vector<v1::Candidate>> Propose(int count);

  // Choices that the draft took for legal and the schedule or lowering refused, and why the last one was: news for
  // whoever looks after the templates.
  int refused() const { return refused_; }
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Point {  // a choice of one generator
    size_t generator = 0;
    Choice choice;
    auto operator<=>(const Point&) const = default;
  };
  struct Finalist {
    Point point;
    std::string trace;
    std::string source;
    uint64_t program = 0;  // hash of what it lowers to: different choices may be one program
    double draft_us = 0;
    double score = 0;  // predicted log time less the credit for uncertainty
    double predicted_us = 0;
    std::vector<float> features;
    absl::Status status = absl::UnknownError("not built yet");
  };
  TaskSearch() = default;

  // Points with their drafts, best first; none that was seen.
  std::vector<std::pair<double, Point>> Breed(Random& random);
  std::vector<Point> Neighbours(const Point& point) const;
  std::optional<Point> PointOf(const std::string& trace) const;  // nullopt: of another making
  absl::Status Build(Finalist* finalist) const;
  std::vector<Finalist> ChooseFinalists(size_t wanted, Random& random);
  // The place in `ranked` of the best of the generator that was tried least, of those that are not hopeless.
  size_t LeastTried(const std::vector<Finalist>& ranked) const;
  const std::vector<std::optional<Choice>>& Favourites();
  std::string SourceOf(size_t generator) const;  // "template", "sketch"
  // Moves the best of `ranked` into the batch until it is full.
  void Choose(int count, std::vector<Finalist> ranked, Random& random, std::vector<v1::Candidate>* batch);
  absl::StatusOr<std::vector<Finalist>> Rank(std::vector<Finalist> finalists);
  double Similarity(const Point& a, const Point& b) const;
  void TrainIfDue();

  PrimFunc workload_;
  Target target_;
  Machine machine_;
  int threads_ = 1;
  uint64_t seed_ = 0;
  SearchTuning tuning_;
  std::vector<std::unique_ptr<Generator>> generators_;
  std::set<Point> seen_;  // proposed or observed
  std::set<std::string> seen_traces_;
  std::set<uint64_t> seen_programs_;
  std::vector<int> tried_;                         // candidates proposed, by generator
  std::vector<std::optional<Choice>> favourites_;  // of the draft, by generator; found on first use
  std::vector<std::string> seeds_;
  std::map<std::string, Finalist> proposed_;        // by trace, until its observation comes
  std::vector<std::pair<double, Point>> measured_;  // best first
  std::vector<TrainingRow> rows_;
  size_t trained_rows_ = 0;
  CostModel model_;
  size_t observations_ = 0;
  uint64_t round_ = 0;
  int refused_ = 0;
  std::string last_refusal_;
};

}  // namespace hone
