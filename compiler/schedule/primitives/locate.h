// Finding blocks and loops to schedule. These change nothing; they are steps so that later steps can refer to what they
// found.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct GetBlockStep {
  std::string name;
  std::string func_name = "main";
  static constexpr StepInfo kInfo{.name = "get_block", .output = OutputKind::kBlock, .changes_program = false};
  static constexpr auto Fields() {
    return std::tuple(Field("name", &GetBlockStep::name), Field("func_name", &GetBlockStep::func_name));
  }
};
absl::Status Apply(Schedule& schedule, const GetBlockStep& step);
struct GetLoopsStep {
  BlockRef block;
  static constexpr StepInfo kInfo{
      .name = "get_loops", .output = OutputKind::kLoop, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() { return std::tuple(Field("block", &GetLoopsStep::block)); }
};
absl::Status Apply(Schedule& schedule, const GetLoopsStep& step);
struct GetChildBlocksStep {
  BlockOrLoop parent;
  static constexpr StepInfo kInfo{
      .name = "get_child_blocks", .output = OutputKind::kBlock, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() { return std::tuple(Field("block_or_loop", &GetChildBlocksStep::parent)); }
};
absl::Status Apply(Schedule& schedule, const GetChildBlocksStep& step);
struct GetProducersStep {
  BlockRef block;
  static constexpr StepInfo kInfo{
      .name = "get_producers", .output = OutputKind::kBlock, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() { return std::tuple(Field("block", &GetProducersStep::block)); }
};
absl::Status Apply(Schedule& schedule, const GetProducersStep& step);
struct GetConsumersStep {
  BlockRef block;
  static constexpr StepInfo kInfo{
      .name = "get_consumers", .output = OutputKind::kBlock, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() { return std::tuple(Field("block", &GetConsumersStep::block)); }
};
absl::Status Apply(Schedule& schedule, const GetConsumersStep& step);
struct GetOutputBlocksStep {
  static constexpr StepInfo kInfo{
      .name = "get_output_blocks", .output = OutputKind::kBlock, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() { return std::tuple(); }
};
absl::Status Apply(Schedule& schedule, const GetOutputBlocksStep& step);

// NotFound when there is no such block; the message lists those there are. "root" is the root block.
absl::StatusOr<BlockRef> GetBlock(Schedule& schedule, std::string_view name);
// The loops around a block up to the enclosing block, outermost first.
absl::StatusOr<std::vector<LoopRef>> GetLoops(Schedule& schedule, BlockRef block);
// The blocks directly inside a block, or under a loop, in program order.
absl::StatusOr<std::vector<BlockRef>> GetChildBlocks(Schedule& schedule, BlockOrLoop parent);
// Blocks that write what this one reads, and blocks that read what it writes, under the same enclosing block, in
// program order.
absl::StatusOr<std::vector<BlockRef>> GetProducers(Schedule& schedule, BlockRef block);
absl::StatusOr<std::vector<BlockRef>> GetConsumers(Schedule& schedule, BlockRef block);
// Blocks that write a param of the function, in program order.
absl::StatusOr<std::vector<BlockRef>> GetOutputBlocks(Schedule& schedule);

}  // namespace hone
