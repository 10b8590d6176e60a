// Pools that are made of several operators.
#pragma once

#include "compiler/graph/operators/operator.h"

namespace hone {

// MaxPool of any elements and any number of spatial dimensions, and with the places of the greatest elements.
Outputs MaxPoolWithPlaces(NodeContext& context);

}  // namespace hone
