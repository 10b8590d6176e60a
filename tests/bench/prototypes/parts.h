// Work in parts: blocks of nearly equal sizes, and shares of a pool's threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "deploy/runtime/run/thread_pool.h"

namespace hone::prototypes {

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where part `i` of `parts` begins when [0, n) is cut into parts whose sizes differ by at most one.
constexpr int64_t PartBegin(int64_t n, int64_t parts, int64_t i) {
  return n / parts * i + std::min<int64_t>(i, n % parts);
}

// body(begin, end) for each such part.
template <class Body>
void ForEachPart(int64_t n, int64_t parts, const Body& body) {
  const int64_t size = n / parts, longer = n % parts;
  for (int64_t i = 0, begin = 0; i < parts; ++i) {
    const int64_t end = begin + size + (i < longer ? 1 : 0);
    body(begin, end);
    begin = end;
  }
}

// body(begin, end, thread) on every thread, for its contiguous part of [0, extent).
template <class Body>
void ParallelFor(ThreadPool& pool, int64_t extent, const Body& body) {
  const auto part = [](void* closure, int64_t begin, int64_t end, int32_t thread) -> int32_t {
    (*static_cast<const Body*>(closure))(begin, end, thread);
    return 0;
  };
  pool.Run(part, const_cast<void*>(static_cast<const void*>(&body)), extent);
}

}  // namespace hone::prototypes
