/* A user's program: C, the header alone, the runtime alone. Loads the bundle that sample_bundle.h describes, runs it in
 * every way the interface offers, and prints "ok". */
#include "deploy/runtime/hone_runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                                \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "line %d: %s is false; last error: %s\n", __LINE__, #condition, hone_last_error()); \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

static DLTensor tensor_of(void* data, int ndim, int64_t* shape) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = ndim;
  tensor.dtype.code = kDLInt;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static void* run_many(void* module) {
  HoneInstance* instance = NULL;
  HoneInstanceOptions options = {sizeof(options), 1, 0};
  int32_t a[16], y[16];
  int64_t a_shape[2] = {4, 4}, y_shape[1] = {16};
  DLTensor a_tensor = tensor_of(a, 2, a_shape), y_tensor = tensor_of(y, 1, y_shape);
  int round, i;
  REQUIRE(hone_instance_create((HoneModule*)module, &options, &instance) == HONE_OK);
  for (round = 0; round < 200; ++round) {
    for (i = 0; i < 16; ++i) a[i] = round * i;
    REQUIRE(hone_instance_set_input(instance, "a", &a_tensor) == HONE_OK);
    REQUIRE(hone_instance_run(instance) == HONE_OK);
    REQUIRE(hone_instance_get_output(instance, "y", &y_tensor) == HONE_OK);
    for (i = 0; i < 16; ++i) REQUIRE(y[i] == 2 * round * i + 100 * i);
  }
  hone_instance_free(instance);
  return NULL;
}

/* Structures as a later release may have them. */
typedef struct {
  HoneInstanceOptions known;
  int32_t later[2];
} LaterOptions;
typedef struct {
  HoneTensorInfo known;
  int64_t later;
} LaterInfo;

static void use_other_releases(const HoneModule* module) {
  HoneInstance* instance = NULL;
  HoneTensorInfo info = {0};
  HoneStepProfile profile = {0};
  HoneInstanceOptions options = {0};
  LaterOptions later_options = {{sizeof(later_options), 1, 0}, {0, 0}};
  LaterInfo later_info;
  memset(&later_info, 1, sizeof(later_info));
  later_info.known.struct_size = sizeof(later_info);
  REQUIRE(hone_module_input(module, 0, &later_info.known) == HONE_OK);
  REQUIRE(strcmp(later_info.known.name, "a") == 0 && later_info.known.bytes == 64 && later_info.later == 0);
  REQUIRE(later_info.known.struct_size == sizeof(later_info));
  REQUIRE(hone_instance_create(module, &later_options.known, &instance) == HONE_OK);
  REQUIRE(hone_instance_threads(instance) == 1);
  REQUIRE(hone_instance_step_profile(instance, 0, &profile) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "set it to sizeof(HoneStepProfile)") != NULL);
  hone_instance_free(instance);
  instance = NULL;
  later_options.later[1] = 1;
  REQUIRE(hone_instance_create(module, &later_options.known, &instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "options of a later release") != NULL);
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "struct_size is 0; set it to sizeof(HoneInstanceOptions)") != NULL);
  options.struct_size = sizeof(options) - 1;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_INVALID_ARGUMENT);
  options.struct_size = (size_t)-1;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(instance == NULL);
  REQUIRE(hone_module_input(module, 0, &info) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "set it to sizeof(HoneTensorInfo)") != NULL);
}

