#include "tuner/space/sketches/templates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/schedule/workloads.h"
#include "tests/tuner/space/extra_workloads.h"

namespace hone {
namespace {

using ::testing::ElementsAre;

const Template& Named(const std::string& name) {
  for (const Template& row : Templates()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "no template " << name;
  return Templates().front();
}

PrimFunc Larger(const std::string& name) {
  for (const testing::SmallWorkload& workload : testing::LargerWorkloads()) {
    if (workload.name == name) return workload.func;
  }
  ADD_FAILURE() << "no workload " << name;
  return {};
}

TEST(Templates, KeepTheirCandidatesAlone) {
  const WorkloadInfo dense = *AnalyzeWorkload(testing::DenseRelu(64, 64, 256));
  const Template& product = Named("product");
  EXPECT_THAT(Restricted(product, dense, {"dense.unroll", {1, 2, 4, 8}}), ElementsAre(4, 8));
  EXPECT_THAT(Restricted(product, dense, {"dense.v_m.inner", {6, 12}}), ElementsAre(6, 12));
  EXPECT_THAT(Restricted(product, dense, {"dense.unroll", {1, 3}}), ElementsAre(1, 3)) << "none would be left";
}

TEST(Templates, GoByTheHeaviestBlock) {
  const WorkloadInfo product = *AnalyzeWorkload(testing::Matmul(64, 64, 256));
  const WorkloadInfo elements = *AnalyzeWorkload(testing::TwoElementwise(8, 64));
  EXPECT_TRUE(AppliesTo(Named("product"), product));
  EXPECT_FALSE(AppliesTo(Named("window"), product));
  EXPECT_FALSE(AppliesTo(Named("product"), elements));
}

TEST(Templates, LeaveOtherBlocksAlone) {
  const WorkloadInfo info = *AnalyzeWorkload(Larger("wide_depthwise_separable"));
  const Template &product = Named("product"), &window = Named("window");
  EXPECT_TRUE(AppliesTo(product, info));
  EXPECT_THAT(Restricted(product, info, {"dense.unroll", {1, 4}}), ElementsAre(4));
  EXPECT_THAT(Restricted(product, info, {"depthwise.window", {0, 1}}), ElementsAre(0, 1));
  EXPECT_THAT(Restricted(window, info, {"depthwise.window", {0, 1}}), ElementsAre(1));
}

}  // namespace
}  // namespace hone
