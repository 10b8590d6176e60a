// What all sketches of one rewrite of a workload share, and the generator that each of them becomes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "tuner/space/generator.h"
#include "tuner/space/rewrites/rewrite.h"
#include "tuner/space/sketches/sketch.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

struct SketchFamily {
  PrimFunc workload;
  Rewrite rewrite;
  std::vector<std::string> inlined;  // names of blocks, in the order in which to inline them
  WorkloadInfo info;                 // of what is left
  double flop = 0;                   // of the heaviest block, before anything was inlined into it (LeastFlop)
};

// A choice is a value of every knob of the sketch's steps, in their order.
std::unique_ptr<Generator> MakeSketchGenerator(std::shared_ptr<const SketchFamily> family, Sketch sketch);

}  // namespace hone
