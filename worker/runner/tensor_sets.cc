#include "worker/runner/tensor_sets.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hone {
namespace {

// Whether its bytes are so many as memory has, and its elements can be counted (CopyTurned does).
bool IsSane(const KernelTensor& tensor) {
  constexpr int64_t kMax = int64_t{1} << 40;
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements)) return false;
  }
  return tensor.bytes >= 0 && tensor.bytes <= kMax;
}

// Seen from outside, a set must be sane: sizes that fit their shapes are the builder's promise, but not overflow.
RuntimeError CheckSizes(const KernelSet& set) {
  bool sane = set.num_outputs >= 1;
  for (const KernelTensor& param : set.params) sane &= IsSane(param);
  return sane ? RuntimeError() : RuntimeError(RuntimeCode::kInvalidArgument, "kernel set: sizes out of range");
}

RuntimeError MapTensors(int fd, const TensorFile& file, bool read_only, std::vector<FencedMemory>* memory,
                        std::vector<void*>* pointers) {
  for (const TensorPlace& place : file.places) {
    memory->emplace_back(fd, place.region_at, place.region_bytes, read_only);
    if (memory->back().data() == nullptr) return NoMemory("a tensor");
    pointers->push_back(memory->back().data() + (place.at - place.region_at));
  }
  return {};
}

}  // namespace

RuntimeError NoMemory(const char* what) { return {RuntimeCode::kOutOfMemory, std::string("no memory for ") + what}; }

RuntimeResult<std::string> ReadMemoryFile(int fd, const char* what) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size <= 0)
    return RuntimeError(RuntimeCode::kCorrupt, std::string(what) + " is empty");
  void* mapping = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) return NoMemory(what);
  std::string bytes(static_cast<const char*>(mapping), static_cast<size_t>(info.st_size));
  munmap(mapping, static_cast<size_t>(info.st_size));
  return bytes;
}

RuntimeResult<KernelSet> ReadKernelSet(int fd) {
  const RuntimeResult<std::string> bytes = ReadMemoryFile(fd, "the kernel set");
  if (!bytes.ok()) return bytes.error();
  KernelSet set;
  std::string why;
  if (!Parse(*bytes, &set, &why)) return RuntimeError(RuntimeCode::kCorrupt, why);
  if (RuntimeError error = CheckSizes(set)) return error;
  return set;
}

RuntimeResult<std::vector<TensorSet>> MapTensorSets(const KernelSet& set, int sets, int inputs_fd, int outputs_fd) {
  std::vector<TensorSet> mapped(static_cast<size_t>(sets));
  for (int s = 0; s < sets; ++s) {
    TensorSet& one = mapped[static_cast<size_t>(s)];
    const TensorFile inputs = LayOutSet(InputsOf(set), s, sets);
    const TensorFile outputs = LayOutSet(OutputsOf(set), s, sets);
    for (const auto& [fd, file] : {std::pair(inputs_fd, &inputs), std::pair(outputs_fd, &outputs)}) {
      struct stat info;
      if (fstat(fd, &info) != 0 ||
          static_cast<uint64_t>(info.st_size) < static_cast<uint64_t>(sets) * file->total_bytes)
        return RuntimeError(RuntimeCode::kInvalidArgument, "the memory file of the tensors is smaller than they are");
    }
    if (RuntimeError error = MapTensors(inputs_fd, inputs, true, &one.inputs, &one.originals)) return error;
    if (RuntimeError error = MapTensors(outputs_fd, outputs, false, &one.outputs, &one.originals)) return error;
  }
  return mapped;
}

void CopyTurned(const void* from, const KernelTensor& tensor, uint64_t turn, void* to) {
  const auto bytes = static_cast<size_t>(tensor.bytes);
  size_t elements = 1;
  for (const int64_t extent : tensor.shape) elements *= static_cast<size_t>(std::max<int64_t>(extent, 1));
  const size_t first = turn % elements * (bytes / elements);
  std::memcpy(to, static_cast<const char*>(from) + first, bytes - first);
  std::memcpy(static_cast<char*>(to) + (bytes - first), from, first);
}

}  // namespace hone
