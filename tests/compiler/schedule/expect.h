// What every schedule test ends with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/check.h"

namespace hone::testing {

// Prints the trace, parses it, replays it on the workload and compares trace and program.
void ExpectReplays(const Schedule& schedule, const PrimFunc& workload);
// The program passes the verifier and computes, on seeded inputs, what the workload computes (constants packed by the
// prepare functions first). Inputs are small integers, so that no order of summation makes a difference.
void ExpectSameResult(const Schedule& schedule, const PrimFunc& workload, uint64_t seed = 1);
// The same with the iterations of parallel and vectorized loops in reverse order: they must not depend on one another.
void ExpectSameResultReversed(const Schedule& schedule, const PrimFunc& workload, uint64_t seed = 1);
// All of these.
void ExpectSound(const Schedule& schedule, const PrimFunc& workload);
// The statements of the program from the first loop or block below the root on, compared as text.
void ExpectBody(const Schedule& schedule, std::string_view expected);

// The value of something that must succeed.
template <class T>
T Get(absl::StatusOr<T> value) {
  HONE_CHECK(value.ok()) << value.status().ToString();
  return *std::move(value);
}
inline void Do(const absl::Status& status) { HONE_CHECK(status.ok()) << status.ToString(); }

// Refused, with a message that contains the text.
::testing::AssertionResult Says(const absl::Status& status, std::string_view text);
template <class T>
::testing::AssertionResult Says(const absl::StatusOr<T>& result, std::string_view text) {
  return Says(result.status(), text);
}

// What another algorithm rounds is as large as the largest of its neighbours, not as the result: that, at least 1; 1
// for traces that only reorder.
double LargestWhereLoose(const Schedule& schedule, const NdArray& output);

}  // namespace hone::testing
