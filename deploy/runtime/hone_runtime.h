/* The C interface of the Hone runtime: load a bundle made by `hone compile`, give it inputs, run it, read its outputs.
 *
 * Conventions
 *  - Functions that can fail return a HoneStatus; HONE_OK is 0. hone_last_error() then says what, where and why, in
 *    English, for the calling thread, until its next failing call. Results are written through pointers only on
 * HONE_OK.
 *  - Handles are opaque. What a *_load or *_create gives is freed by the matching *_free, which accepts NULL. An
 * instance holds its module alive, so the two may be freed in either order.
 *  - Strings and arrays that are returned belong to the module or instance and live as long as it does.
 *  - A module never changes and may be used from all threads at once. An instance has its own memory and threads and is
 *    used by one thread at a time; make one instance for each thread that runs the model.
 *  - Tensors are DLPack's DLTensor: device kDLCPU, contiguous row-major (strides NULL or saying the same), byte_offset
 *    honoured. Shapes and types must be exactly the model's. Where the model has symbolic sizes (HoneTensorInfo says
 *    which) the shapes of the inputs choose them, anew for every run, and those of the outputs follow.
 *  - Structures of options and of answers begin with `struct_size`, which the caller sets to sizeof of the structure:
 *    `HoneTensorInfo info = {.struct_size = sizeof(info)};`. Later releases add fields at the end, so programs and
 * runtimes of different releases agree: of an option the program does not know the runtime takes the zero; a field of
 * an answer that it does not know is zero; an option that the runtime does not know is refused unless it is zero.
 *  - hone_instance_run allocates nothing, opens nothing and takes no lock. Of a bundle for a device that is said of the
 *    host; tensors are the host's all the same, and copied. */
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
  HONE_DEVICE_LOST = 8 /* the device takes no more work of this process, or cannot be had */
} HoneStatus;

typedef struct HoneModule HoneModule;
typedef struct HoneInstance HoneInstance;

const char* hone_runtime_version(void);
const char* hone_last_error(void); /* never NULL; "" when no call of this thread has failed */

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

/* ---- instances: memory and threads to run a module with ---- */

typedef struct HoneInstanceOptions {
  size_t struct_size;
  int32_t threads;     /* the caller included; 0: what the bundle was tuned for, at most the CPUs allowed */
  int32_t pin_threads; /* not 0: each thread, the creating one included, on a CPU of its own */
} HoneInstanceOptions;

/* `options` may be NULL: zeros. With pin_threads, run the instance on the thread that created it. */
HoneStatus hone_instance_create(const HoneModule* module, const HoneInstanceOptions* options, HoneInstance** instance);
void hone_instance_free(HoneInstance* instance);
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

/* Copies the output into the caller's tensor. */
HoneStatus hone_instance_get_output(const HoneInstance* instance, const char* name, DLTensor* tensor);
/* A view of the output: valid until the instance is freed or the output bound anew, overwritten by the next run. */
HoneStatus hone_instance_view_output(const HoneInstance* instance, const char* name, DLTensor* view);

/* ---- profile ---- */

typedef struct HoneStepProfile {
  size_t struct_size;
  const char* name;   /* of the task, "conv2d_3" */
  const char* symbol; /* of its kernel */
  const char* record; /* the tuning record it was compiled from, "" when it has none */
  double us;          /* microseconds it took in the last run; 0 when that was not profiled */
  double recorded_us; /* what the tuner measured, 0 when it did not */
} HoneStepProfile;

/* While on, every run notes the time of each step (about 50 ns each). */
void hone_instance_set_profiling(HoneInstance* instance, int32_t on);
int32_t hone_instance_num_steps(const HoneInstance* instance);
HoneStatus hone_instance_step_profile(const HoneInstance* instance, int32_t index, HoneStepProfile* profile);

#ifdef __cplusplus
}
#endif
#endif
