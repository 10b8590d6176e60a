// A bundle as the runtime sees it: kernels, an execution plan with every tensor placed, packed constants.
//
// A bundle is an archive (archive.h) with these members, in any order:
//
//   manifest.json   for people and tools: model, target, numeric level, threads, provenance of every kernel
//   graph.json      the execution plan, see below
//   image, image1.. kernel images (image.h); usually the first holds all
//   source, ..      of a bundle for a device in place of images: kernels as the device's driver takes them: as text of
//                   OpenCL C that it compiles, as machine code of NVIDIA's (cubin)
//   params          packed constants, each 64-byte aligned; absent when there are none
//   signature       of a signed bundle (signature.h)
//
// graph.json, version 1:
//
//   { "version": 1, "model": NAME, "target": TEXT, "features": "avx2,fma", "threads": N,
//     "arena_bytes": N,
//     "tensors": [ {"name": .., "region": "arena" | "params", "offset": N, "bytes": N} ],
//     "inputs" and "outputs": [ {"name": .., "dtype": "float32", "shape": [..], "tensor": I} ],
//     "kernels": [ {"name": TASK, "image": I, "symbol": .., "tensor_bytes": [..], "scratch_bytes": N,
//                   "thread_scratch_bytes": N, "record": ID, "recorded_us": X} ],
//     "steps": [ {"kernel": I, "tensors": [I ..]} ],
//     "copies": [ {"from": I, "to": I} ] }
//
// Offsets are multiples of 64. Steps run in order, then the copies. Two tensors whose lives do not meet may share bytes
// of the arena; those of one step never do.
//
// Version 2, of a bundle for a device, has further fields:
//
//   "device": "opencl"       or "cuda": what runs the kernels (OpenDevice of "target"); tensors lie in its memory, at
//                            multiples of kDeviceAlignment
//   and of each kernel       "image" counts sources
//     "scratch": [ {"offset": N, "bytes": N} ]       areas of scratch_bytes
//     "launches": [ {"kernel": .., "grid": [X, Y, Z], "block": [X, Y, Z], "arguments": [I ..], "shared": N} ]
//
// The launches of a step run in order. An argument counts the step's tensors, then the kernel's areas of scratch.
// "shared" is there where the launch gives a block shared memory beyond what the kernel declares.
//
// Version 3, of a bundle with symbolic sizes (for the host alone), has further fields:
//
//   "sizes": [ {"name": .., "min": N, "max": N} ]
//   and of an input or output   "extents": [ [[F, S ..] ..] .. ]    its dimensions: sums of a factor times sizes
//   and of a kernel             "sizes": [S ..]                     what it takes in HoneCall::dims
//   and of a step               "cases": [ {"most": [N ..], "kernel": I, "tensors": [I ..]} ]
//
// "shape" is then that of the greatest sizes. Where a dimension of an input is a size by itself, the input gives that
// size. Tensors have room for the greatest sizes; their rows are as long as those of the run. A step runs as the first
// of its cases says that the sizes do not exceed, else with its own kernel.
//
// Version 4, of a bundle (for the host alone, without symbolic sizes) that calls functions of the program that runs it,
// has steps of another form among those with a kernel:
//
//   {"function": NAME, "arguments": [ {"dtype": .., "shape": [..]} ], "outputs": N, "tensors": [I ..]}
//
// An argument says what the tensor in its place is; the function writes the last N of them. Streams will be further
// fields and a higher version.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/bundle/sizes.h"
#include "deploy/runtime/devices/device.h"
#include "deploy/runtime/error.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/image/kernel_set.h"

