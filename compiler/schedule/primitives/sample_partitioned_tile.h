// sample_partitioned_tile: the extent of a loop as a product of factors whose inner part keeps a given granularity.
//   extent 96, n = 4, partition_pos = 2, innerpart_factor = 8:   [3, 2, 4, 4],
//   since 4 * 4 is a multiple of 8
// For nests whose inner loops belong to an instruction or a panel of that width, whatever the tile outside.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"
#include "compiler/support/random.h"

namespace hone {

class Schedule;

struct SamplePartitionedTileStep {
  LoopRef loop;
  int64_t n = 2;
  int64_t partition_pos = 0;
  int64_t innerpart_factor = 1;
  std::vector<int64_t> decision;
  static constexpr StepInfo kInfo{
      .name = "sample_partitioned_tile", .output = OutputKind::kValue, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() {
    using S = SamplePartitionedTileStep;
    return std::tuple(Field("loop", &S::loop), Field("n", &S::n), Field("partition_pos", &S::partition_pos),
                      Field("innerpart_factor", &S::innerpart_factor), Field("decision", &S::decision));
  }
};
absl::Status Apply(Schedule& schedule, const SamplePartitionedTileStep& step);

// `n` factors, outermost first, that multiply to the extent; the product of those from `partition_pos` on is a multiple
// of `innerpart_factor`. Refused: an extent that is not a multiple of it, a decision that breaks this.
absl::StatusOr<std::vector<ValueRef>> SamplePartitionedTile(Schedule& schedule, LoopRef loop, int n, int partition_pos,
                                                            int64_t innerpart_factor, std::vector<int64_t> decision);
absl::StatusOr<std::vector<ValueRef>> SamplePartitionedTile(Schedule& schedule, LoopRef loop, int n, int partition_pos,
                                                            int64_t innerpart_factor, Random& random);

}  // namespace hone
