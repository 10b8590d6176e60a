// Resize of an image's spatial dimensions to known sizes (resize.cc does the rest).
#pragma once

#include "compiler/graph/operators/operator.h"

namespace hone {

// InvalidArgument where a node "Resize" is anything else.
Outputs ResizeImage(NodeContext& context);

}  // namespace hone