int main(int argc, char** argv) {
  HoneModule* module = NULL;
  HoneInstance* instance = NULL;
  HoneTensorInfo info = {.struct_size = sizeof(info)};
  HoneStepProfile profile = {.struct_size = sizeof(profile)};
  DLTensor view;
  int32_t a[16], z[16];
  int64_t a_shape[2] = {4, 4}, wrong_shape[2] = {4, 5}, z_shape[2] = {2, 8}, strides[2] = {1, 4};
  DLTensor a_tensor = tensor_of(a, 2, a_shape), z_tensor = tensor_of(z, 2, z_shape);
  DLTensor wrong = tensor_of(a, 2, wrong_shape);
  void* aligned = NULL;
  int i;

  REQUIRE(argc == 2);
  REQUIRE(strcmp(hone_last_error(), "") == 0);
  REQUIRE(hone_module_load("/no/such/file", &module) == HONE_NOT_FOUND);
  REQUIRE(strstr(hone_last_error(), "/no/such/file") != NULL);
  REQUIRE(hone_module_load_memory("nonsense", 8, &module) == HONE_CORRUPT);
  REQUIRE(hone_module_load(NULL, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(module == NULL);
  REQUIRE(hone_module_load_signed(argv[1], NULL, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(hone_module_load_signed(argv[1], "", &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(module == NULL);
  REQUIRE(hone_module_load(argv[1], &module) == HONE_OK);
  use_other_releases(module);

  REQUIRE(hone_module_num_inputs(module) == 1 && hone_module_num_outputs(module) == 2);
  REQUIRE(hone_module_input(module, 0, &info) == HONE_OK);
  REQUIRE(strcmp(info.name, "a") == 0 && strcmp(info.dtype_name, "int32") == 0);
  REQUIRE(info.dtype.code == kDLInt && info.dtype.bits == 32 && info.ndim == 2 && info.shape[1] == 4 &&
          info.bytes == 64);
  REQUIRE(hone_module_output(module, 1, &info) == HONE_OK && strcmp(info.name, "z") == 0);
  REQUIRE(hone_module_output(module, 2, &info) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_module_manifest(module), "sample") != NULL);

  REQUIRE(hone_instance_create(module, NULL, &instance) == HONE_OK);
  REQUIRE(hone_instance_threads(instance) >= 1);
  REQUIRE(hone_instance_run(instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "`a`") != NULL);
  REQUIRE(hone_instance_set_input(instance, "b", &a_tensor) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "it has `a`") != NULL);
  REQUIRE(hone_instance_set_input(instance, "a", &wrong) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "(4, 4)") != NULL && strstr(hone_last_error(), "(4, 5)") != NULL);
  wrong = a_tensor;
  wrong.dtype.code = kDLFloat;
  REQUIRE(hone_instance_set_input(instance, "a", &wrong) == HONE_INVALID_ARGUMENT);
  wrong = a_tensor;
  wrong.strides = strides;
  REQUIRE(hone_instance_set_input(instance, "a", &wrong) == HONE_INVALID_ARGUMENT);
  wrong.data = NULL;
  wrong.strides = NULL;
  REQUIRE(hone_instance_set_input(instance, "a", &wrong) == HONE_INVALID_ARGUMENT);
  REQUIRE(hone_instance_set_input(instance, "a", NULL) == HONE_INVALID_ARGUMENT);

  for (i = 0; i < 16; ++i) a[i] = i;
  REQUIRE(hone_instance_set_input(instance, "a", &a_tensor) == HONE_OK);
  hone_instance_set_profiling(instance, 1);
  REQUIRE(hone_instance_run(instance) == HONE_OK);
  REQUIRE(hone_instance_view_output(instance, "y", &view) == HONE_OK);
  REQUIRE(view.ndim == 1 && view.shape[0] == 16);
  for (i = 0; i < 16; ++i) REQUIRE(((const int32_t*)view.data)[i] == 102 * i);
  REQUIRE(hone_instance_get_output(instance, "z", &z_tensor) == HONE_OK);
  for (i = 0; i < 16; ++i) REQUIRE(z[i] == i);
  REQUIRE(hone_instance_num_steps(instance) == 2);
  REQUIRE(hone_instance_step_profile(instance, 0, &profile) == HONE_OK);
  REQUIRE(strcmp(profile.name, "add_w") == 0 && strcmp(profile.record, "r-17") == 0);
  REQUIRE(profile.us > 0 && profile.recorded_us == 1.5);

  REQUIRE(posix_memalign(&aligned, 64, 128) == 0);
  memset(aligned, 0, 128);
  a_tensor.data = aligned;
  a_tensor.byte_offset = 4;
  REQUIRE(hone_instance_bind_input(instance, "a", &a_tensor) == HONE_INVALID_ARGUMENT);
  a_tensor.byte_offset = 64;
  REQUIRE(hone_instance_bind_input(instance, "a", &a_tensor) == HONE_OK);
  ((int32_t*)aligned)[16] = 7;
  REQUIRE(hone_instance_run(instance) == HONE_OK);
  REQUIRE(hone_instance_view_output(instance, "y", &view) == HONE_OK);
  REQUIRE(((const int32_t*)view.data)[0] == 14);
  for (i = 0; i < 16; ++i) a[i] = 100 + i; /* set after bind: the bound memory is the caller's and stays as it is */
  a_tensor = tensor_of(a, 2, a_shape);
  REQUIRE(hone_instance_set_input(instance, "a", &a_tensor) == HONE_OK);
  REQUIRE(((const int32_t*)aligned)[16] == 7);
  REQUIRE(hone_instance_run(instance) == HONE_OK);
  REQUIRE(hone_instance_view_output(instance, "y", &view) == HONE_OK);
  REQUIRE(((const int32_t*)view.data)[0] == 200);

  {
    pthread_t threads[4];
    for (i = 0; i < 4; ++i) REQUIRE(pthread_create(&threads[i], NULL, run_many, module) == 0);
    for (i = 0; i < 4; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  }
  hone_module_free(module); /* the instance holds it alive */
  REQUIRE(hone_instance_run(instance) == HONE_OK);
  hone_instance_free(instance);
  hone_instance_free(NULL);
  hone_module_free(NULL);
  free(aligned);
  puts("ok");
  return 0;
}
