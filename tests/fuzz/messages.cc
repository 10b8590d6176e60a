#include "tests/fuzz/messages.h"

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/memory_limit.h"

// Text that is no UTF-8 is usual here, and protobuf would say so each time.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  FuzzedDataProvider bytes(data, size);
  const std::span<const hone::ReadMessage> messages = hone::Messages();
  messages[bytes.ConsumeIntegralInRange<size_t>(0, messages.size() - 1)](bytes);
  return 0;
}
