#include "compiler/topi/shape_ops.h"
#include "compiler/schedule/primitives/split.h"

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;
using testing::ElementsAre;

int64_t Flat(const Index& at, const std::vector<int64_t>& shape) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + at[d];
  return place;
}
Index Unflat(int64_t place, const Values& x) {
  Index at(x.rank());
  for (int d = x.rank(); d-- > 0;) {
    at[d] = place % x.dim(d);
    place /= x.dim(d);
  }
  return at;
}

TEST(ShapeOps, Transpose) {
  const Tensor x = Placeholder({2, 3, 4, 5}, kFloat32, "x");
  for (const std::vector<int64_t>& p :
       std::vector<std::vector<int64_t>>{{0, 2, 3, 1}, {3, 2, 1, 0}, {0, 1, 2, 3}, {1, 0, -1, 2}}) {
    ExpectComputes({x}, Transpose(x, p), [&](const auto& in, const Index& at) {
      Index from(4);
      for (int d = 0; d < 4; ++d) from[p[d] < 0 ? p[d] + 4 : p[d]] = at[d];
      return in[0](from);
    });
  }
}

TEST(ShapeOps, Reshape) {
  const std::pair<std::vector<int64_t>, std::vector<int64_t>> cases[] = {
      {{2, 3, 4}, {6, 4}},    {{2, 3, 4}, {2, 12}},        {{24}, {2, 3, 4}}, {{4, 6}, {3, 8}},
      {{1, 5, 1}, {5}},       {{5}, {1, 5, 1, 1}},         {{1}, {}},         {{}, {1, 1}},
      {{6, 4, 5}, {3, 8, 5}}, {{1, 128, 12}, {128, 3, 4}}, {{4, 9}, {6, 6}},  {{2, 1, 3}, {1, 3, 2, 1}}};
  for (const auto& [from, to] : cases) {
    const Tensor x = Placeholder(from, kFloat32, "x");
    ExpectComputes({x}, Reshape(x, to),
                   [&, &to = to](const auto& in, const Index& at) { return in[0](Unflat(Flat(at, to), in[0])); });
  }
}

TEST(ShapeOps, ReshapeKeepsTheIndexOfAnUnchangedDimension) {
  const Tensor x = Placeholder({8, 12, 7}, kFloat32, "x");
  const PrimFunc f = te::CreatePrimFunc({x}, {Reshape(x, {8, 3, 4, 7})}, "f");
  std::string reads;
  ForEachExpr(f.body, [&](const Expr& e) {
    if (e.As<Load>()) reads = ToText(e);
    return true;
  });
  EXPECT_THAT(reads, testing::StartsWith("x[v_i0, "));
  EXPECT_THAT(reads, testing::EndsWith(", v_i3]"));
}

TEST(ShapeOps, SqueezeAndExpand) {
  const Tensor x = Placeholder({1, 3, 1, 4}, kFloat32, "x");
  EXPECT_THAT(Squeeze(x, {}).StaticShape(), ElementsAre(3, 4));
  EXPECT_THAT(Squeeze(x, {-2}).StaticShape(), ElementsAre(1, 3, 4));
  EXPECT_THAT(ExpandDims(x, {0, -1}).StaticShape(), ElementsAre(1, 1, 3, 1, 4, 1));
  ExpectComputes({x}, Squeeze(x, {0}), [](const auto& in, const Index& at) { return in[0]({0, at[0], 0, at[2]}); });
}

TEST(ShapeOps, Concat) {
  const Tensor a = Placeholder({2, 3, 4}, kFloat32, "a"), b = Placeholder({2, 1, 4}, kFloat32, "b"),
               c = Placeholder({2, 5, 4}, kFloat32, "c");
  ExpectComputes({a, b, c}, Concat({a, b, c}, 1), [](const auto& in, const Index& at) {
    const int64_t i = at[1];
    return i < 3 ? in[0](at) : i < 4 ? in[1]({at[0], i - 3, at[2]}) : in[2]({at[0], i - 4, at[2]});
  });
  ExpectComputes({a, c}, Concat({a, a, c}, -2), [](const auto& in, const Index& at) {
    return at[1] < 6 ? in[0]({at[0], at[1] % 3, at[2]}) : in[1]({at[0], at[1] - 6, at[2]});
  });
}

TEST(ShapeOps, Interleave) {
  const Tensor a = Placeholder({2, 3, 4}, kFloat32, "a"), b = Placeholder({2, 3, 4}, kFloat32, "b");
  ExpectComputes({a, b}, Interleave({a, b, a}, 1), [](const auto& in, const Index& at) {
    return in[at[1] % 3 == 1 ? 1 : 0]({at[0], at[1] / 3, at[2]});
  });
  ExpectComputes({a, b}, Interleave({b, a}, -1), [](const auto& in, const Index& at) {
    return in[at[2] % 2 == 0 ? 1 : 0]({at[0], at[1], at[2] / 2});
  });
}

