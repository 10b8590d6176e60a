// The runtime's reader of JSON: any bytes give a value, or one message that says at which byte it stopped.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/support/check.h"
#include "deploy/runtime/bundle/json.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const auto json = hone::Json::Parse({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) {
    HONE_CHECK(json.error().code() == hone::RuntimeCode::kCorrupt) << json.error().message();
    HONE_CHECK(!json.error().message().empty());
  }
  return 0;
}
