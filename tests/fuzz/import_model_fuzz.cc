// The import of ONNX models, which come from anybody: any bytes give a graph or one message.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compiler/frontend/onnx_import.h"
#include "compiler/support/check.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const auto graph = hone::ImportOnnxBytes({reinterpret_cast<const char*>(data), size}, "");
  if (graph.ok()) return 0;
  HONE_CHECK(hone::IsImportError(graph.status()) && !graph.status().message().empty()) << graph.status();
  return 0;
}
