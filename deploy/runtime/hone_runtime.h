/* The C interface of the Hone runtime: load a bundle made by `hone compile`, give it inputs, run it, read its outputs.
 *
 * Conventions
 *  - Functions that can fail return a HoneStatus; HONE_OK is 0. hone_last_error() then says what, where and why, in
 *    English, for the calling thread, until its next failing call. Results are written through pointers only on
 * HONE_OK.
 *  - Handles are opaque. What a *_load, *_open or *_create gives is freed by the matching *_free, which accepts NULL.
 * An instance holds its module and its thread pool alive, so they may be freed in any order.
 *  - Strings and arrays that are returned belong to the module or instance and live as long as it does.
 *  - A module or thread pool never changes and may be used from all threads at once. An instance has its own memory and
 *    is used by one thread at a time; make one instance for each thread that runs the model.
 *  - Tensors are DLPack's DLTensor: device kDLCPU, contiguous row-major (strides NULL or saying the same), byte_offset
 *    honoured. Shapes and types must be exactly the model's. Where the model has symbolic sizes (HoneTensorInfo says
 *    which) the shapes of the inputs choose them, anew for every run, and those of the outputs follow.
 *  - Structures of options and of answers begin with `struct_size`, which the caller sets to sizeof of the structure:
 *    `HoneTensorInfo info = {.struct_size = sizeof(info)};`. Later releases add fields at the end, so programs and
 * runtimes of different releases agree: of an option the program does not know the runtime takes the zero; a field of
 * an answer that it does not know is zero; an option that the runtime does not know is refused unless it is zero.
 *  - hone_instance_run allocates nothing, opens nothing and takes no lock but that of a pool that it shares. Of a
 * bundle for a device that is said of the host; tensors are the host's all the same, and copied. */
#ifndef HONE_DEPLOY_RUNTIME_HONE_RUNTIME_H_
#define HONE_DEPLOY_RUNTIME_HONE_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack 0.6's structures. A program that uses dlpack.h as well includes it before this header. */
#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int device_id;
} DLDevice;
typedef enum { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U, kDLComplex = 5U, kDLBool = 6U } DLDataTypeCode;
typedef struct {
  uint8_t code;
  uint8_t bits; /* 8 for a bool */
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} DLTensor;
#endif

typedef enum HoneStatus {
  HONE_OK = 0,
  HONE_INVALID_ARGUMENT = 1, /* unknown name, wrong shape or type, NULL where a value is needed */
  HONE_NOT_FOUND = 2,        /* no such file */
  HONE_CORRUPT = 3,          /* not a bundle, truncated, damaged, or not what the key's holder signed */
  HONE_UNSUPPORTED = 4,      /* this machine cannot run it; the message says what is missing */
  HONE_OUT_OF_MEMORY = 5,
  HONE_KERNEL_FAILED = 6,
  HONE_INTERNAL = 7,
  HONE_DEVICE_LOST = 8, /* the device takes no more work of this process, or cannot be had */
  HONE_BUSY = 9         /* a run of the instance is under way */
} HoneStatus;

typedef struct HoneModule HoneModule;
typedef struct HoneThreadPool HoneThreadPool;
typedef struct HoneInstance HoneInstance;

const char* hone_runtime_version(void);
const char* hone_last_error(void); /* never NULL; "" when no call of this thread has failed */

/* ---- memory ---- */

/* The program's memory in place of the system's for what grows with the model: constants, tensors and scratch. (Code,
 * a device's memory and what is small are not asked for here.) Never called by a run, but by the thread that loads,
 * creates or frees; `context` is needed until the last module or instance that was made with it is freed. */
typedef struct HoneAllocator {
  size_t struct_size;
  /* At least `size` bytes from a multiple of `alignment` (64) on; NULL makes the call HONE_OUT_OF_MEMORY. Constants are
   * read fastest from huge pages, as the system's are: through small ones some models take up to twice the time. */
  void* (*allocate)(void* context, size_t size, size_t alignment);
  void (*release)(void* context, void* memory, size_t size); /* `size` as it was asked for */
  void* context;
} HoneAllocator;

/* ---- modules: a loaded bundle ---- */

/* Reads the file: it is not needed afterwards, and must not be changed meanwhile (replace it by rename, as `hone
   compile` does). */
