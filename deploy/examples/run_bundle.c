/* Runs a bundle that `hone compile` made, in C, with nothing but the runtime:
 *
 *     cc run_bundle.c -o run_bundle $(pkg-config --cflags --libs hone_runtime)
 *     ./run_bundle model.hone [RUNS]
 *
 * Every input is filled with numbers between -1 and 1 (integers with 0 and 1); what comes out is printed in short, with
 * the median time of a run. */
#define _POSIX_C_SOURCE 200809L
#include <hone_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failed(const char* doing) {
  fprintf(stderr, "run_bundle: %s: %s\n", doing, hone_last_error());
  return 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Memory as the runtime wants it for binding: 64-byte aligned, a multiple of 64 long. */
static void* aligned(int64_t bytes) {
  void* memory = NULL;
  const size_t size = ((size_t)bytes + 63) / 64 * 64 + 64;
  if (posix_memalign(&memory, 64, size) != 0) return NULL;
  memset(memory, 0, size);
  return memory;
}

static DLTensor tensor_of(const HoneTensorInfo* info, void* data) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = info->ndim;
  tensor.dtype = info->dtype;
  tensor.shape = (int64_t*)info->shape;
  return tensor;
}

static void print_info(const char* kind, const HoneTensorInfo* info) {
  int32_t d;
  printf("%s %s: %s (", kind, info->name, info->dtype_name);
  for (d = 0; d < info->ndim; ++d) printf("%s%lld", d > 0 ? ", " : "", (long long)info->shape[d]);
  printf(")");
}

int main(int argc, char** argv) {
  HoneModule* module = NULL;
  HoneInstance* instance = NULL;
  const int runs = argc > 2 ? atoi(argv[2]) : 20;
  double* times = NULL;
  int i;
  if (argc < 2 || runs < 1) {
    fprintf(stderr, "usage: run_bundle MODEL.hone [RUNS]\n");
    return 2;
  }
  if (hone_module_load(argv[1], &module) != HONE_OK) return failed("loading");
  if (hone_instance_create(module, NULL, &instance) != HONE_OK) return failed("making an instance");

  for (i = 0; i < hone_module_num_inputs(module); ++i) {
    HoneTensorInfo info = {.struct_size = sizeof(info)};
    DLTensor tensor;
    int64_t n;
    void* data;
    if (hone_module_input(module, i, &info) != HONE_OK) return failed("an input");
    if ((data = aligned(info.bytes)) == NULL) return 1;
    if (strcmp(info.dtype_name, "float32") == 0) {
      for (n = 0; n < info.bytes / 4; ++n) ((float*)data)[n] = (float)rand() / (float)RAND_MAX * 2 - 1;
    } else if (strcmp(info.dtype_name, "int64") == 0) {
      for (n = 0; n < info.bytes / 8; ++n) ((int64_t*)data)[n] = rand() & 1;
    }
    tensor = tensor_of(&info, data);
    /* Bound, not copied: the memory stays ours and is to live as long as the instance uses it. */
    if (hone_instance_bind_input(instance, info.name, &tensor) != HONE_OK) return failed("binding an input");
    print_info("input", &info);
    printf("\n");
  }

  if ((times = malloc(sizeof(double) * (size_t)runs)) == NULL) return 1;
  for (i = -1; i < runs; ++i) { /* the first run warms up */
    const double start = now_ms();
    if (hone_instance_run(instance) != HONE_OK) return failed("running");
    if (i >= 0) times[i] = now_ms() - start;
  }
  qsort(times, (size_t)runs, sizeof(double), by_value);

  for (i = 0; i < hone_module_num_outputs(module); ++i) {
    HoneTensorInfo info = {.struct_size = sizeof(info)};
    DLTensor view;
    int64_t n;
    if (hone_module_output(module, i, &info) != HONE_OK) return failed("an output");
    if (hone_instance_view_output(instance, info.name, &view) != HONE_OK) return failed("reading an output");
    print_info("output", &info);
    if (strcmp(info.dtype_name, "float32") == 0) {
      printf(":");
      for (n = 0; n < info.bytes / 4 && n < 4; ++n) printf(" %g", (double)((const float*)view.data)[n]);
      if (info.bytes / 4 > 4) printf(" ...");
    }
    printf("\n");
  }
  printf("%.3f ms (median of %d runs, %d threads)\n", times[runs / 2], runs, (int)hone_instance_threads(instance));
  free(times);
  hone_instance_free(instance);
  hone_module_free(module);
  return 0;
}
