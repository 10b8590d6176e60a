#include "tuner/space/templates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/schedule/workloads.h"

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

TEST(Templates, KeepTheirCandidatesAlone) {
  const Template& product = Named("product");
  EXPECT_THAT(Restricted(product, {"dense.unroll", {1, 2, 4, 8}}), ElementsAre(4, 8));
  EXPECT_THAT(Restricted(product, {"dense.v_m.inner", {6, 12}}), ElementsAre(6, 12));
  EXPECT_THAT(Restricted(product, {"dense.unroll", {1, 3}}), ElementsAre(1, 3)) << "none would be left";
  EXPECT_THAT(Restricted(Named("window"), {"pool.window", {0, 1}}), ElementsAre(1));
}

TEST(Templates, GoByTheHeaviestBlock) {
  const WorkloadInfo product = *AnalyzeWorkload(testing::Matmul(64, 64, 256));
  const WorkloadInfo elements = *AnalyzeWorkload(testing::TwoElementwise(8, 64));
  EXPECT_TRUE(Named("product").applies(product));
  EXPECT_FALSE(Named("window").applies(product));
  EXPECT_FALSE(Named("product").applies(elements));
}

}  // namespace
}  // namespace hone