HoneStatus hone_module_load(const char* path, HoneModule** module);
/* Copies the bytes. */
HoneStatus hone_module_load_memory(const void* bytes, size_t size, HoneModule** module);
/* The same of a bundle that `hone compile --sign` signed. `public_key` is PEM text, as `openssl pkey -pubout` writes
   it. Nothing of the bundle is used before its signature was checked, by the system's libcrypto: HONE_UNSUPPORTED where
   it is not there. */
HoneStatus hone_module_load_signed(const char* path, const char* public_key, HoneModule** module);
HoneStatus hone_module_load_memory_signed(const void* bytes, size_t size, const char* public_key, HoneModule** module);

typedef struct HoneModuleOptions {
  size_t struct_size;
  const char* public_key;         /* PEM text, as above; NULL: the bundle need not be signed */
  const HoneAllocator* allocator; /* of the constants; NULL: the system's memory */
} HoneModuleOptions;

/* The same with options, from a file or from bytes that are copied. `options` may be NULL: zeros. */
HoneStatus hone_module_open(const char* path, const HoneModuleOptions* options, HoneModule** module);
HoneStatus hone_module_open_memory(const void* bytes, size_t size, const HoneModuleOptions* options,
                                   HoneModule** module);
void hone_module_free(HoneModule* module);

typedef struct HoneTensorInfo {
  size_t struct_size;
  const char* name;
  DLDataType dtype;
  const char* dtype_name; /* "float32" */
  int32_t ndim;
  const int64_t* shape;          /* where sizes are symbolic, the greatest */
  int64_t bytes;                 /* of `shape` */
  const int64_t* least_shape;    /* the same as `shape` but for symbolic sizes */
  const char* const* size_names; /* of each dimension: "" or, of one that follows from symbolic sizes, "batch * 12" */
} HoneTensorInfo;

int32_t hone_module_num_inputs(const HoneModule* module);
int32_t hone_module_num_outputs(const HoneModule* module);
HoneStatus hone_module_input(const HoneModule* module, int32_t index, HoneTensorInfo* info);
HoneStatus hone_module_output(const HoneModule* module, int32_t index, HoneTensorInfo* info);
/* JSON: model, target, CPU features, numeric level, threads, and for every kernel where it came from. */
const char* hone_module_manifest(const HoneModule* module);

/* ---- thread pools that instances share ---- */

typedef struct HoneThreadPoolOptions {
  size_t struct_size;
  int32_t threads;     /* the caller of a run included; 0: as many as CPUs are allowed */
  int32_t pin_threads; /* not 0: each thread but the callers on a CPU of its own, the first allowed one left to them */
  /* The program's own threads in place of the runtime's, or NULL: calls task(argument, index) once for every index from
   * 0 to tasks - 1, on threads and in an order of its choice, and returns when all have returned. `tasks` is at most
   * `threads`. Several runs may call it at once. It must not throw or jump out. */
  void (*parallel_for)(void* context, int32_t tasks, void (*task)(void* argument, int32_t index), void* argument);
  void* context;
} HoneThreadPoolOptions;

/* `options` may be NULL: zeros. Runs of instances that share a pool take turns, in the order in which they came, each
 * with all its threads; on the program's own threads none waits for another. Instances for a device use no pool. */
HoneStatus hone_thread_pool_create(const HoneThreadPoolOptions* options, HoneThreadPool** pool);
void hone_thread_pool_free(HoneThreadPool* pool); /* its threads end with the last instance that uses it */

/* ---- functions of the program ---- */

#define HONE_FUNCTION_ERROR_BYTES 512

/* A function of the program's that models call by its name, in place of a kernel; the manifest lists those that a model
 * needs under "functions". */
typedef struct HoneFunction {
  size_t struct_size;
  const char* name; /* as the model has it: "env.linear" */
  /* Reads the inputs and fills in the outputs; both lie in memory of the instance's, or bound to it, and are the
   * function's until it returns. Returns 0, or another number when it has failed, and may then write why into `error`,
   * a text that fits into HONE_FUNCTION_ERROR_BYTES: the run ends with HONE_KERNEL_FAILED and says so. An instance
   * calls its functions one after the other, on the thread that runs it. It must not use that instance, throw or jump
   * out. */
  int32_t (*call)(void* context, const DLTensor* inputs, int32_t num_inputs, const DLTensor* outputs,
                  int32_t num_outputs, char* error);
  void* context; /* needed until the last instance that was made with it is freed */
} HoneFunction;

