// A direct convolution as an implicit product: a tile is neighbouring pixels of an output row by vectors of output
// channels. Weights are packed [panel of output channels][block of input channels][ky][kx][input channel][width].
#pragma once

#include <memory>

#include "tests/bench/prototypes/prototype.h"

namespace hone::prototypes {

// Of any layer that is not depthwise.
std::unique_ptr<Prototype> MakeConvolution(std::shared_ptr<const Layer> layer, ThreadPool& pool);

}  // namespace hone::prototypes
