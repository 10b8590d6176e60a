// The reader of kernel sets, which come from builders, workers and bundles: any bytes give a set or a reason. What is
// accepted has one form.
#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler/support/check.h"
#include "deploy/runtime/image/kernel_set.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  hone::KernelSet set, again;
  std::string error;
  if (!hone::Parse(bytes, &set, &error)) {
    HONE_CHECK(!error.empty());
    return 0;
  }
  const std::string written = hone::Serialize(set);
  HONE_CHECK(hone::Parse(written, &again, &error)) << error;
  HONE_CHECK(hone::Serialize(again) == written);
  return 0;
}
