// Plans with symbolic sizes, made of plans at some: at every size they compute what the plan made for it alone does.
#include "compiler/graph/plan/generalise_plan.h"

#include <cmath>
#include <numeric>

#include "compiler/graph/plan/planner.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ints = std::vector<int64_t>;
using Make = std::function<void(Net& net, const Ints& sizes)>;

Plan PlanAt(const Make& make, const Ints& sizes) {
  Net net;
  make(net, sizes);
  absl::StatusOr<Plan> plan = MakePlan(net.graph());
  HONE_CHECK(plan.ok()) << plan.status().ToString();
  return *std::move(plan);
}

absl::StatusOr<Plan> Generalised(const std::vector<PlanSize>& sizes, const Make& make) {
  const std::vector<Ints> points = SizesToPlanAt(sizes);
  std::vector<Plan> plans;
  for (const Ints& point : points) {
    plans.push_back(PlanAt(make, point));
    ShareConstants(plans[0], plans.back());
  }
  return GeneralisePlan(sizes, points, std::move(plans));
}

// The plan with numbers in place of its sizes.
Plan Fixed(const Plan& plan, const Ints& sizes) {
  Plan fixed = plan;
  for (PlanTensor& tensor : fixed.tensors) {
    for (size_t d = 0; d < tensor.extents.size(); ++d) tensor.shape[d] = tensor.extents[d].At(sizes);
  }
  for (PlanTask& task : fixed.tasks) {
    Ints own;
    for (const int s : task.sizes) own.push_back(sizes[static_cast<size_t>(s)]);
    task.func = WithSizes(task.func, own);
  }
  return fixed;
}

// Two values of equal remainder by every divisor would not see what goes by steps of it.
TEST(SizesToPlanAt, ValuesOfASizeHaveNoDivisorInCommon) {
  for (int64_t min = 1; min < 40; ++min) {
    for (int64_t max = min; max < 600; max += 1 + max / 7) {
      const std::vector<Ints> points = SizesToPlanAt({{"n", {min, max}}});
      int64_t step = 0;
      for (const Ints& point : points) {
        step = std::gcd(step, point[0] - points[0][0]);
        EXPECT_GT(point[0], 1);
        EXPECT_LE(point[0], points[0][0]);
      }
      EXPECT_EQ(step, 1) << min << " to " << max;
      EXPECT_GE(points[0][0], max);
    }
  }
}

void ExpectSameAt(const Plan& plan, const Make& make, const std::vector<Ints>& all) {
  for (const Ints& sizes : all) {
    SCOPED_TRACE(testing::PrintToString(sizes));
    ExpectNear(Interpreted(Fixed(plan, sizes)), Interpreted(PlanAt(make, sizes)), 1e-6);
  }
}

// Rows through two layers and a softmax.
void Layers(Net& net, const Ints& sizes) {
  const int first = net.Op("relu", {net.Op("dense", {net.Input({sizes[0], 6}), net.Constant({6, 5}, 1)})});
  net.Output(net.Op("softmax", {net.Op("dense", {first, net.Constant({5, 4}, 2)})}, {{"axis", int64_t{1}}}));
}

// Rows of a table from the place on that a size says, and what is seen from each: the tokens of a decoder behind its
// past.
void Places(Net& net, const Ints& sizes) {
  const int64_t past = sizes[0], count = sizes[1];
  const auto from = [&](int64_t start, int64_t n) {
    return net.Op("range", {}, {{"start", start}, {"step", int64_t{1}}, {"count", n}, {"type", std::string("int64")}});
  };
  const int rows = from(past, count);
  const int x = net.Op("concat", {net.Input({past, 3}), net.Input({count, 3})}, {{"axis", int64_t{0}}});
  const int seen = net.Op("less_equal", {from(0, past + count), net.Op("reshape", {rows}, Shape({count, 1}))});
  const int chosen = net.Op("where", {seen, net.Filled({}, 1), net.Filled({}, 0)});
  net.Output(net.Op("dense", {chosen, x}));
  net.Output(net.Op("gather", {net.Constant({24, 3}, 1), rows}, {{"axis", int64_t{0}}}));
}

TEST(GeneralisePlan, ARangeBeginsWhereASizeSays) {
  const absl::StatusOr<Plan> plan = Generalised({{"past", {0, 16}}, {"seq", {1, 8}}}, Places);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectSameAt(*plan, Places, {{1, 1}, {16, 1}, {16, 8}, {5, 3}, {1, 8}});
}

