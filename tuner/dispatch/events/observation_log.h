// The outcomes of one key in the order they were made, as a search is told of them. One thread appends; others read
// what is there by then, so that whoever sends a search its history copies only the part that it lacks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "hone/v1/search.pb.h"

namespace hone {

class ObservationLog {
 public:
  struct Entry {
    std::shared_ptr<const std::string> trace;  // thousands of bytes, which whoever appends has too
    v1::OutcomeKind kind = v1::OUTCOME_OK;
    double median_us = 0;  // of one that is OK
  };

  void Append(const Entry& entry) {
    const std::lock_guard<std::mutex> guard(mutex_);
    log_.push_back(entry);
  }
  // Adds those from number `first` up to number `end` to the request and says that it follows on the ones before.
  void AddTo(v1::SearchRequest* request, int first, int end) const {
    request->set_observations_before(static_cast<uint32_t>(first));
    const std::lock_guard<std::mutex> guard(mutex_);
    for (int i = first; i < end; ++i) {
      const Entry& entry = log_[static_cast<size_t>(i)];
      v1::Observation& observation = *request->add_observations();
      observation.set_trace(*entry.trace);
      observation.set_kind(entry.kind);
      if (entry.kind == v1::OUTCOME_OK) observation.set_median_us(entry.median_us);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Entry> log_;
};

}  // namespace hone
