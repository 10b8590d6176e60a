// Which hand-written kernels compute what a kernel does.
#pragma once

#include <memory>
#include <vector>

#include "tests/bench/prototypes/prototype.h"
#include "tuner/space/workload/workload_info.h"

namespace hone::prototypes {

// The blocks that sum as layers, in program order: each sums products of float32 numbers from a constant and another
// buffer, as a matrix product, a convolution over one or two dimensions, or a depthwise one, whatever the order of
// their dimensions. Empty: there is no block that sums, or one that is something else, dilated, or in groups.
std::vector<LayerSize> LayersOf(const WorkloadInfo& info);

// The prototypes of such a layer; none where no one is written for it.
std::vector<std::unique_ptr<Prototype>> PrototypesOf(const LayerSize& size, ThreadPool& pool);

}  // namespace hone::prototypes
