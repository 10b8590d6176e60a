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

/* A program's own threads for one loop: one of its making, and the caller. */
typedef struct {
  int32_t tasks;
  void (*task)(void* argument, int32_t index);
  void* argument;
} Odd;
static void* run_odd(void* odd) {
  const Odd* of = (const Odd*)odd;
  int32_t i;
  for (i = 1; i < of->tasks; i += 2) of->task(of->argument, i);
  return NULL;
}
static void host_parallel_for(void* context, int32_t tasks, void (*task)(void* argument, int32_t index),
                              void* argument) {
  Odd odd = {tasks, task, argument};
  pthread_t thread;
  int32_t i;
  ++*(int*)context;
  REQUIRE(tasks == 3);
  REQUIRE(pthread_create(&thread, NULL, run_odd, &odd) == 0);
  for (i = 0; i < tasks; i += 2) task(argument, i);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

static void run_on_pool(const HoneModule* module, HoneThreadPool* pool, int32_t threads) {
  HoneInstanceOptions options = {.struct_size = sizeof(options), .pool = pool};
  HoneInstance* instances[2] = {NULL, NULL};
  int32_t a[16], y[16];
  int64_t a_shape[2] = {4, 4}, y_shape[1] = {16};
  DLTensor a_tensor = tensor_of(a, 2, a_shape), y_tensor = tensor_of(y, 1, y_shape);
  int n, i;
  options.threads = 1;
  REQUIRE(hone_instance_create(module, &options, &instances[0]) == HONE_INVALID_ARGUMENT);
  options.threads = 0;
  for (n = 0; n < 2; ++n) REQUIRE(hone_instance_create(module, &options, &instances[n]) == HONE_OK);
  hone_thread_pool_free(pool); /* the instances hold it alive */
  for (n = 0; n < 2; ++n) {
    REQUIRE(hone_instance_threads(instances[n]) == threads);
    for (i = 0; i < 16; ++i) a[i] = n + i;
    REQUIRE(hone_instance_set_input(instances[n], "a", &a_tensor) == HONE_OK);
    REQUIRE(hone_instance_run(instances[n]) == HONE_OK);
    REQUIRE(hone_instance_get_output(instances[n], "y", &y_tensor) == HONE_OK);
    for (i = 0; i < 16; ++i) REQUIRE(y[i] == 2 * (n + i) + 100 * i);
    hone_instance_free(instances[n]);
  }
}

static void use_thread_pools(const HoneModule* module) {
  int loops = 0;
  HoneThreadPool* pool = NULL;
  HoneThreadPoolOptions options = {.struct_size = sizeof(options), .threads = 3};
  REQUIRE(hone_thread_pool_create(&options, &pool) == HONE_OK);
  run_on_pool(module, pool, 3);
  options.parallel_for = host_parallel_for;
  options.context = &loops;
  REQUIRE(hone_thread_pool_create(&options, &pool) == HONE_OK);
  run_on_pool(module, pool, 3);
  REQUIRE(loops == 2); /* one in each run */
  pool = NULL;
  options.pin_threads = 1;
  REQUIRE(hone_thread_pool_create(&options, &pool) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "pin_threads is set with parallel_for") != NULL);
  options.parallel_for = NULL;
  options.threads = -1;
  REQUIRE(hone_thread_pool_create(&options, &pool) == HONE_INVALID_ARGUMENT);
  options.struct_size = 0;
  REQUIRE(hone_thread_pool_create(&options, &pool) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "set it to sizeof(HoneThreadPoolOptions)") != NULL);
  REQUIRE(hone_thread_pool_create(NULL, NULL) == HONE_INVALID_ARGUMENT);
  REQUIRE(pool == NULL);
  REQUIRE(hone_thread_pool_create(NULL, &pool) == HONE_OK);
  hone_thread_pool_free(pool);
  hone_thread_pool_free(NULL);
}

