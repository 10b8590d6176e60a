#include "compiler/topi/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/interp/interpreter.h"
#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

// All elements of x that are gathered into the result at `at`.
std::vector<double> Gathered(const Values& x, const Axes& axes, bool keepdims, const Index& at) {
  std::vector<int64_t> shape;
  std::vector<bool> reduced(x.rank(), axes.empty());
  for (const int64_t a : axes) reduced[a < 0 ? a + x.rank() : a] = true;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(reduced[d] ? x.dim(d) : 1);
  std::vector<double> values;
  for (const Index& k : AllIndices(shape)) {
    Index from;
    size_t next = 0;
    for (int d = 0; d < x.rank(); ++d) {
      if (reduced[d]) {
        from.push_back(k[d]);
        next += keepdims;
      } else {
        from.push_back(at[next++]);
      }
    }
    values.push_back(x(from));
  }
  return values;
}

using Op = Tensor (*)(const Tensor&, const Axes&, bool, const std::string&);
using Fold = double (*)(const std::vector<double>&);

TEST(Reduce, MatchesLoops) {
  const std::pair<Op, Fold> ops[] = {
      {ReduceSum,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += x;
         return s;
       }},
      {ReduceMax, [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }},
      {ReduceMin, [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }},
      {ReduceProd,
       [](const std::vector<double>& v) {
         double s = 1;
         for (double x : v) s *= x;
         return s;
       }},
      {ReduceMean,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += x;
         return s / v.size();
       }},
      {ReduceL1,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += std::abs(x);
         return s;
       }},
      {ReduceL2,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += x * x;
         return std::sqrt(s);
       }},
      {ReduceSumSquare,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += x * x;
         return s;
       }},
      {ReduceLogSumExp,
       [](const std::vector<double>& v) {
         double s = 0;
         for (double x : v) s += std::exp(x);
         return std::log(s);
       }},
  };
  const std::pair<std::vector<int64_t>, Axes> cases[] = {{{3, 5, 7}, {1}}, {{3, 5, 7}, {-1}}, {{3, 5, 7}, {0, 2}},
                                                         {{3, 5, 7}, {}},  {{4}, {0}},        {{2, 1, 6}, {1}}};
  for (const auto& [op, fold] : ops) {
    for (const auto& [shape, axes] : cases) {
      for (const bool keepdims : {false, true}) {
        const Tensor x = Placeholder(shape, kFloat32, "x");
        ExpectComputes({x}, op(x, axes, keepdims, "y"),
                       [&, fold = fold, &axes = axes](const auto& in, const Index& at) {
                         return fold(Gathered(in[0], axes, keepdims, at));
                       });
      }
    }
  }
}

TEST(Reduce, ArgMaxFirstAndLast) {
  for (const bool last : {false, true}) {
    for (const bool greatest : {false, true}) {
      for (const int64_t axis : {0, 1, -1}) {
        const Tensor x = Placeholder({4, 9, 5}, kFloat32, "x");
        std::vector<NdArray> arrays(1, NdArray(kFloat32, {4, 9, 5}));
        for (int64_t i = 0; i < 180; ++i) arrays[0].Set(i, static_cast<double>((i * 7 + i / 5) % 4));  // many ties
        const Tensor y = greatest ? ArgMax(x, axis, false, last) : ArgMin(x, axis, false, last);
        ExpectComputesOn({x}, arrays, y, [&](const std::vector<Values>& in, const Index& at) {
          const std::vector<double> row = Gathered(in[0], {axis}, false, at);
          int64_t best = 0;
          for (size_t k = 1; k < row.size(); ++k) {
            const bool better = greatest ? row[k] > row[best] : row[k] < row[best];
            if (better || (last && row[k] == row[best])) best = static_cast<int64_t>(k);
          }
          return static_cast<double>(best);
        });
      }
    }
  }
}

TEST(Reduce, ArgMaxOfInfinities) {
  const Tensor x = Placeholder({3}, kFloat32, "x");
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {-inf, -inf, -inf};
  ExpectComputesOn({x}, {NdArray::Of<float>(kFloat32, {3}, values)}, ArgMax(x, 0, true),
                   [](const auto&, const Index&) { return 0.0; });
}

TEST(Reduce, CumSum) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const Tensor x = Placeholder({3, 8}, kFloat32, "x");
      ExpectComputes({x}, CumSum(x, 1, exclusive, reverse), [&](const std::vector<Values>& in, const Index& at) {
        double sum = 0;
        for (int64_t k = 0; k < 8; ++k) {
          const int64_t behind = reverse ? k - at[1] : at[1] - k;
          if (behind > 0 || (behind == 0 && !exclusive)) sum += in[0]({at[0], k});
        }
        return sum;
      });
    }
  }
}

TEST(Reduce, TopK) {
  for (const bool largest : {true, false}) {
    const Tensor x = Placeholder({3, 11, 2}, kFloat32, "x");
    std::vector<NdArray> arrays(1, NdArray(kFloat32, {3, 11, 2}));
    for (int64_t i = 0; i < 66; ++i) arrays[0].Set(i, static_cast<double>(i * 5 % 8));
    const TopKResult top = TopK(x, 4, 1, largest);
    const auto order = [&](const Values& v, const Index& at) {
      std::vector<int64_t> places;
      for (int64_t k = 0; k < 11; ++k) places.push_back(k);
      std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
        const double x = v({at[0], a, at[2]}), y = v({at[0], b, at[2]});
        return largest ? x > y : x < y;
      });
      return places[at[1]];
    };
    ExpectComputesOn({x}, arrays, top.indices, [&](const std::vector<Values>& in, const Index& at) {
      return static_cast<double>(order(in[0], at));
    });
    ExpectComputesOn({x}, arrays, top.values, [&](const std::vector<Values>& in, const Index& at) {
      return in[0]({at[0], order(in[0], at), at[2]});
    });
  }
}

}  // namespace
}  // namespace hone::topi
