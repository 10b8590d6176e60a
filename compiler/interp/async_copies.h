// Asynchronous copies that have been begun and not been waited for.
//
// The moment when a copy reads its source and writes its destination is not defined: it lands between its begin and the
// wait of its thread. So the machine lets it land where it is told (InterpretOptions::landing), and, whatever that is,
// refuses an access to the destination and a write of the source in the meantime.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/interp/bytecode.h"
#include "compiler/interp/races.h"

namespace hone::interp {

struct CopyInFlight {
  int to_access = 0, from_access = -1;  // of Code::accesses; -1: it writes `value`
  int64_t to = 0, from = 0;             // elements of their buffers
  Slot value{.i = 0};
  bool landed = false;  // has been carried out; its thread need not know
  Coordinates block, thread;
};

// One thread's, in the order in which it began them.
struct ThreadCopies {
  using Group = std::vector<std::unique_ptr<CopyInFlight>>;
  Group open;                // since the last commit
  std::deque<Group> groups;  // committed, the oldest first
};

// All threads' by the elements they are about to touch.
class CopiesInFlight {
 public:
  using Element = std::pair<int, int64_t>;  // buffer, element
  void Add(const Element& to, const Element* from, CopyInFlight* copy);
  void Remove(const Element& to, const Element* from, CopyInFlight* copy);
  const CopyInFlight* To(const Element& element) const;    // nullptr when there is none
  const CopyInFlight* From(const Element& element) const;  // any of them
  bool empty() const { return to_.empty(); }
  // Every copy, in the order of destinations.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [element, copy] : to_) visit(*copy);
  }

 private:
  std::map<Element, CopyInFlight*> to_;
  std::multimap<Element, CopyInFlight*> from_;
};

}  // namespace hone::interp
