// The reader of .npy files, which users are given: any bytes give an array of the size that its shape says, or one
// message.
#include <cstddef>
#include <cstdint>

#include "compiler/driver/npy.h"
#include "compiler/support/check.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::InputFile file({reinterpret_cast<const char*>(data), size});
  const hone::MemoryLimit limit;
  const auto array = hone::ReadNpy(file.path());
  if (!array.ok()) {
    HONE_CHECK(absl::IsInvalidArgument(array.status()) && !array.status().message().empty()) << array.status();
    return 0;
  }
  HONE_CHECK(array->data.size() <= size);
  HONE_CHECK(array->NumElements() * array->dtype.bytes() == static_cast<int64_t>(array->data.size()));
  return 0;
}
