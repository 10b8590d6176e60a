// What programs have at most: the reader refuses more, and primitives make no more.
#pragma once

#include <cstddef>

namespace hone {

inline constexpr size_t kMostBufferDimensions = 64;

}  // namespace hone
