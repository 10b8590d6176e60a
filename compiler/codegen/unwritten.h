// What a register array holds before it is written. Left to the optimiser it is whatever suits it: an accumulator
// without a start would be the right number here and a wrong one elsewhere. So it is filled, and with what shows in the
// result: where everything is written first, that costs nothing.
#pragma once

#include <cstdint>

#include "compiler/ir/stmt.h"

namespace hone {

// The byte to fill the buffer with: large where what is stored to it in `body` would keep a large number (a maximum,
// the comparison of an argmax), least where it would keep a small one, else all ones: a float is then NaN, which sums
// and products keep.
uint8_t UnwrittenByte(const Buffer& buffer, const Stmt& body);

}  // namespace hone
