// The stored forms of a trace beside its text (trace.h): JSON, for records that people and scripts read, and protobuf,
// for the wire. Both say the same as the text and give the same trace back.
//
//   {"hone_trace": 1, "steps": [
//     {"step": "get_block", "args": {"name": "C", "func_name": "main"}, "outputs": 1},
//     {"step": "get_loops", "args": {"block": {"ref": [0, 0]}}, "outputs": 3},
//     {"step": "split", "args": {"loop": {"ref": [1, 2]}, "factors": [null, 4]}, "outputs": 2},
//     {"step": "transform_layout", "args": {.., "index_map": {"map": "lambda i, j: (j, i)"}}, "outputs": 0}]}
//
// A ref is output k of step n. An argument that is left out has its default; a step whose version is not 1 says so with
// "version". Numbers that JSON has no words for are {"number": "inf"}; a string that is not UTF-8 is {"bytes": [..]}.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/schedule/trace/trace.h"

namespace hone {

namespace v1 {
class Trace;
}

std::string ToJson(const Trace& trace);
// InvalidArgument with "step N: what was found, what was expected", or where the text stops being JSON.
absl::StatusOr<Trace> ParseTraceJson(std::string_view text);

void ToProto(const Trace& trace, v1::Trace* proto);
absl::StatusOr<Trace> TraceFromProto(const v1::Trace& proto);

}  // namespace hone
