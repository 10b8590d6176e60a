// What a workload computes, kept to hold scheduled programs against.
#pragma once

#include <string>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/schedule/schedule.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

// Interprets the workload once, on seeded inputs; an exact workload on small integers, another one on uniform values
// with the bound of its oracle.
class Reference {
 public:
  explicit Reference(const SmallWorkload& workload, uint64_t seed = 1);

  const std::vector<NdArray>& arguments() const { return arguments_; }  // the workload's, outputs unwritten

  // "" when the outputs among the arguments are right: the same bits for an exact workload, else within the bound of
  // its level. Otherwise what differs first.
  std::string Compare(const std::vector<NdArray>& got) const;
  // Verifies the program and its prepare functions, interprets them and compares. "" or what went wrong.
  std::string CheckInterpreted(const ScheduledProgram& program) const;

 private:
  SmallWorkload workload_;
  std::vector<NdArray> arguments_, expected_;  // of the workload; of its oracle where it is not exact
};

// One for the workload, made on first use where the workload is of the table.
const Reference& ReferenceOf(const SmallWorkload& workload);
// For a schedule of the workload with that trace: not exact where it chooses an algorithm that rounds other numbers.
const Reference& ReferenceOf(SmallWorkload workload, const Trace& trace);

// With the iterations of parallel, vectorized and thread loops in reverse order: they must not depend on one another.
ScheduledProgram Reversed(ScheduledProgram program);

}  // namespace hone::testing
