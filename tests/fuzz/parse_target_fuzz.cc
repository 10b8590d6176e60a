// The readers of targets, CPUs' and GPUs', and of machines' facts: any text gives one or a message. What is accepted
// has a canonical text, which reads back as itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/support/check.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = hone::ParseTarget(text); target.ok()) {
    const auto again = hone::ParseTarget(target->text);
    HONE_CHECK(again.ok()) << again.status().ToString() << "\n" << target->text;
    HONE_CHECK(again->text == target->text && again->features == target->features) << target->text;
    HONE_CHECK(hone::DeviceClass(*again) == hone::DeviceClass(*target)) << target->text;
  } else {
    HONE_CHECK(!target.status().message().empty());
  }
  if (const auto target = hone::ParseGpuTarget(text); target.ok()) {
    const auto again = hone::ParseGpuTarget(target->text);
    HONE_CHECK(again.ok()) << again.status().ToString() << "\n" << target->text;
    HONE_CHECK(*again == *target) << target->text;
  }
  static const hone::Target core = *hone::ParseTarget("cpu:znver5");
  if (const auto machine = hone::ParseMachine(text, core); machine.ok()) {
    const auto again = hone::ParseMachine(hone::ToText(*machine), core);
    HONE_CHECK(again.ok()) << again.status().ToString() << "\n" << hone::ToText(*machine);
    HONE_CHECK(hone::ToText(*again) == hone::ToText(*machine)) << hone::ToText(*machine);
  }
  return 0;
}
