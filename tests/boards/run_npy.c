/* Runs a bundle on arrays in NumPy's files, by the command line of `hone run`:
 *
 *     run_npy run MODEL.hone --input NAME=FILE.npy ... --output NAME=FILE.npy ...
 *
 * C and the runtime alone, so that it runs wherever a bundle does. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deploy/runtime/hone_runtime.h"

static void fail(const char* doing, const char* what) {
  fprintf(stderr, "run_npy: %s %s: %s\n", doing, what, hone_last_error());
  exit(1);
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

/* The format (NEP 1): "\x93NUMPY", version 1.0, two bytes with the length of the header, a dictionary that ends where
 * the elements begin, at a multiple of 64. */
static void read_npy(const char* path, void* data, int64_t bytes) {
  unsigned char start[10];
  FILE* file = fopen(path, "rb");
  if (file == NULL || fread(start, 1, sizeof(start), file) != sizeof(start)) fail("reading", path);
  if (memcmp(start, "\x93NUMPY\x01", 7) != 0 || fseek(file, start[8] | start[9] << 8, SEEK_CUR) != 0 ||
      fread(data, 1, (size_t)bytes, file) != (size_t)bytes || fgetc(file) != EOF) {
    fail("the header or the size of", path);
  }
  fclose(file);
}

static void write_npy(const char* path, const HoneTensorInfo* info, const void* data) {
  static const char kinds[] = {'i', 'u', 'f'}; /* by DLDataTypeCode */
  char header[512];
  int length, d;
  FILE* file = fopen(path, "wb");
  if (file == NULL || info->dtype.code > kDLFloat) fail("writing", path);
  length = snprintf(header, sizeof(header), "{'descr': '<%c%d', 'fortran_order': False, 'shape': (",
                    kinds[info->dtype.code], info->dtype.bits / 8);
  for (d = 0; d < info->ndim; ++d) {
    length += snprintf(header + length, sizeof(header) - (size_t)length, "%lld, ", (long long)info->shape[d]);
  }
  length += snprintf(header + length, sizeof(header) - (size_t)length, "), }");
  while ((10 + length + 1) % 64 != 0) header[length++] = ' ';
  header[length++] = '\n';
  fwrite("\x93NUMPY\x01", 1, 8, file); /* the minor version is the text's final zero */
  fputc(length & 0xFF, file);
  fputc(length >> 8, file);
  fwrite(header, 1, (size_t)length, file);
  if (fwrite(data, 1, (size_t)info->bytes, file) != (size_t)info->bytes || fclose(file) != 0) fail("writing", path);
}

/* Of the tensor that "NAME=FILE" names; returns the file. */
static const char* find(const HoneModule* module, int output, char* argument, HoneTensorInfo* info) {
  char* const equals = strchr(argument, '=');
  const int count = output ? hone_module_num_outputs(module) : hone_module_num_inputs(module);
  int i;
  if (equals != NULL) *equals = '\0';
  for (i = 0; equals != NULL && i < count; ++i) {
    if ((output ? hone_module_output(module, i, info) : hone_module_input(module, i, info)) != HONE_OK) break;
    if (strcmp(info->name, argument) == 0) return equals + 1;
  }
  fprintf(stderr, "run_npy: no tensor %s\n", argument);
  exit(2);
}

int main(int argc, char** argv) {
  HoneModule* module = NULL;
  HoneInstance* instance = NULL;
  int pass, i;
  if (argc < 3 || strcmp(argv[1], "run") != 0) return 2;
  if (hone_module_load(argv[2], &module) != HONE_OK) fail("loading", argv[2]);
  if (hone_instance_create(module, NULL, &instance) != HONE_OK) fail("an instance of", argv[2]);
  for (pass = 0; pass < 2; ++pass) { /* the inputs, then the outputs */
    for (i = 3; i + 1 < argc; i += 2) {
      HoneTensorInfo info = {.struct_size = sizeof(info)};
      DLTensor tensor;
      const char* file;
      if (strcmp(argv[i], pass == 0 ? "--input" : "--output") != 0) continue;
      file = find(module, pass, argv[i + 1], &info);
      if (pass == 0) {
        void* data = malloc((size_t)info.bytes + 1);
        if (data == NULL) return 1;
        read_npy(file, data, info.bytes);
        tensor = tensor_of(&info, data);
        if (hone_instance_set_input(instance, info.name, &tensor) != HONE_OK) fail("setting", info.name);
        free(data);
      } else {
        if (hone_instance_view_output(instance, info.name, &tensor) != HONE_OK) fail("reading", info.name);
        write_npy(file, &info, tensor.data);
      }
    }
    if (pass == 0 && hone_instance_run(instance) != HONE_OK) fail("running", argv[2]);
  }
  hone_instance_free(instance);
  hone_module_free(module);
  return 0;
}
