#include "worker/runner/cache_flush.h"

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace hone {
namespace {

constexpr uintptr_t kLine = 64;

#if defined(__x86_64__)
bool HasClflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 23 & 1) != 0;
}

// Of the two instructions the one whose lines do not wait for each other.
[[gnu::target("clflushopt")]] void FlushLinesUnordered(uintptr_t begin, uintptr_t end) {
  for (uintptr_t at = begin; at < end; at += kLine) _mm_clflushopt(reinterpret_cast<void*>(at));
}

void FlushLines(uintptr_t begin, uintptr_t end) {
  static const bool unordered = HasClflushopt();
  _mm_mfence();
  if (unordered) {
    FlushLinesUnordered(begin, end);
  } else {
    for (uintptr_t at = begin; at < end; at += kLine) _mm_clflush(reinterpret_cast<const void*>(at));
  }
  _mm_mfence();
}
#elif defined(__aarch64__)
void FlushLines(uintptr_t begin, uintptr_t end) {
  for (uintptr_t at = begin; at < end; at += kLine) asm volatile("dc civac, %0" : : "r"(at) : "memory");
  asm volatile("dsb ish" : : : "memory");
}
#elif defined(__riscv)
// Programs may seldom flush a line there (Zicbom is the system's): others take the place of what is cached. A core has
// at most half of this in its last cache.
void FlushLines(uintptr_t, uintptr_t) {
  static char others[32 << 20];
  for (size_t at = 0; at < sizeof(others); at += kLine) {
    volatile char* const line = &others[at];
    *line = static_cast<char>(*line + 1);
  }
}
#else
#error "no instruction is known here that takes memory out of the caches"
#endif

}  // namespace

void FlushFromCaches(std::span<const char> memory) {
  if (memory.empty()) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  FlushLines(begin / kLine * kLine, begin + memory.size());
}

}  // namespace hone
