#include "compiler/topi/attention.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

TEST(Attention, MatchesLoops) {
  const Tensor q = Placeholder({2, 3, 5, 4}, kFloat32, "q"), k = Placeholder({2, 3, 7, 4}, kFloat32, "k");
  const Tensor v = Placeholder({1, 3, 7, 6}, kFloat32, "v");
  const Tensor added = Placeholder({5, 7}, kFloat32, "added"), allowed = Placeholder({2, 1, 1, 7}, kBool, "allowed");
  for (const Tensor& mask : {Tensor(), added, allowed}) {
    const double scale = mask ? 0.3 : 0.5;
    std::vector<Tensor> inputs = {q, k, v};
    if (mask) inputs.push_back(mask);
    std::vector<NdArray> arrays = RandomArrays(inputs, {-2, 2}, 11);
    if (mask == allowed) {
      for (int64_t i = 0; i < 14; ++i) arrays[3].SetInt(i, i % 3 != 1);
    }
    ExpectComputesOn(inputs, arrays, Attention(q, k, v, mask, mask ? std::optional<double>(scale) : std::nullopt),
                     [&](const std::vector<Values>& in, const Index& at) {
                       double sum = 0, weighted = 0;
                       for (int64_t n = 0; n < 7; ++n) {
                         double score = 0;
                         for (int64_t d = 0; d < 4; ++d)
                           score += in[0]({at[0], at[1], at[2], d}) * in[1]({at[0], at[1], n, d});
                         score *= scale;
                         if (mask == added) score += in[3]({at[2], n});
                         if (mask == allowed && in[3]({at[0], 0, 0, n}) == 0) continue;
                         sum += std::exp(score);
                         weighted += std::exp(score) * in[2]({0, at[1], n, at[3]});
                       }
                       return weighted / sum;
                     });
  }
}

}  // namespace
}  // namespace hone::topi