TEST(GeneralisePlan, IsRightAtEverySize) {
  const absl::StatusOr<Plan> plan = Generalised({{"n", {1, 9}}}, Layers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<Ints> all;
  for (int64_t n = 1; n <= 9; ++n) all.push_back({n});
  ExpectSameAt(*plan, Layers, all);
  const PlanTensor& input = plan->tensors[static_cast<size_t>(plan->inputs[0])];
  EXPECT_THAT(input.shape, ElementsAre(9, 6)) << "the greatest";
  EXPECT_EQ(input.extents[0].Text(std::vector<std::string>{"n"}), "n");
  EXPECT_EQ(input.extents[1].number(), 6);
  for (const PlanTask& task : plan->tasks) {
    EXPECT_THAT(task.sizes, ElementsAre(0));
    EXPECT_EQ(task.func.dims[0].range(), (SizeRange{1, 9}));
  }
}

// Attention over two sizes: products, squares, and a view of both at once.
void Attention(Net& net, const Ints& sizes) {
  const int64_t batch = sizes[0], tokens = sizes[1];
  const int q = net.Input({batch, tokens, 4}), k = net.Input({batch, tokens, 4});
  const int scores = net.Op("batch_matmul", {q, net.Op("transpose", {k}, {{"perm", Ints{0, 2, 1}}})});
  const int weights = net.Op("softmax", {scores}, {{"axis", int64_t{2}}});
  net.Output(net.Op("reshape", {net.Op("batch_matmul", {weights, q})}, {{"shape", Ints{batch * tokens, 4}}}));
}

TEST(GeneralisePlan, TakesSeveralSizes) {
  const absl::StatusOr<Plan> plan = Generalised({{"batch", {1, 3}}, {"tokens", {2, 12}}}, Attention);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectSameAt(*plan, Attention, {{1, 2}, {3, 12}, {2, 2}, {3, 3}, {1, 7}, {2, 11}});
  const PlanTensor& output = plan->tensors[static_cast<size_t>(plan->outputs[0])];
  EXPECT_EQ(output.extents[0].Text(std::vector<std::string>{"batch", "tokens"}), "batch * tokens");
}

// A mean over the size, which divides by it, beside rows of a table as long as the size.
void MeanAndTable(Net& net, const Ints& sizes) {
  NdArray table(kFloat32, {sizes[0], 3});
  for (int64_t i = 0; i < table.NumElements(); ++i) table.Set(i, 0.25 * static_cast<double>(i));
  const int sum = net.Op("add", {net.Input({2, sizes[0], 3}), net.Constant(std::move(table))});
  net.Output(net.Op("reduce_mean", {sum}, {{"axes", Ints{1}}}));
}

TEST(GeneralisePlan, OneTableServesAllSizes) {
  const absl::StatusOr<Plan> plan = Generalised({{"n", {3, 20}}}, MeanAndTable);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectSameAt(*plan, MeanAndTable, {{3}, {4}, {13}, {20}});
  int tables = 0;
  for (const PlanTensor& tensor : plan->tensors) {
    if (tensor.kind != PlanTensor::kConstant) continue;
    ++tables;
    EXPECT_THAT(tensor.shape, ElementsAre(20, 3));
    EXPECT_THAT(tensor.extents, IsEmpty());
  }
  EXPECT_EQ(tables, 1);
}

// What cannot be said of all sizes is refused, with what it is and where.
TEST(GeneralisePlan, RefusesAConstantThatFollowsFromTheSize) {
  const auto plan = Generalised({{"n", {2, 8}}}, [](Net& net, const Ints& sizes) {
    net.Output(net.Op("add", {net.Input({sizes[0], 3}), net.Filled({3}, std::sqrt(static_cast<double>(sizes[0])))}));
  });
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("follows from them"));
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("the model is another one at the sizes n=7 than at n=8"));
}

TEST(GeneralisePlan, RefusesAModelThatTakesAnotherWay) {
  const auto plan = Generalised({{"n", {2, 8}}}, [](Net& net, const Ints& sizes) {
    const int x = net.Input({sizes[0], 3});
    net.Output(net.Op(sizes[0] > 5 ? "relu" : "exp", {x}));
  });
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("its program has another form at other sizes"));
  const auto longer = Generalised({{"n", {2, 8}}}, [](Net& net, const Ints& sizes) {
    int x = net.Input({sizes[0], 3});
    if (sizes[0] > 5) x = net.Op("softmax", {x}, {{"axis", int64_t{1}}});
    net.Output(net.Op("softmax", {net.Op("relu", {x})}, {{"axis", int64_t{1}}}));
  });
  EXPECT_THAT(std::string(longer.status().message()), HasSubstr("the model is another one at the sizes"));
}

TEST(GeneralisePlan, RefusesANumberThatIsNoPolynomial) {
  const auto plan = Generalised({{"n", {2, 64}}}, [](Net& net, const Ints& sizes) {
    net.Output(net.Op("relu", {net.Input({static_cast<int64_t>(std::sqrt(sizes[0])) + 1, 3})}));
  });
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("is no polynomial of the sizes"));
}

}  // namespace
}  // namespace hone
