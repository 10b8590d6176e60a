// The reader of lock files, which come with models from anybody: any text gives a lock file or one message. What is
// accepted is written and reads back as the same text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/driver/models/lock_file.h"
#include "compiler/support/check.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const auto lock = hone::ParseLockFile({reinterpret_cast<const char*>(data), size});
  if (!lock.ok()) {
    HONE_CHECK(absl::IsDataLoss(lock.status()) && !lock.status().message().empty()) << lock.status();
    return 0;
  }
  const std::string written = hone::ToJson(*lock);
  const auto again = hone::ParseLockFile(written);
  HONE_CHECK(again.ok()) << again.status() << "\n" << written;
  HONE_CHECK(hone::ToJson(*again) == written) << written;
  return 0;
}
