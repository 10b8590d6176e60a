// A model that is another one at a size that was not planned is found by its graph.
#include "compiler/graph/plan/graph_at_sizes.h"

#include "compiler/graph/plan/generalise_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using testing::HasSubstr;
using Ints = std::vector<int64_t>;
using Make = std::function<void(Net& net, const Ints& sizes)>;

// What is said of the first size that is checked and is not as those that are planned; "" of a model without one.
std::string Said(const std::vector<PlanSize>& sizes, const Make& make) {
  const auto at = [&](const Ints& point) {
    Net net;
    make(net, point);
    return net.graph();
  };
  const std::vector<Ints> points = SizesToPlanAt(sizes);
  std::vector<Graph> graphs;
  for (const Ints& point : points) graphs.push_back(at(point));
  const GraphAtSizes checked(sizes, points, graphs);
  for (const Ints& point : SizesToCheck(sizes)) {
    const absl::Status status = checked.Check(point, at(point));
    if (!status.ok()) return std::string(status.message());
  }
  return "";
}

NdArray Table(int64_t rows, double step) {
  NdArray table(kFloat32, {rows, 40});
  for (int64_t i = 0; i < table.NumElements(); ++i) table.Set(i, step * static_cast<double>(i));
  return table;
}

TEST(GraphAtSizes, FindsNothingInAModelThatIsOneAtAll) {
  EXPECT_EQ(Said({{"n", {1, 40}}},
                 [](Net& net, const Ints& sizes) {
                   int x = net.Input({sizes[0], 40});
                   x = net.Op("add", {x, net.Constant(Table(sizes[0], 0.5))});
                   x = net.Op("multiply", {x, net.Filled({}, 1.0 / static_cast<double>(sizes[0]))});
                   net.Output(net.Op("reshape", {x}, {{"shape", Ints{sizes[0] * 40}}}));
                 }),
            "");
}

TEST(GraphAtSizes, FindsAnotherNode) {
  const std::string said = Said({{"n", {1, 40}}}, [](Net& net, const Ints& sizes) {
    const int x = net.Input({sizes[0], 3});
    net.Output(net.Op(sizes[0] == 7 ? "exp" : "relu", {x}));
  });
  EXPECT_THAT(said, HasSubstr("the model is another one at n=7 than at n=40: the node"));
  EXPECT_THAT(said, HasSubstr("give a range on one side of it"));
}

TEST(GraphAtSizes, FindsAnotherNumberOfNodes) {
  EXPECT_THAT(Said({{"n", {1, 40}}},
                   [](Net& net, const Ints& sizes) {
                     int x = net.Input({sizes[0], 3});
                     if (sizes[0] > 38) x = net.Op("relu", {x});
                     net.Output(net.Op("exp", {x}));
                   }),
              HasSubstr("the model is another one at"));
}

// Rows rounded up to a multiple: the points that are planned lie in no one residue class, but one that is cut at a
// length beyond them all looks the same at each.
TEST(GraphAtSizes, FindsAnExtentThatIsCutAtALength) {
  EXPECT_THAT(Said({{"n", {1, 40}}},
                   [](Net& net, const Ints& sizes) {
                     const int x = net.Input({std::max<int64_t>(sizes[0], 2), 3});
                     net.Output(net.Op("relu", {x}));
                   }),
              HasSubstr("at n=1 than at n=40: of the node"));
}

TEST(GraphAtSizes, FindsOtherConstants) {
  EXPECT_THAT(Said({{"n", {1, 40}}},
                   [](Net& net, const Ints& sizes) {
                     const int x = net.Input({sizes[0], 40});
                     net.Output(net.Op("add", {x, net.Constant(Table(sizes[0], sizes[0] == 11 ? 0.25 : 0.5))}));
                   }),
              HasSubstr("at n=11 than at n=40: the constant"));
  EXPECT_THAT(Said({{"n", {1, 40}}},
                   [](Net& net, const Ints& sizes) {
                     const int x = net.Input({sizes[0], 40});
                     net.Output(net.Op("add", {x, net.Filled({}, sizes[0] == 5 ? 2 : 3)}));
                   }),
              HasSubstr("a number is 2 and not 3"));
}

TEST(SizesToCheck, AreAllOfAFewAndSomeOfMany) {
  EXPECT_EQ(SizesToCheck({{"n", {1, 512}}}).size(), 512u);
  EXPECT_EQ(SizesToCheck({{"n", {3, 22}}, {"m", {1, 50}}}).size(), 1000u);
  const std::vector<Ints> many = SizesToCheck({{"n", {1, 64}}, {"m", {1, 4096}}});
  EXPECT_LE(many.size(), 1000u);
  EXPECT_THAT(many, testing::IsSupersetOf({Ints{1, 1}, Ints{64, 4096}, Ints{1, 4096}, Ints{33, 4096}}));
  EXPECT_EQ(SizesToCheck({{"n", {0, 5}}}).front(), Ints{1}) << "at 0 a graph lacks what has no elements";
}

}  // namespace
}  // namespace hone
