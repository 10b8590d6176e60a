// How often the draft and the model were right: of a batch that was measured, was the fastest the one they put first?
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hone {

// Sums over batches of (best time of the batch / time of the first pick), in (0, 1] each.
struct BatchScores {
  int batches = 0;
  double draft_first = 0;
  double model_first = 0;
};

class BatchJudge {
 public:
  struct Pick {
    std::string trace;
    double draft_us = 0;
    double predicted_us = 0;
  };
  // A candidate of the batch being made, then the end of the batch.
  void Add(Pick pick);
  void CloseBatch();
  // 0 us: it has no time, and the batch is judged without it.
  void Observe(const std::string& trace, double us);
  // Scores of the batches that became complete since the last call. Batches of fewer than two times say nothing.
  BatchScores Take();

 private:
  struct Batch {
    size_t waiting = 0;  // for observations
    std::vector<Pick> timed;
    std::vector<double> us;
  };
  void Judge(const Batch& batch);

  std::vector<Pick> open_;
  std::map<std::string, std::pair<size_t, Pick>> batch_of_;  // by trace
  std::map<size_t, Batch> batches_;
  size_t next_ = 0;
  BatchScores scores_;
};

}  // namespace hone