/* A run that begins stays under way until it is let go on. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int begun, let_go;
} Held;
static void held_parallel_for(void* context, int32_t tasks, void (*task)(void* argument, int32_t index),
                              void* argument) {
  Held* held = (Held*)context;
  int32_t i;
  pthread_mutex_lock(&held->mutex);
  held->begun = 1;
  pthread_cond_broadcast(&held->changed);
  while (!held->let_go) pthread_cond_wait(&held->changed, &held->mutex);
  pthread_mutex_unlock(&held->mutex);
  for (i = 0; i < tasks; ++i) task(argument, i);
}

typedef struct {
  HoneInstance* instance;
  int told; /* runs */
  int32_t y[16];
} Told;
static void read_and_run_again(void* context, HoneStatus status) {
  Told* told = (Told*)context;
  int64_t y_shape[1] = {16};
  DLTensor y_tensor = tensor_of(told->y, 1, y_shape);
  REQUIRE(status == HONE_OK);
  REQUIRE(!hone_instance_is_running(told->instance));
  REQUIRE(hone_instance_wait(told->instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(hone_instance_get_output(told->instance, "y", &y_tensor) == HONE_OK);
  if (++told->told < 3) REQUIRE(hone_instance_run_async(told->instance, read_and_run_again, told) == HONE_OK);
}
static void expect_no_input(void* context, HoneStatus status) {
  REQUIRE(status == HONE_INVALID_ARGUMENT && strstr(hone_last_error(), "`a`") != NULL);
  ++*(int*)context;
}

static void run_without_waiting(const HoneModule* module) {
  Held held = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
  HoneThreadPoolOptions pool_options = {sizeof(pool_options), 2, 0, held_parallel_for, &held};
  HoneThreadPool* pool = NULL;
  HoneInstanceOptions options = {.struct_size = sizeof(options)};
  HoneInstance* instance = NULL;
  HoneTensorInfo info = {.struct_size = sizeof(info)};
  HoneStepProfile profile = {.struct_size = sizeof(profile)};
  Told told = {NULL, 0, {0}};
  DLTensor view;
  int failed = 0, i;
  int32_t a[16];
  int64_t a_shape[2] = {4, 4};
  DLTensor a_tensor = tensor_of(a, 2, a_shape);
  for (i = 0; i < 16; ++i) a[i] = i;
  REQUIRE(hone_thread_pool_create(&pool_options, &pool) == HONE_OK);
  options.pool = pool;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_OK);
  hone_thread_pool_free(pool);

  REQUIRE(hone_instance_wait(instance) == HONE_OK);
  REQUIRE(hone_instance_run_async(instance, expect_no_input, &failed) == HONE_OK);
  REQUIRE(hone_instance_wait(instance) == HONE_INVALID_ARGUMENT && strstr(hone_last_error(), "`a`") != NULL);
  REQUIRE(failed == 1);

  REQUIRE(hone_instance_set_input(instance, "a", &a_tensor) == HONE_OK);
  REQUIRE(hone_instance_run_async(instance, NULL, NULL) == HONE_OK);
  pthread_mutex_lock(&held.mutex);
  while (!held.begun) pthread_cond_wait(&held.changed, &held.mutex);
  pthread_mutex_unlock(&held.mutex);
  REQUIRE(hone_instance_is_running(instance));
  REQUIRE(hone_instance_run(instance) == HONE_BUSY);
  REQUIRE(strstr(hone_last_error(), "is under way") != NULL);
  REQUIRE(hone_instance_run_async(instance, NULL, NULL) == HONE_BUSY);
  REQUIRE(hone_instance_set_input(instance, "a", &a_tensor) == HONE_BUSY);
  REQUIRE(hone_instance_bind_input(instance, "a", &a_tensor) == HONE_BUSY);
  REQUIRE(hone_instance_bind_output(instance, "y", &a_tensor) == HONE_BUSY);
  REQUIRE(hone_instance_output(instance, 0, &info) == HONE_BUSY);
  REQUIRE(hone_instance_get_output(instance, "y", &a_tensor) == HONE_BUSY);
  REQUIRE(hone_instance_view_output(instance, "y", &view) == HONE_BUSY);
  REQUIRE(hone_instance_step_profile(instance, 0, &profile) == HONE_BUSY);
  hone_instance_set_profiling(instance, 1); /* of the next run */
  pthread_mutex_lock(&held.mutex);
  held.let_go = 1;
  pthread_cond_broadcast(&held.changed);
  pthread_mutex_unlock(&held.mutex);
  REQUIRE(hone_instance_wait(instance) == HONE_OK);
  REQUIRE(!hone_instance_is_running(instance));
  REQUIRE(hone_instance_step_profile(instance, 0, &profile) == HONE_OK && profile.us == 0);

  told.instance = instance;
  REQUIRE(hone_instance_run_async(instance, read_and_run_again, &told) == HONE_OK);
  REQUIRE(hone_instance_wait(instance) == HONE_OK);
  REQUIRE(told.told == 3);
  for (i = 0; i < 16; ++i) REQUIRE(told.y[i] == 102 * i);
  REQUIRE(hone_instance_step_profile(instance, 0, &profile) == HONE_OK && profile.us > 0);
  told.told = 2;
  REQUIRE(hone_instance_run_async(instance, read_and_run_again, &told) == HONE_OK);
  hone_instance_free(instance); /* waits */
  REQUIRE(told.told == 3);
  REQUIRE(hone_instance_run_async(NULL, NULL, NULL) == HONE_INVALID_ARGUMENT);
  REQUIRE(hone_instance_wait(NULL) == HONE_INVALID_ARGUMENT);
  REQUIRE(!hone_instance_is_running(NULL));
}

static void* count_allocation(void* context, size_t size, size_t alignment) {
  void* memory = NULL;
  ++*(int*)context;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}
static void* allocate_nothing(void* context, size_t size, size_t alignment) {
  (void)context, (void)size, (void)alignment;
  return NULL;
}
static void count_release(void* context, void* memory, size_t size) {
  (void)size;
  --*(int*)context;
  free(memory);
}

static void use_an_allocator(const char* path) {
  int in_use = 0;
  HoneModule* module = NULL;
  HoneInstance* instance = NULL;
  HoneAllocator allocator = {sizeof(allocator), count_allocation, count_release, &in_use};
  HoneModuleOptions module_options = {.struct_size = sizeof(module_options), .allocator = &allocator};
  HoneInstanceOptions options = {.struct_size = sizeof(options), .allocator = &allocator};
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_OK);
  REQUIRE(in_use == 1);
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_OK);
  REQUIRE(in_use > 1);
  allocator.allocate = allocate_nothing; /* was copied */
  hone_instance_free(instance);
  REQUIRE(in_use == 1);
  instance = NULL;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_OUT_OF_MEMORY);
  REQUIRE(strstr(hone_last_error(), "the program's allocator returned NULL") != NULL);
  hone_module_free(module);
  REQUIRE(in_use == 0);
  module = NULL;
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_OUT_OF_MEMORY);
  REQUIRE(hone_module_open_memory("nonsense", 8, &module_options, &module) == HONE_CORRUPT);
  allocator.release = NULL;
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "needs both allocate and release") != NULL);
  allocator.struct_size = 1;
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "set it to sizeof(HoneAllocator)") != NULL);
  module_options.allocator = NULL;
  module_options.public_key = "";
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "public_key is empty") != NULL);
  module_options.struct_size = 1;
  REQUIRE(hone_module_open(path, &module_options, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(strstr(hone_last_error(), "set it to sizeof(HoneModuleOptions)") != NULL);
  REQUIRE(hone_module_open(NULL, NULL, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(hone_module_open_memory(NULL, 8, NULL, &module) == HONE_INVALID_ARGUMENT);
  REQUIRE(module == NULL);
}

/* What a program of the first release filled in of the options. */
#define FIRST_OPTIONS offsetof(HoneInstanceOptions, pool)

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
  options.struct_size = FIRST_OPTIONS - 1;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_INVALID_ARGUMENT);
  options.struct_size = (size_t)-1;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_INVALID_ARGUMENT);
  REQUIRE(instance == NULL);
  memset(&options, 1, sizeof(options)); /* nothing beyond what struct_size says is read */
  options.struct_size = FIRST_OPTIONS;
  options.threads = 1;
  options.pin_threads = 0;
  REQUIRE(hone_instance_create(module, &options, &instance) == HONE_OK);
  REQUIRE(hone_instance_threads(instance) == 1);
  hone_instance_free(instance);
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
  use_thread_pools(module);
  use_an_allocator(argv[1]);
  run_without_waiting(module);

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
