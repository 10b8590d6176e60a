// The reader of programs: any bytes give functions or one message with a place. What is accepted prints, reads back
// equal, and survives the verifier. Build with clang: cmake -DCMAKE_CXX_COMPILER=clang++-19 -DHONE_FUZZ=ON.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::vector<hone::PrimFunc>> functions = hone::ParseModule(text);
  if (!functions.ok()) {
    HONE_CHECK(std::string(functions.status().message()).starts_with("line ")) << functions.status().ToString();
    return 0;
  }
  for (const hone::PrimFunc& f : *functions) {
    const std::string printed = hone::ToText(f);
    const absl::StatusOr<hone::PrimFunc> back = hone::ParsePrimFunc(printed);
    HONE_CHECK(back.ok()) << back.status().ToString() << "\n" << printed;
    HONE_CHECK(hone::StructuralEqual(f, *back)) << printed;
    hone::Verify(f).IgnoreError();
  }
  return 0;
}
