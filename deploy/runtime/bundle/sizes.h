// Symbolic sizes of a bundle: dimensions that the shapes of the inputs give, anew in every run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hone {

struct BundleSize {
  std::string name;  // of the model's dimension, "batch"
  int64_t min = 1, max = 1;
};

// One dimension of a tensor, over the sizes: the sum of its terms, each a number times the sizes that it lists.
// batch * 12 + 1 is {{12, {0}}, {1, {}}}; a size that is squared stands twice.
struct BundleExtent {
  struct Term {
    int64_t factor = 0;
    std::vector<int> sizes;  // indices
  };
  std::vector<Term> terms;

  int64_t At(std::span<const int64_t> sizes) const;  // -1 when it does not fit in int64
  // The size that the extent is, by itself; -1: it is something else.
  int size() const;
};

// "(4, 768)".
std::string ShapeText(std::span<const int64_t> shape);
// "batch * 12 + 1".
std::string ToText(const BundleExtent& extent, std::span<const BundleSize> sizes);
// "(batch, 768)", as the model has it.
std::string ToText(std::span<const BundleExtent> extents, std::span<const BundleSize> sizes);

}  // namespace hone
