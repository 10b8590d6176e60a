// Products and convolutions of the generators end in tile operations: no multiply-add is left to the lanes of a loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/tuner/space/extra_workloads.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

using testing::SmallWorkload;

constexpr int kChoices = 4;  // at random, of every generator

// Where lanes of a loop are left: sums of one term, which are no sums, and vectors along a reduction whose length is no
// multiple of theirs, of which a condition cuts the last.
constexpr std::string_view kInLanes[] = {"matmul_outer", "dense_relu_unit", "dense_transposed", "scores",
                                         "scores_of_one"};
// One column: there is nothing for lanes.
constexpr std::string_view kScalar[] = {"matmul_column", "matmul_unit"};

bool IsOneOf(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsProduct(const std::string& name) {
  if (name == "product") return false;  // of all elements of a row
  for (const std::string_view kind :
       {"matmul", "dense", "product", "tensordot", "mlp", "conv", "depthwise", "groups", "separable", "scores"}) {
    if (name.find(kind) != std::string::npos) return true;
  }
  return false;
}

std::vector<SmallWorkload> Products() {
  std::vector<SmallWorkload> all = testing::SmallWorkloads();
  for (SmallWorkload& more : testing::LargerWorkloads()) all.push_back(std::move(more));
  std::erase_if(
      all, [](const SmallWorkload& workload) { return !IsProduct(workload.name) || IsOneOf(kInLanes, workload.name); });
  return all;
}

bool AddsProduct(const Store& store) {
  const std::optional<ReductionUpdate> update = MatchUpdate(store);
  const Binary* value = update.has_value() ? update->value.As<Binary>() : nullptr;
  return value != nullptr && update->op == BinaryOp::kAdd && value->op == BinaryOp::kMul;
}

struct Found {
  int operations = 0;
  std::string in_lanes;  // a multiply-add that is in lanes of a loop
};
Found Look(const Stmt& body) {
  Found found;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const TileOp* op = stmt.As<TileOp>()) found.operations += FindTileIntrinsic(op->intrinsic)->accumulates ? 1 : 0;
    const For* loop = stmt.As<For>();
    if (loop == nullptr || loop->kind != ForKind::kVectorized) return true;
    ForEachStmt(loop->body, [&](const Stmt& inside) {
      const Store* store = inside.As<Store>();
      if (store != nullptr && AddsProduct(*store)) found.in_lanes = ToText(inside);
      return true;
    });
    return true;
  });
  return found;
}

class TileOperations : public ::testing::TestWithParam<SmallWorkload> {};

TEST_P(TileOperations, AreWhatCandidatesAddProductsBy) {
  const PrimFunc& func = GetParam().func;
  int operations = 0;
  for (const char* target : {"cpu:cortex-a72", "cpu:x86-64-v3"}) {
    const SpaceOptions options{*ParseTarget(target), 2, NumericLevel::kStrict};
    const auto generators = Generators(func, options);
    ASSERT_TRUE(generators.ok()) << generators.status();
    for (size_t g = 0; g < generators->size(); ++g) {
      const Generator& generator = *(*generators)[g];
      std::vector<Choice> choices;
      if (const absl::StatusOr<Choice> best = BestByDraft(generator, 1); best.ok()) choices.push_back(*best);
      for (int i = 0; i < kChoices; ++i) {
        Random random(23, g * 100 + static_cast<uint64_t>(i));
        if (const std::optional<Choice> choice = testing::LegalChoice(generator, random)) choices.push_back(*choice);
      }
      for (const Choice& choice : choices) {
        const absl::StatusOr<Schedule> schedule = generator.Build(choice);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        const Found found = Look(schedule->func().body);
        operations += found.operations;
        EXPECT_EQ(found.in_lanes, "") << target << ", " << generator.name() << "\n" << ToText(schedule->func());
      }
    }
  }
  EXPECT_EQ(operations > 0, !IsOneOf(kScalar, GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(All, TileOperations, ::testing::ValuesIn(Products()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
