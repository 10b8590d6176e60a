// The readers of traces, text and JSON: any bytes give a trace or one message with a place. What is accepted is printed
// in both forms and reads back equal from both.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/trace/trace_forms.h"
#include "compiler/support/check.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_json = size > 0 && data[0] == '{';
  const absl::StatusOr<hone::Trace> trace = is_json ? hone::ParseTraceJson(text) : hone::ParseTrace(text);
  if (!trace.ok()) {
    HONE_CHECK(!trace.status().message().empty());
    return 0;
  }
  const std::string printed = hone::ToText(*trace);
  const absl::StatusOr<hone::Trace> back = hone::ParseTrace(printed);
  HONE_CHECK(back.ok()) << back.status().ToString() << "\n" << printed;
  HONE_CHECK(*back == *trace) << printed;
  const std::string json = hone::ToJson(*trace);
  const absl::StatusOr<hone::Trace> from_json = hone::ParseTraceJson(json);
  HONE_CHECK(from_json.ok()) << from_json.status().ToString() << "\n" << json;
  HONE_CHECK(*from_json == *trace) << json;
  return 0;
}