TEST(ShapeOps, StridedSlice) {
  struct Case {
    std::vector<int64_t> begin, end, step, axes;
    std::vector<int64_t> start, shape;  // what numpy gives for [7, 10]
  };
  const int64_t far = int64_t{1} << 62;
  const Case cases[] = {{{1}, {5}, {1}, {0}, {1, 0}, {4, 10}},
                        {{-3}, {far}, {1}, {1}, {0, 7}, {7, 3}},
                        {{0, 1}, {7, -1}, {2, 3}, {0, 1}, {0, 1}, {4, 3}},
                        {{-1}, {-far}, {-1}, {0}, {6, 0}, {7, 10}},
                        {{8}, {1}, {-3}, {1}, {0, 8}, {7, 3}},
                        {{far}, {-9}, {-2}, {-1}, {0, 9}, {7, 4}},
                        {{-100}, {100}, {1}, {0}, {0, 0}, {7, 10}},
                        {{5}, {2}, {1}, {0}, {5, 0}, {0, 10}}};
  for (const Case& c : cases) {
    const Tensor x = Placeholder({7, 10}, kFloat32, "x");
    const Tensor y = StridedSlice(x, c.begin, c.end, c.step, c.axes);
    EXPECT_EQ(y.StaticShape(), c.shape);
    std::vector<int64_t> step = {1, 1};
    for (size_t a = 0; a < c.axes.size(); ++a) step[c.axes[a] < 0 ? c.axes[a] + 2 : c.axes[a]] = c.step[a];
    if (y.dim(0) == 0) continue;
    ExpectComputes({x}, y, [&](const auto& in, const Index& at) {
      const Index from = {c.start[0] + at[0] * step[0], c.start[1] + at[1] * step[1]};
      EXPECT_TRUE(in[0].Has(from));
      return in[0](from);
    });
  }
}

TEST(ShapeOps, Split) {
  const Tensor x = Placeholder({3, 7}, kFloat32, "x");
  const std::vector<Tensor> parts = Split(x, {2, 4, 1}, 1);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].name(), "split_1");
  ExpectComputes({x}, parts[1], [](const auto& in, const Index& at) { return in[0]({at[0], at[1] + 2}); });
  ExpectComputes({x}, parts[2], [](const auto& in, const Index& at) { return in[0]({at[0], at[1] + 6}); });
}

TEST(ShapeOps, BroadcastAndTile) {
  const Tensor x = Placeholder({3, 1}, kFloat32, "x"), y = Placeholder({2, 3}, kFloat32, "y");
  ExpectComputes({x}, BroadcastTo(x, {2, 3, 4}), [](const auto& in, const Index& at) { return in[0]({at[1], 0}); });
  ExpectComputes({x}, BroadcastTo(x, {1, 5}), [](const auto& in, const Index& at) { return in[0]({at[0], 0}); });
  ExpectComputes({y}, Tile(y, {2, 3}), [](const auto& in, const Index& at) { return in[0]({at[0] % 2, at[1] % 3}); });
}

TEST(ShapeOps, Pad) {
  const Tensor x = Placeholder({4, 5}, kFloat32, "x");
  struct Case {
    std::vector<int64_t> before, after;
  };
  for (const Case& c : {Case{{1, 2}, {3, 0}}, Case{{0, 4}, {0, 4}}, Case{{-1, 1}, {0, -2}}, Case{{0, 0}, {2, 0}}}) {
    const auto source = [&](const Index& at) { return Index{at[0] - c.before[0], at[1] - c.before[1]}; };
    ExpectComputes({x}, Pad(x, c.before, c.after, PadMode::kConstant, 2.5),
                   [&](const auto& in, const Index& at) { return in[0].Has(source(at)) ? in[0](source(at)) : 2.5; });
    ExpectComputes({x}, Pad(x, c.before, c.after, PadMode::kEdge), [&](const auto& in, const Index& at) {
      const Index s = source(at);
      return in[0]({std::clamp<int64_t>(s[0], 0, 3), std::clamp<int64_t>(s[1], 0, 4)});
    });
    ExpectComputes({x}, Pad(x, c.before, c.after, PadMode::kReflect), [&](const auto& in, const Index& at) {
      Index s = source(at);
      for (int d = 0; d < 2; ++d) {
        const int64_t last = in[0].dim(d) - 1;
        while (s[d] < 0 || s[d] > last) s[d] = s[d] < 0 ? -s[d] : 2 * last - s[d];
      }
      return in[0](s);
    });
    ExpectComputes({x}, Pad(x, c.before, c.after, PadMode::kWrap), [&](const auto& in, const Index& at) {
      const Index s = source(at);
      return in[0]({(s[0] + 40) % 4, (s[1] + 40) % 5});
    });
  }
  const Tensor y = Placeholder({3}, kFloat32, "y");  // reflected more than once
  ExpectComputes({y}, Pad(y, {5}, {7}, PadMode::kReflect), [](const auto& in, const Index& at) {
    int64_t s = at[0] - 5;
    while (s < 0 || s > 2) s = s < 0 ? -s : 4 - s;
    return in[0]({s});
  });
}

TEST(ShapeOps, DepthAndSpace) {
  const Tensor x = Placeholder({1, 2, 3, 12}, kFloat32, "x"), y = Placeholder({1, 4, 6, 3}, kFloat32, "y");
  ExpectComputes({x}, DepthToSpace(x, 2), [](const auto& in, const Index& at) {
    return in[0]({at[0], at[1] / 2, at[2] / 2, (at[1] % 2 * 2 + at[2] % 2) * 3 + at[3]});
  });
  ExpectComputes({x}, DepthToSpace(x, 2, false), [](const auto& in, const Index& at) {
    return in[0]({at[0], at[1] / 2, at[2] / 2, at[3] * 4 + at[1] % 2 * 2 + at[2] % 2});
  });
  ExpectComputes({y}, SpaceToDepth(y, 2), [](const auto& in, const Index& at) {
    const int64_t block = at[3] / 3;
    return in[0]({at[0], at[1] * 2 + block / 2, at[2] * 2 + block % 2, at[3] % 3});
  });
}

}  // namespace
}  // namespace hone::topi
