// How the next candidates of a task are chosen. Strategies see the same space and the same experience, so that they can
// be compared, on a device or on a recorded space (hone replay).
//
// To add one: a class in a file of its own, a declaration here, a row in strategy.cc and a value of
// proto SearchStrategy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/support/random.h"
#include "hone/v1/common.pb.h"
#include "tuner/search/strategies/experience.h"
#include "tuner/search/strategies/ranking.h"
#include "tuner/search/strategies/workbench.h"

namespace hone {

struct SearchTuning {
  int pool = 2048;  // points judged by the draft in a round
  // Of them built, lowered and ranked by the model; twice the batch at least. One costs some 10 ms of one core.
  int finalists = 32;
  int parents = 8;        // best measured points that are bred from
  double explore = 0.08;  // share of the batch taken at random from the finalists
  int sourced = 8;        // one in so many of a batch is of the source tried least
  int threads = 1;        // to build finalists with
};

// What a strategy decides by. What comes next is a function of these and of the random numbers handed in.
struct SearchState {
  const CandidateSpace& space;
  Experience& experience;  // told of refusals and of points that are not worth another look
  Workbench& workbench;
  const SearchTuning& tuning;
  bool polish = false;  // the budget nears its end, or nothing was gained for long: stay near the best
};

struct Pick {
  Point point;
  Built built;
  double predicted_us = 0;
  std::string source;   // "template", "sketch", "mutate", ...: for people
  bool ranked = false;  // predicted_us is a trained model's
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // At most `count`, of programs that differ from each other and from all that experience knows; none when nothing is
  // left.
  virtual absl::StatusOr<std::vector<Pick>> Next(int count, const SearchState& state, Random& random) = 0;
};

// Evolves on the draft, ranks the survivors with the cost model: model_strategy.cc.
std::unique_ptr<Strategy> MakeModelStrategy(uint64_t seed, TaskModel model = {});
// Legal points at random, every source as often as another: random_strategy.cc.
std::unique_ptr<Strategy> MakeRandomStrategy();
// The least draft first, whatever was measured: draft_strategy.cc.
std::unique_ptr<Strategy> MakeDraftStrategy();

// The model's where none is named; the others leave `model` alone.
std::unique_ptr<Strategy> MakeStrategy(v1::SearchStrategy strategy, uint64_t seed, TaskModel model = {});

// Built and of a new program: what all strategies hand out of `points`, in their order.
std::vector<Pick> TakeNew(const std::vector<Point>& points, int count, const SearchState& state);

}  // namespace hone
