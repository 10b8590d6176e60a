#include "tuner/dispatch/deadlines.h"

#include "tuner/dispatch/id_containers.h"

namespace hone {

void Deadlines::Set(Of kind, uint64_t id, Micros at) {
  const Subject subject{kind, id};
  const auto found = at_.find(subject);
  if (found == at_.end()) {
    if (at == kNever) return;
    at_.emplace(subject, at);
    order_.emplace(at, subject);
  } else if (at == kNever) {
    order_.erase({found->second, subject});
    at_.erase(found);
  } else if (found->second != at) {
    Replace(order_, {found->second, subject}, {at, subject});
    found->second = at;
  }
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
