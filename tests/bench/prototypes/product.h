// A matrix product [m, k] x [k, n] with a constant second operand, packed in panels as wide as the tile. The first is
// read in place.
#pragma once

#include <memory>

#include "tests/bench/prototypes/prototype.h"

namespace hone::prototypes {

// Of a layer that is a product: one image of one row, m pixels of k channels each.
std::unique_ptr<Prototype> MakeProduct(std::shared_ptr<const Layer> layer, ThreadPool& pool);

}  // namespace hone::prototypes
