#include "compiler/schedule/primitives/choose_algorithm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/winograd.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct Algorithm {
  std::string name;
  absl::StatusOr<RewrittenBlock> (*rewrite)(const PrimFunc& func, const ProgramIndex& index, int node);
};

const std::vector<Algorithm>& Algorithms() {
  static const auto* const kAlgorithms = new std::vector<Algorithm>{
      {"winograd_2x2_3x3", [](const PrimFunc& func, const ProgramIndex& index,
                              int node) { return WinogradConvolution(func, index, node, 2); }},
      {"winograd_4x4_3x3", [](const PrimFunc& func, const ProgramIndex& index,
                              int node) { return WinogradConvolution(func, index, node, 4); }},
  };
  return *kAlgorithms;
}

}  // namespace

const std::vector<std::string>& AlgorithmNames() {
  static const auto* const kNames = [] {
    auto* names = new std::vector<std::string>;
    for (const Algorithm& algorithm : Algorithms()) names->push_back(algorithm.name);
    return names;
  }();
  return *kNames;
}

absl::StatusOr<std::vector<BlockRef>> ChooseAlgorithm(Schedule& schedule, BlockRef ref, std::string_view name) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "choose_algorithm"));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("choose_algorithm(", index.block(node).name, ", ", name, ")");
  const auto algorithm =
      std::find_if(Algorithms().begin(), Algorithms().end(), [name](const Algorithm& a) { return a.name == name; });
  if (algorithm == Algorithms().end()) {
    return Invalid(where, ": there is no such algorithm; there are ", absl::StrJoin(AlgorithmNames(), ", "));
  }
  absl::StatusOr<RewrittenBlock> rewritten = algorithm->rewrite(schedule.func(), index, node);
  if (!rewritten.ok()) return Annotate(rewritten.status(), where);
  for (const Prepare& known : schedule.prepares()) {
    if (known.param == rewritten->prepare.param) {
      return Refused(where, ": param ", schedule.func().params[static_cast<size_t>(known.param)],
                     " has another layout already; choose the algorithm before layout_constant");
    }
  }

  // ---- nothing below fails ----
  schedule.SetFunc(std::move(rewritten->main));
  schedule.SetPrepare(std::move(rewritten->prepare));
  Schedule::Outputs outputs;
  for (const std::string& block : rewritten->blocks) outputs.push_back(Schedule::Output::Block(block));
  const int count = static_cast<int>(outputs.size());
  const int number =
      schedule.Record(ChooseAlgorithmStep{.block = ref, .algorithm = std::string(name)}, std::move(outputs));
  std::vector<BlockRef> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back({number, i});
  return blocks;
}

NumericLevel NumericLevelOf(const Trace& trace) {
  const bool chooses = std::any_of(trace.steps.begin(), trace.steps.end(),
                                   [](const Step& step) { return step.As<ChooseAlgorithmStep>() != nullptr; });
  return chooses ? NumericLevel::kDefault : NumericLevel::kStrict;
}

absl::Status Apply(Schedule& schedule, const ChooseAlgorithmStep& step) {
  return ChooseAlgorithm(schedule, step.block, step.algorithm).status();
}

HONE_PRIMITIVES(choose_algorithm, ChooseAlgorithmStep)

}  // namespace hone
