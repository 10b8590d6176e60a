#include "worker/runner/fenced_memory.h"

#include <sys/mman.h>

namespace hone {
namespace {

constexpr size_t kFence = 64 << 10;  // wider than one page: a tensor's row is often longer
constexpr size_t kPage = 4096, kHugePage = 2 << 20;

}  // namespace

FencedMemory::FencedMemory(int fd, uint64_t at, size_t bytes, bool read_only)
    : bytes_(((bytes == 0 ? 1 : bytes) + kPage - 1) / kPage * kPage) {
  if (bytes > (size_t{1} << 44)) return;
  const size_t whole = bytes_ + 2 * kFence;
  // Fresh memory of that size ends with a huge page, so that timed kernels stream through most of it as through a
  // deployed program's.
  const size_t alignment = fd < 0 && bytes_ >= kHugePage ? kHugePage : kPage;
  const size_t slack = alignment - kPage;
  void* fences = mmap(nullptr, slack + whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fences == MAP_FAILED) return;
  const uintptr_t end = reinterpret_cast<uintptr_t>(fences) + slack + whole - kFence;
  const size_t behind = end % alignment, before = slack - behind;
  base_ = static_cast<char*>(fences) + before;
  if (before > 0) munmap(fences, before);
  if (behind > 0) munmap(base_ + whole, behind);
  const int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  // A sealed file may be mapped privately alone on kernels before 6.7, and for reading that is the same.
  const int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : read_only ? MAP_PRIVATE : MAP_SHARED);
  if (mmap(base_ + kFence, bytes_, protection, flags, fd, static_cast<off_t>(at)) == MAP_FAILED) {
    munmap(base_, whole);
    base_ = nullptr;
    return;
  }
  if (fd < 0) madvise(base_ + kFence, bytes_, MADV_HUGEPAGE);  // the first touch of many small pages takes longer
}

FencedMemory::~FencedMemory() {
  if (base_ != nullptr) munmap(base_, bytes_ + 2 * kFence);
}

char* FencedMemory::data() const { return base_ == nullptr ? nullptr : base_ + kFence; }

FencedMemory::Hit FencedMemory::Where(const void* address) const {
  const char* at = static_cast<const char*>(address);
  if (base_ == nullptr || at < base_ || at >= base_ + bytes_ + 2 * kFence) return Hit::kNone;
  if (at < base_ + kFence) return Hit::kBefore;
  return at < base_ + kFence + bytes_ ? Hit::kInside : Hit::kBehind;
}

}  // namespace hone
