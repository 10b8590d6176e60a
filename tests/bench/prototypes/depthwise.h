// A depthwise convolution: a tile is neighbouring pixels of an output row by vectors of channels, its window in
// straight code. Where a tile reaches over the edge of the image its loads ask for every column; rows outside are left
// out.
#pragma once

#include <memory>

#include "tests/bench/prototypes/prototype.h"

namespace hone::prototypes {

// Of a depthwise layer with a square kernel of 3 or 5, stride 1 or 2, and at least a vector of channels.
bool IsForDepthwise(const LayerSize& size);
std::unique_ptr<Prototype> MakeDepthwise(std::shared_ptr<const Layer> layer, ThreadPool& pool);

}  // namespace hone::prototypes
