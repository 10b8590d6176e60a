// What memory holds before a verification run, so that reading what the kernel never wrote shows.
//
// No single value does: a maximum passes over a NaN, a minimum over a large number, and sums that begin with 0 are
// right. Words of 4 bytes take turns in being large, large and negative, and now and then NaN (0x7A7A7A7A, 0xFBFBFBFB,
// 0xFFFFFFFF: the same in 16, 32 and 64 bits; as integers large, negative and -1). In the next set of inputs the turns
// are one further, so that of two sets most words are large in one and negative in the other, the first word of aligned
// memory always.
#pragma once

#include <cstddef>

#include "compiler/support/sanitized.h"

namespace hone {

void Poison(char* at, size_t bytes, int set);
// Whether bytes [from, to) of memory that was poisoned at `at` are as they were; the turns are the same at every
// multiple of 32 bytes from there.
bool IsPoisoned(const char* at, size_t from, size_t to, int set);

// How much of a stack is poisoned: more than a kernel's registers that were spilled, less than a thread has; little
// where a sanitizer fences stacks.
inline constexpr size_t kPoisonedStack = kSanitized ? 1 << 10 : 96 << 10;
// Leaves poison where a function that the caller calls next has its local arrays.
void PoisonStack(int set);

}  // namespace hone
