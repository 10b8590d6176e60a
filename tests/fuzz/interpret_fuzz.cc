// The interpreter and the maker of oracles: any program that the verifier lets through runs or gives one message.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/oracle/oracle.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace {

// Small enough to run thousands of times a second.
bool IsSmall(const hone::PrimFunc& f) {
  int64_t total = 0;
  for (const hone::Buffer& b : f.params) {
    const std::optional<int64_t> n = b.NumElements();
    if (!n.has_value() || *n > 4096 || b.rank() > 8 || !b.type().is_scalar()) return false;
    total += *n;
  }
  return total <= 16384 && f.num_outputs() >= 0 && f.num_outputs() <= static_cast<int>(f.params.size());
}

void Run(const hone::PrimFunc& f) {
  std::vector<hone::NdArray> args = hone::RandomArguments(f, 1, hone::InputKind::kUniform);
  hone::Interpret(f, args, {.max_steps = 2000}).IgnoreError();
  hone::Interpret(f, args,
                  {.double_accumulation = true, .check_bounds = false, .check_uninitialised = false, .max_steps = 2000})
      .IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<std::vector<hone::PrimFunc>> functions =
      hone::ParseModule(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!functions.ok()) return 0;
  for (const hone::PrimFunc& f : *functions) {
    if (!hone::Verify(f).ok() || !IsSmall(f)) continue;
    Run(f);
    const absl::StatusOr<hone::PrimFunc> oracle = hone::MakeOracle(f);
    if (oracle.ok() && hone::Verify(*oracle).ok() && IsSmall(*oracle)) Run(*oracle);
  }
  return 0;
}
