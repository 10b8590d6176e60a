// Memory that no cache holds is waited for each time that something in it is read, unless it was asked for before:
// what several things of one kind need is asked for of all of them first, so that the waits overlap. Changes nothing.
#pragma once

#include <cstddef>

namespace hone {

// The object itself, not what it points at.
template <class T>
void Prefetch(const T& object) {
  constexpr size_t kLine = 64;
  const char* const first = reinterpret_cast<const char*>(&object);
  for (size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(first + at);
}

}  // namespace hone
