// Winograd's minimal filtering F(m x m, 3 x 3) (A. Lavin and S. Gray, arXiv 1509.09308): tiles of the input are
// transformed, (m + 2)^2 matrix products take the place of the window, and their results are transformed back. Either
// the three are phases over all tiles with a barrier between, or each thread does all three for one block of tiles
// after the other, small enough to stay in its cache.
#pragma once

#include <memory>

#include "tests/bench/prototypes/prototype.h"

namespace hone::prototypes {

// Of a layer with a 3 x 3 kernel of stride 1 that is not depthwise and has at least a vector of channels on either
// side. m: 2 or 4.
bool IsForWinograd(const LayerSize& size);
std::unique_ptr<Prototype> MakeWinograd(std::shared_ptr<const Layer> layer, ThreadPool& pool, int m);

}  // namespace hone::prototypes
