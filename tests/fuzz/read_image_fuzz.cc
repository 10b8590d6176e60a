// The reader of kernel images: any bytes, with the checksum put right, give parts that lie in the image or one message.
// Nothing is mapped or executed.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "compiler/support/check.h"
#include "deploy/runtime/hash.h"
#include "deploy/runtime/image/image.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr size_t kAt = offsetof(hone::ImageHeader, checksum);
  if (bytes.size() >= sizeof(hone::ImageHeader)) {
    uint64_t checksum = 0;
    std::memcpy(bytes.data() + kAt, &checksum, sizeof(checksum));
    checksum = hone::Hash64(bytes);
    std::memcpy(bytes.data() + kAt, &checksum, sizeof(checksum));
  }
  const auto parts = hone::ReadImage(bytes);
  if (!parts.ok()) {
    HONE_CHECK(!parts.error().message().empty());
    return 0;
  }
  for (const hone::ImageParts::Symbol& symbol : parts->symbols) HONE_CHECK(symbol.code_offset < parts->code.size());
  hone::CheckImage(bytes).ok();
  return 0;
}
