// choose_algorithm: a block computes its result another way, with fewer operations.
//   "winograd_2x2_3x3", "winograd_4x4_3x3"   a 3x3 convolution of stride 1 by minimal filtering; see winograd.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/numeric.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;
struct Trace;

struct ChooseAlgorithmStep {
  BlockRef block;
  std::string algorithm;
  static constexpr StepInfo kInfo{.name = "choose_algorithm", .output = OutputKind::kBlock, .gives_list = true};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &ChooseAlgorithmStep::block), Field("algorithm", &ChooseAlgorithmStep::algorithm));
  }
};
absl::Status Apply(Schedule& schedule, const ChooseAlgorithmStep& step);

// Every algorithm there is.
const std::vector<std::string>& AlgorithmNames();

// Gives the blocks that took the place of the one, in program order; the last writes its output and keeps its name.
// Constant operands may come in another form: a prepare function makes it. Refused: a block that the algorithm is not
// for, one that is scheduled already, a constant that has another layout already.
absl::StatusOr<std::vector<BlockRef>> ChooseAlgorithm(Schedule& schedule, BlockRef block, std::string_view algorithm);

// The strictest level that allows what the trace does: kDefault where it chooses an algorithm that rounds other
// numbers, kStrict where it does no more than change the order of sums.
NumericLevel NumericLevelOf(const Trace& trace);

}  // namespace hone
