// Memory out of the caches, as a model leaves what it read long ago.
#pragma once

#include <span>

namespace hone {

// Every cache line of `memory` is in no cache of any core when it returns; what was changed is written back.
void FlushFromCaches(std::span<const char> memory);

}  // namespace hone