namespace hone {

inline constexpr int64_t kGraphVersion = 4;
inline constexpr int64_t kDeviceAlignment = Device::kPartAlignment;

struct BundleTensor {
  enum Region : uint8_t { kArena, kParams };
  std::string name;
  Region region = kArena;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct BundlePort {  // an input or output of the model
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;  // the greatest
  int tensor = 0;
  std::vector<BundleExtent> extents = {};  // of each dimension; none where no size is symbolic
};

struct BundleKernel {
  std::string name;  // of the task, for people
  int image = 0;
  std::string symbol;
  std::vector<int64_t> tensor_bytes;  // of each parameter
  int64_t scratch_bytes = 0;
  int64_t thread_scratch_bytes = 0;
  std::string record;  // "" when it was not tuned
  double recorded_us = 0;
  std::vector<ScratchArea> scratch;  // of a device
  std::vector<KernelLaunch> launches;
  std::vector<int> sizes = {};  // of the bundle's: HoneCall::dims
};

// How a step runs where no size of the bundle exceeds `most`.
struct BundleCase {
  std::vector<int64_t> most;
  int kernel = 0;
  std::vector<int> tensors;
};

struct BundleArgument {
  std::string dtype;
  std::vector<int64_t> shape;
};

// A run of a kernel, or a call of a function of the program's.
struct BundleStep {
  int kernel = 0;  // -1: a call
  std::vector<int> tensors;
  std::vector<BundleCase> cases = {};  // the first that fits counts
  // Of a call:
  std::string function = {};
  std::vector<BundleArgument> arguments = {};  // one for each of the tensors
  int outputs = 0;                             // the last ones, which it writes
  bool is_call() const { return kernel < 0; }
};

struct BundleCopy {
  int from = 0, to = 0;
};

struct BundleGraph {
  std::string model, target, features;
  std::string device;  // "opencl", "cuda"; "" where the kernels are functions of the host
  int threads = 0;     // what it was tuned for; 0: any
  int64_t arena_bytes = 0;
  std::vector<BundleTensor> tensors;
  std::vector<BundlePort> inputs, outputs;
  std::vector<BundleKernel> kernels;
  std::vector<BundleStep> steps;
  std::vector<BundleCopy> copies;
  std::vector<BundleSize> sizes = {};  // symbolic ones
};

// graph.json. ParseGraph checks every index, offset and size against each other, and `params_bytes` and `images`: how
// many images there are, or sources.
std::string ToJson(const BundleGraph& graph);
RuntimeResult<BundleGraph> ParseGraph(std::string_view json, int64_t params_bytes, int images);

// Bytes of one element, a bool takes one; 0 when the text is not the name of a type.
int64_t DTypeBytes(std::string_view dtype);

// What the C interface says of the sizes of an input or output, in the form in which it does.
struct PortSizes {
  std::vector<int64_t> least;
  std::vector<std::string> texts;       // "" for a dimension without symbolic sizes
  std::vector<const char*> names = {};  // `texts`
};

// A loaded bundle: immutable, used by any number of threads.
class Bundle {
 public:
  // Reads the file, of which nothing is used afterwards: constants are copied into memory of huge pages, since reading
  // them through a file's small ones costs a large model some per cent of its time; a program's allocator gives what
  // pages it likes, and its context outlives the bundle. kNotFound, kCorrupt, kUnsupported (says which CPU features are
  // missing), kOutOfMemory. With a public key, what CheckSignature (signature.h) says of the members comes before
  // anything else is done with them.
  static RuntimeResult<std::shared_ptr<const Bundle>> Open(const std::string& path, std::string_view public_key = {},
                                                           const Allocator& allocator = {});
  static RuntimeResult<std::shared_ptr<const Bundle>> FromMemory(std::string_view bytes,  // copies them
                                                                 std::string_view public_key = {},
                                                                 const Allocator& allocator = {});

  Bundle(const Bundle&) = delete;

  const BundleGraph& graph() const { return graph_; }
  const std::string& manifest() const { return manifest_; }
  const char* params() const { return params_.data(); }
  HoneKernelFn kernel(int i) const { return functions_[i]; }  // where graph().device is ""
  const std::vector<std::string>& sources() const { return sources_; }
  // `port`: one of the graph's.
  const PortSizes& sizes_of(const BundlePort& port) const { return port_sizes_.at(&port); }

 private:
  Bundle() = default;
  RuntimeError Init(std::string_view file, std::string_view public_key, const Allocator& allocator);

  std::string manifest_;
  BundleGraph graph_;
  AlignedBuffer params_;
  std::vector<Image> images_;
  std::vector<std::string> sources_;
  std::vector<HoneKernelFn> functions_;
  std::map<const BundlePort*, PortSizes> port_sizes_;
};

}  // namespace hone
