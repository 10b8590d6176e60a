// Where the tests of rules begin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tuner/space/default_schedule.h"
#include "tuner/space/sketches/sketch.h"

namespace hone::testing {

inline SpaceOptions SketchOptions(int threads = 2) {
  return {*ParseTarget("cpu:x86-64-v4"), threads, NumericLevel::kStrict};
}

// A workload with the sketch that nothing was decided about.
struct SketchStart {
  explicit SketchStart(const PrimFunc& func, int threads = 2)
      : info(*AnalyzeWorkload(func)),
        fusion(info),
        context{&info, &fusion, SketchOptions().target, UsualMachine(SketchOptions().target), threads} {
    sketch.blocks.resize(info.blocks.size());
  }
  std::vector<Sketch> Offer(const std::unique_ptr<SketchRule>& rule, const std::string& block) const {
    const int index = info.Find(block);
    EXPECT_GE(index, 0) << block;
    return rule->Offer(context, sketch, index);
  }
  WorkloadInfo info;
  BlockFusion fusion;
  SketchContext context;
  Sketch sketch;
};

}  // namespace hone::testing
