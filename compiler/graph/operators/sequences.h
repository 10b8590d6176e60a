// Sequences of tensors and optional values, as import knows them. Neither is left in a graph: how long a sequence is,
// and whether a value is there, is known when the model is imported, and nodes read the elements.
//
// Where a value of the model is a sequence, its number among the graph's values is below 0 and names an entry here.
#pragma once

#include <vector>

namespace hone {

class Sequences {
 public:
  static constexpr int kNothing = -3;  // an optional value that is not there
  static bool IsSequence(int value) { return value <= kFirst; }
  int Add(std::vector<int> elements) {
    all_.push_back(std::move(elements));
    return kFirst - static_cast<int>(all_.size() - 1);
  }
  const std::vector<int>& Elements(int sequence) const { return all_[static_cast<size_t>(kFirst - sequence)]; }

 private:
  static constexpr int kFirst = -16;
  std::vector<std::vector<int>> all_;
};

}  // namespace hone
