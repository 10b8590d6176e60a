// Constants of which smaller sizes of a model use a part.
#pragma once

#include "compiler/array/ndarray.h"

namespace hone {

// Whether `part` is what a corner of `whole`, from the origin on, holds: the first rows of a table, say.
bool IsCornerOf(const NdArray& part, const NdArray& whole);

}  // namespace hone
