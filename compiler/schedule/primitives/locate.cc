#include "compiler/schedule/primitives/locate.h"

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::vector<BlockRef> RecordBlocks(Schedule& schedule, Step step, const std::vector<int>& nodes) {
  Schedule::Outputs outputs;
  for (const int n : nodes) outputs.push_back(Schedule::Output::Block(schedule.index().block(n).name));
  const int number = schedule.Record(std::move(step), std::move(outputs));
  std::vector<BlockRef> refs;
  for (size_t k = 0; k < nodes.size(); ++k) refs.push_back({number, static_cast<int>(k)});
  return refs;
}

}  // namespace

absl::StatusOr<BlockRef> GetBlock(Schedule& schedule, std::string_view name) {
  const ProgramIndex& index = schedule.index();
  const int node = index.FindBlock(name);
  if (node < 0) {
    std::string names;
    for (const int b : index.AllBlocks()) names += Message(names.empty() ? "" : ", ", index.block(b).name);
    return absl::NotFoundError(Message("get_block(", name, "): there is no such block; there are ", names));
  }
  return RecordBlocks(schedule, GetBlockStep{.name = std::string(name)}, {node})[0];
}

absl::StatusOr<std::vector<LoopRef>> GetLoops(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block, "get_loops"));
  Schedule::Outputs outputs;
  for (const int loop : schedule.index().LoopsAbove(node))
    outputs.push_back(Schedule::Output::Loop(schedule.index().loop(loop).var));
  const size_t count = outputs.size();
  const int number = schedule.Record(GetLoopsStep{.block = block}, std::move(outputs));
  std::vector<LoopRef> refs;
  for (size_t k = 0; k < count; ++k) refs.push_back({number, static_cast<int>(k)});
  return refs;
}

absl::StatusOr<std::vector<BlockRef>> GetChildBlocks(Schedule& schedule, BlockOrLoop parent) {
  int node = -1;
  if (const BlockRef* block = std::get_if<BlockRef>(&parent)) {
    HONE_ASSIGN_OR_RETURN(node, schedule.BlockNode(*block, "get_child_blocks"));
  } else {
    HONE_ASSIGN_OR_RETURN(node, schedule.LoopNode(std::get<LoopRef>(parent), "get_child_blocks"));
  }
  return RecordBlocks(schedule, GetChildBlocksStep{.parent = parent}, schedule.index().BlocksBelow(node));
}

absl::StatusOr<std::vector<BlockRef>> GetProducers(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block, "get_producers"));
  return RecordBlocks(schedule, GetProducersStep{.block = block},
                      node == 0 ? std::vector<int>() : ProducersOf(schedule.index(), node));
}

absl::StatusOr<std::vector<BlockRef>> GetConsumers(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block, "get_consumers"));
  return RecordBlocks(schedule, GetConsumersStep{.block = block},
                      node == 0 ? std::vector<int>() : ConsumersOf(schedule.index(), node));
}

absl::StatusOr<std::vector<BlockRef>> GetOutputBlocks(Schedule& schedule) {
  std::vector<int> found;
  for (const int b : schedule.index().AllBlocks()) {
    for (const Buffer& param : schedule.func().params) {
      if (Writes(schedule.index().block(b), param)) {
        found.push_back(b);
        break;
      }
    }
  }
  return RecordBlocks(schedule, GetOutputBlocksStep{}, found);
}

absl::Status Apply(Schedule& schedule, const GetBlockStep& step) {
  if (step.func_name != "main" && step.func_name != schedule.func().name)  // "main" is whatever function there is
    return Invalid("get_block: there is one function, \"", schedule.func().name, "\", not \"", step.func_name, "\"");
  return GetBlock(schedule, step.name).status();
}

absl::Status Apply(Schedule& schedule, const GetLoopsStep& step) { return GetLoops(schedule, step.block).status(); }

absl::Status Apply(Schedule& schedule, const GetChildBlocksStep& step) {
  return GetChildBlocks(schedule, step.parent).status();
}

absl::Status Apply(Schedule& schedule, const GetProducersStep& step) {
  return GetProducers(schedule, step.block).status();
}

absl::Status Apply(Schedule& schedule, const GetConsumersStep& step) {
  return GetConsumers(schedule, step.block).status();
}

absl::Status Apply(Schedule& schedule, const GetOutputBlocksStep&) { return GetOutputBlocks(schedule).status(); }

HONE_PRIMITIVES(locate, GetBlockStep, GetLoopsStep, GetChildBlocksStep, GetProducersStep, GetConsumersStep,
                GetOutputBlocksStep)

}  // namespace hone
