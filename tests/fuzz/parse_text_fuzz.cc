// The reader of programs and modules: any bytes give functions or one message with a place. What is accepted prints,
// reads back equal, and survives the verifier.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/ir/structural.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<hone::IrModule> module = hone::ParseIrModule(text);
  if (!module.ok()) {
    HONE_CHECK(std::string(module.status().message()).starts_with("line ")) << module.status().ToString();
    return 0;
  }
  const std::string printed = hone::ToText(*module);
  const absl::StatusOr<hone::IrModule> back = hone::ParseIrModule(printed);
  HONE_CHECK(back.ok()) << back.status().ToString() << "\n" << printed;
  HONE_CHECK(hone::StructuralEqual(*module, *back)) << printed;
  HONE_CHECK(hone::ToText(*back) == printed) << printed;
  hone::Verify(*module).IgnoreError();
  return 0;
}