/* ---- instances: memory and threads to run a module with ---- */

typedef struct HoneInstanceOptions {
  size_t struct_size;
  int32_t threads;                /* the caller included; 0: what the bundle was tuned for, at most the CPUs allowed */
  int32_t pin_threads;            /* not 0: each thread, the creating one included, on a CPU of its own */
  HoneThreadPool* pool;           /* its threads, and the two above are 0; NULL: threads of the instance's own */
  const HoneAllocator* allocator; /* of tensors and scratch; NULL: the system's memory */
  const HoneFunction* functions;  /* an array with those that the model calls, and any others */
  size_t num_functions;
} HoneInstanceOptions;

/* `options` may be NULL: zeros. HONE_INVALID_ARGUMENT names functions that the model calls and the options lack. With
 * pin_threads, run the instance on the thread that created it, or by hone_instance_run_async. */
HoneStatus hone_instance_create(const HoneModule* module, const HoneInstanceOptions* options, HoneInstance** instance);
void hone_instance_free(HoneInstance* instance); /* waits for a run that is under way, and its callback */
int32_t hone_instance_threads(const HoneInstance* instance);
/* An output as the next run makes it: its shape follows from the inputs, which are set or bound before. The shape lives
 * until inputs of another shape are set. */
HoneStatus hone_instance_output(HoneInstance* instance, int32_t index, HoneTensorInfo* info);

/* Copies the tensor, into the instance's own memory: what was bound before is left as it is and used no more. */
HoneStatus hone_instance_set_input(HoneInstance* instance, const char* name, const DLTensor* tensor);
/* Uses the caller's memory from now on, without a copy: 64-byte aligned, alive and unmoved until it is bound anew. An
 * input is not written. A bound output is written by every run, and must not overlap any other tensor. */
HoneStatus hone_instance_bind_input(HoneInstance* instance, const char* name, const DLTensor* tensor);
HoneStatus hone_instance_bind_output(HoneInstance* instance, const char* name, const DLTensor* tensor);

/* Every input must have been set or bound once. */
HoneStatus hone_instance_run(HoneInstance* instance);

/* What came of a run, when it is over; called on a thread of the instance's, where hone_last_error says why it failed.
 * The instance is free again: the callback may read outputs, set inputs, start the next run, or free the instance as
 * the last thing that it does. It must not throw or jump out. */
typedef void (*HoneRunCallback)(void* context, HoneStatus status);

/* Starts a run and returns. `callback` may be NULL; it is called exactly where this returns HONE_OK. One run of an
 * instance at a time, on a thread that the first one starts: until it is over the instance, with the memory that is
 * bound, belongs to it, and whatever else uses the instance is HONE_BUSY (hone_instance_free waits). */
HoneStatus hone_instance_run_async(HoneInstance* instance, HoneRunCallback callback, void* context);
/* Until no run is under way and callbacks have returned; then what came of the last run that was started so, HONE_OK
 * where there was none. Refused in a callback. */
HoneStatus hone_instance_wait(HoneInstance* instance);
int32_t hone_instance_is_running(const HoneInstance* instance); /* 0 once the run is over */

/* Copies the output into the caller's tensor. */
HoneStatus hone_instance_get_output(const HoneInstance* instance, const char* name, DLTensor* tensor);
/* A view of the output: valid until the instance is freed or the output bound anew, overwritten by the next run. */
HoneStatus hone_instance_view_output(const HoneInstance* instance, const char* name, DLTensor* view);

/* ---- profile ---- */

typedef struct HoneStepProfile {
  size_t struct_size;
  const char* name;   /* of the task, "conv2d_3", or of the program's function */
  const char* symbol; /* of its kernel, "" for a function */
  const char* record; /* the tuning record it was compiled from, "" when it has none */
  double us;          /* microseconds it took in the last run, on a device by its clock; 0 when that was not profiled */
  double recorded_us; /* what the tuner measured, 0 when it did not */
} HoneStepProfile;

/* While on, every run that begins notes the time of each step (about 50 ns each). */
void hone_instance_set_profiling(HoneInstance* instance, int32_t on);
int32_t hone_instance_num_steps(const HoneInstance* instance);
HoneStatus hone_instance_step_profile(const HoneInstance* instance, int32_t index, HoneStepProfile* profile);

#ifdef __cplusplus
}
#endif
#endif
