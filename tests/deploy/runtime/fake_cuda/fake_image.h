// What the compiler of the tests' own hands to their driver: a line with the architecture, then the text.
#pragma once

namespace hone::fake {

inline constexpr char kImageMagic[] = "kernels for ";

}  // namespace hone::fake
