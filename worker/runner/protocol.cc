#include "worker/runner/protocol.h"

#include <cstddef>

namespace hone {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAlignment = 64;

uint64_t RoundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

size_t ReplyBytes(const RunnerReply& reply) {
  return offsetof(RunnerReply, samples) + static_cast<size_t>(reply.num_samples) * sizeof(RunnerSample);
}

TensorFile LayOutTensors(std::span<const KernelTensor> tensors, bool start_aligned) {
  TensorFile file;
  for (const KernelTensor& tensor : tensors) {
    TensorPlace place;
    place.bytes = static_cast<uint64_t>(tensor.bytes);
    place.region_at = file.total_bytes;
    place.region_bytes = RoundUp(place.bytes == 0 ? 1 : place.bytes, kPage);
    place.at = place.region_at + (start_aligned ? 0 : place.region_bytes - RoundUp(place.bytes, kAlignment));
    file.total_bytes += place.region_bytes;
    file.places.push_back(place);
  }
  return file;
}

TensorFile LayOutSet(std::span<const KernelTensor> tensors, int set, int sets) {
  TensorFile file = LayOutTensors(tensors, sets > 1 && set == sets - 1);
  for (TensorPlace& place : file.places) {
    place.region_at += static_cast<uint64_t>(set) * file.total_bytes;
    place.at += static_cast<uint64_t>(set) * file.total_bytes;
  }
  return file;
}

std::span<const KernelTensor> InputsOf(const KernelSet& set) {
  return std::span(set.params).first(set.params.size() - static_cast<size_t>(set.num_outputs));
}
std::span<const KernelTensor> OutputsOf(const KernelSet& set) {
  return std::span(set.params).last(static_cast<size_t>(set.num_outputs));
}

}  // namespace hone
