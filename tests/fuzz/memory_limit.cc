#include "tests/fuzz/memory_limit.h"

#include <sanitizer/allocator_interface.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace hone {
namespace {

constexpr ptrdiff_t kMost = ptrdiff_t{64} << 20;
bool watching = false;
ptrdiff_t in_use = 0;

void Allocated(const volatile void*, size_t size) {
  if (!watching) return;
  in_use += static_cast<ptrdiff_t>(size);
  if (in_use <= kMost) return;
  watching = false;
  std::fprintf(stderr, "one input takes more than %td MiB of memory\n", kMost >> 20);
  std::abort();
}
void Freed(const volatile void* memory) {
  if (watching && memory != nullptr) in_use -= static_cast<ptrdiff_t>(__sanitizer_get_allocated_size(memory));
}

}  // namespace

MemoryLimit::MemoryLimit() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(Allocated, Freed);
  (void)installed;
  in_use = 0;
  watching = true;
}
MemoryLimit::~MemoryLimit() { watching = false; }

}  // namespace hone
