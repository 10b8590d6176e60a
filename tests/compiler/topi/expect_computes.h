// Runs an operator with the interpreter on random inputs and compares every element with a naive formula.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/te/te.h"

namespace hone::topi {

using Index = std::vector<int64_t>;

// An argument as the naive formulas like to read it.
class Values {
 public:
  explicit Values(const NdArray& array) : array_(array) {}
  double operator()(const Index& at) const;  // 0 outside, for padding
  bool Has(const Index& at) const;
  int64_t dim(int d) const { return array_.shape[d]; }
  int rank() const { return static_cast<int>(array_.shape.size()); }

 private:
  const NdArray& array_;
};
using Naive = std::function<double(const std::vector<Values>& inputs, const Index& at)>;

struct Inputs {
  double low = -1, high = 1;          // of floats
  int64_t int_low = 0, int_high = 5;  // half-open, of integers
  double tolerance = 2e-5;            // |a - b| <= tolerance * (1 + |b|)
};

// Arguments for these placeholders.
std::vector<NdArray> RandomArrays(const std::vector<te::Tensor>& inputs, const Inputs& how, uint64_t seed);

// Checks the function with the verifier, prints and parses it, runs it, and compares.
void ExpectComputes(const std::vector<te::Tensor>& inputs, const te::Tensor& output, const Naive& naive,
                    const Inputs& how = {});
// The same with given arguments.
void ExpectComputesOn(const std::vector<te::Tensor>& inputs, const std::vector<NdArray>& arrays,
                      const te::Tensor& output, const Naive& naive, const Inputs& how = {});

// Every index of a shape, in row-major order.
std::vector<Index> AllIndices(const std::vector<int64_t>& shape);
// Names of the blocks, in order of execution.
std::vector<std::string> BlockNames(const PrimFunc& f);

}  // namespace hone::topi
