/* What a loop of fused multiply-adds reaches on all threads together, in float32 GFLOP/s: the best of a few tries.
 * Sixteen independent chains hide the latency of an addition at two a cycle. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#else
#define LANES 8
#endif
typedef float Vector __attribute__((vector_size(4 * LANES)));
enum { kChains = LANES == 16 ? 16 : 12, kSteps = 4000000, kTries = 7 };

static volatile float sink;

static void* Run(void* unused) {
  Vector sum[kChains], a = {0}, b = {0};
  (void)unused;
  for (int i = 0; i < LANES; ++i) a[i] = 0.999f, b[i] = 1e-3f;
  for (int c = 0; c < kChains; ++c) sum[c] = b;
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) sum[c] = sum[c] * a + b;
    __asm__ volatile("" : "+x"(a)); /* the steps may not be merged */
  }
  for (int c = 0; c < kChains; ++c) sink += sum[c][0];
  return NULL;
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    pthread_t others[256];
    const double start = Seconds();
    for (int t = 1; t < threads && t < 256; ++t) pthread_create(&others[t], NULL, Run, NULL);
    Run(NULL);
    for (int t = 1; t < threads && t < 256; ++t) pthread_join(others[t], NULL);
    const double rate = 2e-9 * LANES * kChains * (double)kSteps * threads / (Seconds() - start);
    if (rate > best) best = rate;
  }
  printf("%.1f\n", best);
  return 0;
}
