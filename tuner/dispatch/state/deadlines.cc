#include "tuner/dispatch/state/deadlines.h"

#include "tuner/dispatch/state/id_containers.h"

namespace hone {

void Deadlines::Set(Of kind, uint64_t id, Micros at) {
  const Subject subject{kind, id};
  const auto found = of_.find(subject);
  if (found == of_.end()) {
    if (at == kNever) return;
    of_.emplace(subject, Deadline{at, at});
    order_.emplace(at, subject);
    return;
  }
  Deadline& deadline = found->second;
  if (at == kNever) {
    order_.erase({deadline.place, subject});
    of_.erase(found);
    return;
  }
  deadline.due = at;
  if (at >= deadline.place) return;
  Replace(order_, {deadline.place, subject}, {at, subject});
  deadline.place = at;
}

Micros Deadlines::Get(Of kind, uint64_t id) const {
  const auto found = of_.find({kind, id});
  return found == of_.end() ? kNever : found->second.due;
}

std::vector<Deadlines::Subject> Deadlines::Due(Micros now) {
  std::vector<Subject> due;
  std::vector<std::pair<Micros, Subject>> put_off;
  for (auto next = order_.begin(); next != order_.end() && next->first <= now;) {
    const Subject subject = next->second;
    Deadline& deadline = of_.at(subject);
    if (deadline.due <= now) {
      due.push_back(subject);
      ++next;
      continue;
    }
    deadline.place = deadline.due;
    put_off.emplace_back(deadline.place, subject);
    next = order_.erase(next);
  }
  order_.insert(put_off.begin(), put_off.end());
  return due;
}

}  // namespace hone
