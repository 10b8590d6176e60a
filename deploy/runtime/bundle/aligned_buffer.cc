#include "deploy/runtime/bundle/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace hone {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{256} << 10;

char* SystemMemory(size_t bytes) {
  const bool huge = bytes >= kHugeFrom;
  const size_t alignment = huge ? kHugePage : kTensorAlignment;
  const size_t whole = AlignUp(bytes, alignment);
  char* data = static_cast<char*>(std::aligned_alloc(alignment, whole));
  // Advice: without it, small pages work as well.
  if (huge && data != nullptr) madvise(data, whole, MADV_HUGEPAGE);
  return data;
}

}  // namespace

void AlignedBuffer::Release::operator()(char* data) const {
  if (allocator.allocate == nullptr) return std::free(data);
  allocator.release(allocator.context, data, bytes);
}

AlignedBuffer::AlignedBuffer(size_t bytes, const Allocator& allocator) : size_(bytes) {
  if (bytes > (size_t{1} << 62)) return;
  const size_t whole = AlignUp(bytes == 0 ? 1 : bytes);
  char* data = allocator.allocate == nullptr
                   ? SystemMemory(whole)
                   : static_cast<char*>(allocator.allocate(allocator.context, whole, kTensorAlignment));
  data_ = {data, Release{allocator, whole}};
  if (reinterpret_cast<uintptr_t>(data) % kTensorAlignment != 0) data_.reset();
}

RuntimeError Allocate(size_t bytes, const char* what, const Allocator& allocator, AlignedBuffer* buffer) {
  *buffer = AlignedBuffer(bytes, allocator);
  if (buffer->data() != nullptr) return {};
  const bool of_program = allocator.allocate != nullptr;
  return {RuntimeCode::kOutOfMemory,
          "no memory for " + std::to_string(bytes) + " bytes of " + what +
              (of_program ? ": the program's allocator returned NULL, or memory that is not 64-byte aligned" : "")};
}

}  // namespace hone
