// The reader of a bundle's execution plan: any bytes give a plan whose every index, offset and size fits, or one
// message. What is accepted is written and reads back as the same plan.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/support/check.h"
#include "deploy/runtime/bundle/bundle.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kParamsBytes = 1 << 20;
  constexpr int kImages = 2;
  const hone::MemoryLimit limit;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto graph = hone::ParseGraph(json, kParamsBytes, kImages);
  if (!graph.ok()) {
    HONE_CHECK(!graph.error().message().empty());
    return 0;
  }
  const std::string written = hone::ToJson(*graph);
  const auto again = hone::ParseGraph(written, kParamsBytes, kImages);
  HONE_CHECK(again.ok()) << again.error().message() << "\n" << written;
  HONE_CHECK(hone::ToJson(*again) == written) << written;
  return 0;
}
