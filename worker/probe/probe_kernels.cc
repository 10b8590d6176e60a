#include "worker/probe/probe_kernels.h"

namespace hone {
namespace {

constexpr int kMostSums = 16;

// Where the sums start, their factor and their summand: read at run time, so that no sum is known to equal another.
volatile float sum_starts[kMostSums + 2] = {.1f, .2f,  .3f,  .4f,  .5f,  .6f,  .7f,  .8f,   .9f,
                                            1.f, 1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f, .999f, .001f};
volatile uint64_t chain_start = 0x9E3779B97F4A7C15u;
thread_local volatile float float_sink = 0;
thread_local volatile uint64_t word_sink = 0;

// GCC contracts to multiply-adds only when told so in a strict language mode; Clang does within an expression anyway.
// Its loops are left as they are written: a copy stays a loop of vectors and no call of memcpy.
#if defined(__clang__)
#define HONE_PROBE_LOOP __attribute__((noinline))
#else
#define HONE_PROBE_LOOP __attribute__((noinline, optimize("O3,fast-math,no-tree-loop-distribute-patterns")))
#endif

// An empty instruction that reads and writes x: the compiler knows nothing of its value afterwards.
#define HONE_OPAQUE(x) __asm__ volatile("" : "+r"(x))

template <int kBits>
struct Loops;

#define HONE_FMA(sums_count)                                                   \
  HONE_PROBE_LOOP HONE_TARGET static void Fma##sums_count(int64_t steps) {     \
    Floats sums[sums_count], a, b;                                             \
    for (int c = 0; c < (sums_count); ++c) sums[c] = Floats{} + sum_starts[c]; \
    a = Floats{} + sum_starts[kMostSums];                                      \
    b = Floats{} + sum_starts[kMostSums + 1];                                  \
    for (int64_t s = 0; s < steps; ++s) {                                      \
      for (int c = 0; c < (sums_count); ++c) sums[c] = sums[c] * a + b;        \
    }                                                                          \
    Floats total = sums[0];                                                    \
    for (int c = 1; c < (sums_count); ++c) total += sums[c];                   \
    float_sink = total[0];                                                     \
  }

// The chain alternates an addition and an exclusive or of registers: one cycle each on every core of the table, and
// nothing a core or a compiler can fold. Two multiply-adds for eight of them keep the clock where vector code has it.
#define HONE_LOOPS(width)                                                                           \
  template <>                                                                                       \
  struct Loops<width> {                                                                             \
    typedef float Floats __attribute__((vector_size((width) / 8)));                                 \
    typedef uint64_t Words __attribute__((vector_size((width) / 8)));                               \
    HONE_FMA(1)                                                                                     \
    HONE_FMA(8)                                                                                     \
    HONE_FMA(12)                                                                                    \
    HONE_FMA(16)                                                                                    \
    HONE_PROBE_LOOP HONE_TARGET static void Cycles(int64_t steps) {                                 \
      Floats one = Floats{} + sum_starts[0], two = Floats{} + sum_starts[1];                        \
      const Floats a = Floats{} + sum_starts[kMostSums], b = Floats{} + sum_starts[kMostSums + 1];  \
      uint64_t chain = chain_start, other = chain_start;                                            \
      for (int64_t s = 0; s < steps; s += 8) {                                                      \
        one = one * a + b;                                                                          \
        two = two * a + b;                                                                          \
        for (int i = 0; i < 4; ++i) {                                                               \
          chain += other;                                                                           \
          HONE_OPAQUE(chain);                                                                       \
          chain ^= other;                                                                           \
          HONE_OPAQUE(chain);                                                                       \
        }                                                                                           \
      }                                                                                             \
      word_sink = chain;                                                                            \
      float_sink = (one + two)[0];                                                                  \
    }                                                                                               \
    HONE_PROBE_LOOP HONE_TARGET static void Read(const char* from, int64_t bytes) {                 \
      Words sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {}, sum4 = {}, sum5 = {}, sum6 = {}, sum7 = {}; \
      const Words* at = reinterpret_cast<const Words*>(from);                                       \
      const Words* const end = at + bytes / static_cast<int64_t>(sizeof(Words));                    \
      for (; at < end; at += 8) {                                                                   \
        sum0 |= at[0];                                                                              \
        sum1 |= at[1];                                                                              \
        sum2 |= at[2];                                                                              \
        sum3 |= at[3];                                                                              \
        sum4 |= at[4];                                                                              \
        sum5 |= at[5];                                                                              \
        sum6 |= at[6];                                                                              \
        sum7 |= at[7];                                                                              \
      }                                                                                             \
      word_sink = (((sum0 | sum1) | (sum2 | sum3)) | ((sum4 | sum5) | (sum6 | sum7)))[0];           \
    }                                                                                               \
    HONE_PROBE_LOOP HONE_TARGET static void Copy(char* to, const char* from, int64_t bytes) {       \
      const Words* at = reinterpret_cast<const Words*>(from);                                       \
      const Words* const end = at + bytes / static_cast<int64_t>(sizeof(Words));                    \
      Words* out = reinterpret_cast<Words*>(to);                                                    \
      for (; at < end; at += 8, out += 8) {                                                         \
        for (int v = 0; v < 8; ++v) out[v] = at[v];                                                 \
      }                                                                                             \
    }                                                                                               \
  };

#if defined(__x86_64__)
#define HONE_TARGET __attribute__((target("avx512f,fma,prefer-vector-width=512")))
HONE_LOOPS(512)
#undef HONE_TARGET
#define HONE_TARGET __attribute__((target("avx2,fma")))
HONE_LOOPS(256)
#undef HONE_TARGET
#define HONE_TARGET __attribute__((target("avx2,fma")))
HONE_LOOPS(128)
#undef HONE_TARGET
#else
#define HONE_TARGET
HONE_LOOPS(128)
#undef HONE_TARGET
#endif

template <int kBits>
ProbeKernels Kernels() {
  using L = Loops<kBits>;
  ProbeKernels kernels;
  kernels.bits = kBits;
  kernels.fma = {{1, L::Fma1}, {8, L::Fma8}, {12, L::Fma12}, {16, L::Fma16}};
  kernels.cycles = L::Cycles;
  kernels.read = L::Read;
  kernels.copy = L::Copy;
  return kernels;
}

}  // namespace

std::vector<ProbeKernels> ProbeKernelsFor(const Target& target) {
  std::vector<ProbeKernels> kernels = {Kernels<128>()};
#if defined(__x86_64__)
  kernels.push_back(Kernels<256>());
  if (target.vector_bits >= 512) kernels.push_back(Kernels<512>());
#endif
  return kernels;
}

}  // namespace hone
