#include "compiler/topi/index_ops.h"

#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

int64_t Wrap(double index, int64_t size) {
  const int64_t i = static_cast<int64_t>(index);
  return i < 0 ? i + size : i;
}

TEST(IndexOps, Gather) {
  const Tensor x = Placeholder({4, 5, 6}, kFloat32, "x");
  for (const DType type : {kInt64, kInt32}) {
    const Tensor index = Placeholder({2, 3}, type, "index"), scalar = Placeholder({}, type, "scalar");
    const Inputs how = {-1, 1, -4, 4};
    ExpectComputes(
        {x, index}, Gather(x, index, 0),
        [](const auto& in, const Index& at) {
          return in[0]({Wrap(in[1]({at[0], at[1]}), 4), at[2], at[3]});
        },
        how);
    ExpectComputes(
        {x, index}, Gather(x, index, 1),
        [](const auto& in, const Index& at) {
          return in[0]({at[0], Wrap(in[1]({at[1], at[2]}), 5), at[3]});
        },
        how);
    ExpectComputes(
        {x, scalar}, Gather(x, scalar, -1),
        [](const auto& in, const Index& at) {
          return in[0]({at[0], at[1], Wrap(in[1]({}), 6)});
        },
        how);
  }
}

TEST(IndexOps, GatherElementsAndNd) {
  const Tensor x = Placeholder({4, 5}, kFloat32, "x"), index = Placeholder({3, 5}, kInt64, "index");
  ExpectComputes({x, index}, GatherElements(x, index, 0),
                 [](const auto& in, const Index& at) {
                   return in[0]({Wrap(in[1](at), 4), at[1]});
                 },
                 {-1, 1, -4, 4});
  const Tensor y = Placeholder({3, 4, 5}, kFloat32, "y"), tuples = Placeholder({3, 2, 2}, kInt64, "tuples");
  const Inputs how = {-1, 1, -3, 3};
  ExpectComputes(
      {y, tuples}, GatherNd(y, tuples),
      [](const auto& in, const Index& at) {
        return in[0]({Wrap(in[1]({at[0], at[1], 0}), 3), Wrap(in[1]({at[0], at[1], 1}), 4), at[2]});
      },
      how);
  ExpectComputes(
      {y, tuples}, GatherNd(y, tuples, 1),
      [](const auto& in, const Index& at) {
        return in[0]({at[0], Wrap(in[1]({at[0], at[1], 0}), 4), Wrap(in[1]({at[0], at[1], 1}), 5)});
      },
      how);
}

TEST(IndexOps, ScatterNd) {
  const Tensor x = Placeholder({4, 5, 2}, kFloat32, "x"), updates = Placeholder({3, 2}, kFloat32, "updates");
  const Tensor indices = Placeholder({3, 2}, kInt64, "indices");
  const int64_t tuples[] = {1, 2, -1, 0, 0, 4};
  std::vector<NdArray> arrays = RandomArrays({x, indices, updates}, {}, 5);
  arrays[1] = NdArray::Of<int64_t>(kInt64, {3, 2}, tuples);
  for (const ScatterMode mode : {ScatterMode::kReplace, ScatterMode::kAdd, ScatterMode::kMax}) {
    ExpectComputesOn({x, indices, updates}, arrays, ScatterNd(x, indices, updates, mode),
                     [&](const auto& in, const Index& at) {
                       double value = in[0](at);
                       for (int64_t u = 0; u < 3; ++u) {
                         if (Wrap(in[1]({u, 0}), 4) != at[0] || Wrap(in[1]({u, 1}), 5) != at[1]) continue;
                         const double update = in[2]({u, at[2]});
                         value = mode == ScatterMode::kReplace ? update
                                 : mode == ScatterMode::kAdd   ? value + update
                                                               : std::max(value, update);
                       }
                       return value;
                     });
  }
}

TEST(IndexOps, ScatterElements) {
  const Tensor x = Placeholder({4, 5}, kFloat32, "x"), updates = Placeholder({2, 3}, kFloat32, "updates");
  const Tensor indices = Placeholder({2, 3}, kInt64, "indices");
  const int64_t at_axis[] = {0, 2, -1, 3, 0, 1};
  std::vector<NdArray> arrays = RandomArrays({x, indices, updates}, {}, 5);
  arrays[1] = NdArray::Of<int64_t>(kInt64, {2, 3}, at_axis);
  for (const ScatterMode mode : {ScatterMode::kReplace, ScatterMode::kAdd}) {
    ExpectComputesOn({x, indices, updates}, arrays, ScatterElements(x, indices, updates, 0, mode),
                     [&](const auto& in, const Index& at) {
                       double value = in[0](at);
                       for (int64_t u = 0; u < 2; ++u) {
                         if (at[1] >= 3 || Wrap(in[1]({u, at[1]}), 4) != at[0]) continue;
                         value = mode == ScatterMode::kReplace ? in[2]({u, at[1]}) : value + in[2]({u, at[1]});
                       }
                       return value;
                     });
  }
}

TEST(IndexOps, OneHot) {
  const Tensor index = Placeholder({2, 3}, kInt64, "index"), values = Placeholder({2}, kFloat32, "values");
  for (const int64_t axis : {0, 1, -1}) {
    ExpectComputes({index, values}, OneHot(index, 4, values, axis),
                   [&](const auto& in, const Index& at) {
                     Index from = at;
                     const int64_t d = axis < 0 ? 2 : axis;
                     from.erase(from.begin() + d);
                     return Wrap(in[0](from), 4) == at[d] ? in[1]({1}) : in[1]({0});
                   },
                   {-1, 1, -4, 4});
  }
}

TEST(IndexOps, Trilu) {
  const Tensor x = Placeholder({2, 4, 6}, kFloat32, "x");
  for (const int64_t k : {-2, 0, 1, 9}) {
    ExpectComputes({x}, Trilu(x, true, k),
                   [&](const auto& in, const Index& at) { return at[2] - at[1] >= k ? in[0](at) : 0; });
    ExpectComputes({x}, Trilu(x, false, k),
                   [&](const auto& in, const Index& at) { return at[2] - at[1] <= k ? in[0](at) : 0; });
  }
}

TEST(IndexOps, Made) {
  ExpectComputes({}, Arange(2, 3, 7, kInt64), [](const auto&, const Index& at) { return 2.0 + 3.0 * at[0]; });
  ExpectComputes({}, Arange(0.5, -0.25, 5, kFloat32), [](const auto&, const Index& at) { return 0.5 - 0.25 * at[0]; });
  ExpectComputes({}, Full({2, 3}, 1.5, kFloat32), [](const auto&, const Index&) { return 1.5; });
}

}  // namespace
}  // namespace hone::topi
