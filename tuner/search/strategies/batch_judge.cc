#include "tuner/search/strategies/batch_judge.h"

#include <algorithm>
#include <utility>

namespace hone {

void BatchJudge::Add(Pick pick) { open_.push_back(std::move(pick)); }

void BatchJudge::CloseBatch() {
  if (open_.empty()) return;
  Batch& batch = batches_[next_];
  for (Pick& pick : open_) {
    std::string trace = pick.trace;
    if (batch_of_.emplace(std::move(trace), std::pair(next_, std::move(pick))).second) ++batch.waiting;
  }
  open_.clear();
  ++next_;
}

void BatchJudge::Observe(const std::string& trace, double us) {
  const auto found = batch_of_.find(trace);
  if (found == batch_of_.end()) return;
  const auto entry = batches_.find(found->second.first);
  Batch& batch = entry->second;
  if (us > 0) {
    batch.timed.push_back(std::move(found->second.second));
    batch.us.push_back(us);
  }
  batch_of_.erase(found);
  if (--batch.waiting > 0) return;
  Judge(batch);
  batches_.erase(entry);
}

void BatchJudge::Judge(const Batch& batch) {
  if (batch.us.size() < 2) return;
  size_t draft = 0, model = 0;
  for (size_t i = 1; i < batch.us.size(); ++i) {
    if (batch.timed[i].draft_us < batch.timed[draft].draft_us) draft = i;
    if (batch.timed[i].predicted_us < batch.timed[model].predicted_us) model = i;
  }
  const double best = *std::min_element(batch.us.begin(), batch.us.end());
  ++scores_.batches;
  scores_.draft_first += best / batch.us[draft];
  scores_.model_first += best / batch.us[model];
}

BatchScores BatchJudge::Take() { return std::exchange(scores_, {}); }

}  // namespace hone
