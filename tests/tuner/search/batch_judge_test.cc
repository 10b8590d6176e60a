#include "tuner/search/strategies/batch_judge.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(BatchJudge, ComparesTheFirstPicksWithTheBest) {
  BatchJudge judge;
  judge.Add({"a", /*draft_us=*/5, /*predicted_us=*/9});
  judge.Add({"b", 6, 3});
  judge.Add({"c", 7, 4});
  judge.CloseBatch();
  judge.Observe("a", 20);
  judge.Observe("b", 10);
  EXPECT_EQ(judge.Take().batches, 0) << "one is still out";
  judge.Observe("c", 8);
  const BatchScores scores = judge.Take();
  EXPECT_EQ(scores.batches, 1);
  EXPECT_DOUBLE_EQ(scores.draft_first, 8.0 / 20);
  EXPECT_DOUBLE_EQ(scores.model_first, 8.0 / 10);
  EXPECT_EQ(judge.Take().batches, 0) << "taken";
}

TEST(BatchJudge, WhatHasNoTimeIsLeftOut) {
  BatchJudge judge;
  judge.Add({"failed", 1, 1});
  judge.Add({"b", 2, 3});
  judge.Add({"c", 3, 2});
  judge.CloseBatch();
  judge.Add({"alone", 1, 1});
  judge.CloseBatch();
  judge.CloseBatch();  // nothing was added
  judge.Observe("nobody's", 3);
  judge.Observe("failed", 0);
  judge.Observe("c", 5);
  judge.Observe("c", 7);  // again
  judge.Observe("b", 10);
  judge.Observe("alone", 1);
  const BatchScores scores = judge.Take();
  EXPECT_EQ(scores.batches, 1) << "a batch of one has no first pick";
  EXPECT_DOUBLE_EQ(scores.draft_first, 0.5);
  EXPECT_DOUBLE_EQ(scores.model_first, 1);
}

TEST(BatchJudge, BatchesMayEndInAnyOrder) {
  BatchJudge judge;
  for (const char* name : {"a", "b", "c", "d"}) {
    judge.Add({std::string(name) + "1", 1, 2});
    judge.Add({std::string(name) + "2", 2, 1});
    judge.CloseBatch();
  }
  for (const char* name : {"d2", "a1", "d1", "b1", "a2", "b2"}) judge.Observe(name, name[1] == '1' ? 4 : 1);
  EXPECT_EQ(judge.Take().batches, 3);
  judge.Observe("c1", 4);
  judge.Observe("c2", 1);
  const BatchScores last = judge.Take();
  EXPECT_EQ(last.batches, 1);
  EXPECT_DOUBLE_EQ(last.draft_first, 0.25);
  EXPECT_DOUBLE_EQ(last.model_first, 1);
}

}  // namespace
}  // namespace hone
