// compute_at of blocks that run under a condition of their own.
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/split.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

// Rows of 10 in steps of 4: the last step of the partial sums has a tail, whose condition moves with them.
TEST(ComputeAt, MovesTheConditionOfATail) {
  const PrimFunc workload = Matmul(3, 5, 10);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, c));
  const std::vector<LoopRef> k = Get(Split(s, loops[2], {-1, 4}));
  const BlockRef partial = Get(Rfactor(s, k[1], -1));
  ExpectSound(s, workload);
  Do(ComputeAt(s, partial, Get(GetLoops(s, c))[1]));
  EXPECT_EQ(Get(GetLoops(s, partial)).size(), 4u) << "rows, columns, and the two of the sum";
  ExpectSound(s, workload);
}

}  // namespace
}  // namespace hone::testing
