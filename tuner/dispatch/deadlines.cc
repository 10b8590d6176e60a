#include "tuner/dispatch/deadlines.h"

namespace hone {

void Deadlines::Set(Of kind, uint64_t id, Micros at) {
  const Subject subject{kind, id};
  const auto found = at_.find(subject);
  if (found != at_.end()) {
    if (found->second == at) return;
    order_.erase({found->second, subject});
    if (at == kNever) at_.erase(found);
  }
  if (at == kNever) return;
  at_[subject] = at;
  order_.emplace(at, subject);
}

Micros Deadlines::Get(Of kind, uint64_t id) const {
  const auto found = at_.find({kind, id});
  return found == at_.end() ? kNever : found->second;
}

std::vector<Deadlines::Subject> Deadlines::Due(Micros now) const {
  std::vector<Subject> due;
  for (auto next = order_.begin(); next != order_.end() && next->first <= now; ++next) due.push_back(next->second);
  return due;
}

}  // namespace hone
