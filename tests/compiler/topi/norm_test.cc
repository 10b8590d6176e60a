#include "compiler/topi/norm.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

TEST(Softmax, MatchesLoops) {
  for (const int64_t axis : {0, 1, -1}) {
    const Tensor x = Placeholder({3, 5, 7}, kFloat32, "x");
    const auto naive = [&](const Values& v, const Index& at) {
      const size_t d = axis < 0 ? 2 : axis;
      double sum = 0;
      Index from = at;
      for (from[d] = 0; from[d] < v.dim(static_cast<int>(d)); ++from[d]) sum += std::exp(v(from));
      return std::exp(v(at)) / sum;
    };
    ExpectComputes({x}, Softmax(x, axis), [&](const auto& in, const Index& at) { return naive(in[0], at); }, {-9, 9});
    ExpectComputes({x}, LogSoftmax(x, axis),
                   [&](const auto& in, const Index& at) { return std::log(naive(in[0], at)); }, {-9, 9});
  }
}

TEST(Softmax, FiveBlocks) {
  const Tensor x = Placeholder({3, 7}, kFloat32, "x");
  EXPECT_THAT(BlockNames(te::CreatePrimFunc({x}, {Softmax(x, -1)}, "f")),
              testing::ElementsAre("softmax_max", "softmax_exp", "softmax_sum", "softmax_inverse", "softmax"));
}

// (x - mean) / sqrt(var + epsilon) over the elements of x that `same` says belong together with `at`.
template <class Same>
double Normal(const Values& x, const Index& at, double epsilon, const Same& same, bool centre = true) {
  std::vector<int64_t> shape;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(x.dim(d));
  double sum = 0, count = 0, squares = 0;
  for (const Index& i : AllIndices(shape)) {
    if (same(i, at)) sum += x(i), ++count;
  }
  const double mean = centre ? sum / count : 0;
  for (const Index& i : AllIndices(shape)) {
    if (same(i, at)) squares += (x(i) - mean) * (x(i) - mean);
  }
  return (x(at) - mean) / std::sqrt(squares / count + epsilon);
}

TEST(LayerNorm, MatchesLoops) {
  const Tensor x = Placeholder({2, 3, 13}, kFloat32, "x");
  const auto row = [](const Index& i, const Index& at) { return i[0] == at[0] && i[1] == at[1]; };
  const auto image = [](const Index& i, const Index& at) { return i[0] == at[0]; };
  const Tensor scale = Placeholder({13}, kFloat32, "scale"), bias = Placeholder({13}, kFloat32, "bias");
  ExpectComputes({x, scale, bias}, LayerNorm(x, scale, bias, -1, 1e-5), [&](const auto& in, const Index& at) {
    return Normal(in[0], at, 1e-5, row) * in[1]({at[2]}) + in[2]({at[2]});
  });
  ExpectComputes({x, scale}, LayerNorm(x, scale, Tensor(), -1, 1e-5),
                 [&](const auto& in, const Index& at) { return Normal(in[0], at, 1e-5, row) * in[1]({at[2]}); });
  const Tensor wide = Placeholder({3, 13}, kFloat32, "wide");
  ExpectComputes({x, wide, bias}, LayerNorm(x, wide, bias, 1, 1e-3), [&](const auto& in, const Index& at) {
    return Normal(in[0], at, 1e-3, image) * in[1]({at[1], at[2]}) + in[2]({at[2]});
  });
  ExpectComputes({x, scale}, RmsNorm(x, scale, -1, 1e-6),
                 [&](const auto& in, const Index& at) { return Normal(in[0], at, 1e-6, row, false) * in[1]({at[2]}); });
}

TEST(GroupNorm, MatchesLoops) {
  const Tensor x = Placeholder({2, 3, 4, 6}, kFloat32, "x");
  const Tensor scale = Placeholder({6}, kFloat32, "scale"), bias = Placeholder({6}, kFloat32, "bias");
  for (const int64_t groups : {1, 2, 3, 6}) {
    const int64_t width = 6 / groups;
    const auto same = [&](const Index& i, const Index& at) { return i[0] == at[0] && i[3] / width == at[3] / width; };
    ExpectComputes({x, scale, bias}, GroupNorm(x, scale, bias, groups, 1e-5), [&](const auto& in, const Index& at) {
      return Normal(in[0], at, 1e-5, same) * in[1]({at[3]}) + in[2]({at[3]});
    });
  }
}

TEST(BatchNorm, MatchesFormula) {
  const Tensor x = Placeholder({2, 5, 3}, kFloat32, "x");
  std::vector<Tensor> inputs = {x};
  for (const char* name : {"scale", "bias", "mean", "var"}) inputs.push_back(Placeholder({5}, kFloat32, name));
  ExpectComputes(inputs, BatchNorm(x, inputs[1], inputs[2], inputs[3], inputs[4], 1, 1e-5),
                 [](const auto& in, const Index& at) {
                   const Index c = {at[1]};
                   return (in[0](at) - in[3](c)) / std::sqrt(in[4](c) + 1e-5) * in[1](c) + in[2](c);
                 },
                 {0.1, 2});
  ExpectComputes({x, inputs[1], inputs[2]}, ScaleShift(x, inputs[1], inputs[2], 1),
                 [](const auto& in, const Index& at) { return in[0](at) * in[1]({at[1]}) + in[2]({at[1]}); });
}

TEST(Lrn, MatchesFormula) {
  const Tensor x = Placeholder({1, 2, 2, 9}, kFloat32, "x");
  for (const int64_t size : {1, 3, 4, 5}) {
    ExpectComputes({x}, Lrn(x, size, -1, 0.1, 0.75, 2), [&](const auto& in, const Index& at) {
      double sum = 0;
      for (int64_t c = at[3] - (size - 1) / 2; c <= at[3] + size / 2; ++c) {
        const double v = in[0]({at[0], at[1], at[2], c});
        sum += v * v;
      }
      return in[0](at) / std::pow(2 + 0.1 / static_cast<double>(size) * sum, 0.75);
    });
  }
}

}  // namespace
}  // namespace hone::topi
