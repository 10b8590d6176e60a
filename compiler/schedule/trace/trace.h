// A trace: the steps that made a schedule, in order. It is data, and the form in which schedules travel and are stored.
//
// Text is the python dialect in which published schedules are written:
//   b0 = sch.get_block("Y", func_name="main")
//   l1, l2, l3 = sch.get_loops(b0)
//   v4 = sch.sample_categorical(candidates=[4, 8], probs=[0.5, 0.5], decision=1)
//   l5, l6 = sch.split(l1, factors=[None, v4])
//   sch.parallel(l5)
// Printing names outputs b, l and v, numbered through; parsing takes any names, arguments by keyword or by position,
// comments, and a `def apply_trace(sch):` line in front. Stored traces outlive releases: a new field of a step gets a
// default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/step.h"

namespace hone {

class Schedule;

// More steps than this are read from no form of a trace: the time that an untrusted one takes to replay is bounded.
inline constexpr int kMostTraceSteps = 10'000;

std::string ToText(const Trace& trace);
std::string ToText(const Step& step);  // one line, refs as s<step>.<output>: for messages
// InvalidArgument with "line L: what was found, what was expected".
absl::StatusOr<Trace> ParseTrace(std::string_view text);
bool operator==(const Trace& a, const Trace& b);  // the same steps with the same arguments

// Every step of the trace, done again on the workload. A refusal comes with the step's number and text in front; a step
// that gives another number of outputs than it did when it was recorded is refused too.
absl::StatusOr<Schedule> Replay(const Trace& trace, const PrimFunc& workload);

// The random choices of a trace: what a search varies.
struct Decision {
  int step = 0;
  std::vector<int64_t> values;  // a tile's factors; for the others one index
  // What else it could be: candidates for a categorical choice (values[0] indexes them), the bound on the last factor
  // of a tile (0: none).
  std::vector<int64_t> candidates;
  int64_t max_innermost_factor = 0;
  enum class Kind { kPerfectTile, kCategorical, kComputeLocation } kind = Kind::kCategorical;
};
std::vector<Decision> Decisions(const Trace& trace);
// The same trace with another decision; whether it is legal is for Replay to say. HONE_CHECK: the step has a decision.
Trace WithDecision(Trace trace, int step, const std::vector<int64_t>& values);

}  // namespace hone
