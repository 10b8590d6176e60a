#include "deploy/runtime/aligned_buffer.h"

#include <sys/mman.h>

namespace hone {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{256} << 10;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  const bool huge = bytes >= kHugeFrom;
  const size_t alignment = huge ? kHugePage : kTensorAlignment;
  if (bytes > (size_t{1} << 62)) return;
  const size_t whole = AlignUp(bytes == 0 ? 1 : bytes, alignment);
  data_.reset(static_cast<char*>(std::aligned_alloc(alignment, whole)));
  // Advice: without it, small pages work as well.
  if (huge && data_ != nullptr) madvise(data_.get(), whole, MADV_HUGEPAGE);
}

}  // namespace hone
