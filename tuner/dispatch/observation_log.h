// The outcomes of one key in the order they were made, as a search is told of them. One thread appends; others read
// what is there by then, so that whoever sends a search its history copies only the part that it lacks.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "hone/v1/search.pb.h"

namespace hone {

class ObservationLog {
 public:
  void Append(v1::Observation observation) {
    const std::lock_guard<std::mutex> guard(mutex_);
    log_.push_back(std::move(observation));
  }
  // Adds those from number `first` up to number `end` to the request and says that it follows on the ones before.
  void AddTo(v1::SearchRequest* request, int first, int end) const {
    request->set_observations_before(static_cast<uint32_t>(first));
    const std::lock_guard<std::mutex> guard(mutex_);
    for (int i = first; i < end; ++i) *request->add_observations() = log_[static_cast<size_t>(i)];
  }

 private:
  mutable std::mutex mutex_;
  std::deque<v1::Observation> log_;
};

}  // namespace hone
