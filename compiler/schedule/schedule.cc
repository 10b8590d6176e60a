#include "compiler/schedule/schedule.h"

#include <functional>
#include <set>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {

struct Schedule::State {
  PrimFunc func;
  std::vector<Prepare> prepares;
  Trace trace;
  std::vector<Output> outputs;                // of all steps, one after the other
  std::vector<int> first_output;              // of each step
  std::shared_ptr<const ProgramIndex> index;  // of func.body; built with it, so that readers never write
};

namespace {

// Every block has a name of its own: a ref finds its block by it.
Stmt WithUniqueBlockNames(const Stmt& body) {
  std::set<std::string> taken;
  bool clash = false;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) clash |= !taken.insert(realize->block.name).second;
    return true;
  });
  if (!clash) return body;
  std::set<std::string> used;
  // Top down, so that the first of two blocks keeps the name.
  std::function<Stmt(const Stmt&)> rename = [&](const Stmt& stmt) -> Stmt {
    const auto same = [](const Expr& e) { return e; };
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr) return MapChildren(stmt, rename, same);
    if (used.insert(realize->block.name).second) return MapChildren(stmt, rename, same);
    BlockRealize copy = *realize;
    for (int k = 1;; ++k) {
      copy.block.name = absl::StrCat(realize->block.name, "_", k);
      if (taken.insert(copy.block.name).second) break;
    }
    used.insert(copy.block.name);
    return MapChildren(Stmt::Make(std::move(copy)), rename, same);
  };
  return rename(body);
}

}  // namespace

Schedule::Schedule(PrimFunc workload) : state_(std::make_shared<State>()) {
  HONE_CHECK(workload.body.As<BlockRealize>() != nullptr)
      << "the body of a function is its root block: " << workload.name;
  workload.body = WithUniqueBlockNames(workload.body);
  state_->index = std::make_shared<ProgramIndex>(workload.body);
  state_->func = std::move(workload);
}

const PrimFunc& Schedule::func() const { return state_->func; }
const Trace& Schedule::trace() const { return state_->trace; }
const ProgramIndex& Schedule::index() const { return *state_->index; }
const std::vector<Prepare>& Schedule::prepares() const { return state_->prepares; }
ScheduledProgram Schedule::Program() const { return {state_->func, state_->prepares}; }

absl::StatusOr<Schedule::Output> Schedule::FindOutput(int step, int output, OutputKind kind,
                                                      std::string_view primitive) const {
  const State& state = *state_;
  const int steps = static_cast<int>(state.trace.steps.size());
  const auto ref = [&] { return absl::StrCat("output ", output, " of step ", step); };
  if (step < 0 || step >= steps) {
    return Invalid(primitive, ": ", ref(), " does not exist: the trace has ", steps, " steps");
  }
  const int count = state.trace.outputs[step];
  if (output < 0 || output >= count) {
    return Invalid(primitive, ": ", ref(), " does not exist: ", state.trace.steps[step].info().name, " gave ", count,
                   " outputs");
  }
  const OutputKind found = state.trace.steps[step].info().output;
  if (found != kind) {
    constexpr std::string_view kNames[] = {"nothing", "block", "loop", "number"};
    return Invalid(primitive, ": ", ref(), " is a ", kNames[static_cast<int>(found)], ", a ",
                   kNames[static_cast<int>(kind)], " is needed");
  }
  return state.outputs[state.first_output[step] + output];
}

absl::StatusOr<int> Schedule::LoopNode(LoopRef ref, std::string_view primitive) const {
  HONE_ASSIGN_OR_RETURN(const Output output, FindOutput(ref.step, ref.output, OutputKind::kLoop, primitive));
  if (!output.loop) {
    return Refused(primitive, ": the sampled location is \"where it is\", which is no loop; only compute_at takes it");
  }
  const int node = index().FindLoop(output.loop);
  if (node < 0) {
    return Refused(primitive, ": loop ", output.loop,
                   " is gone: an earlier step replaced or removed it; get_loops finds the new ones");
  }
  return node;
}

absl::StatusOr<int> Schedule::BlockNode(BlockRef ref, std::string_view primitive) const {
  HONE_ASSIGN_OR_RETURN(const Output output, FindOutput(ref.step, ref.output, OutputKind::kBlock, primitive));
  const int node = index().FindBlock(output.block);
  if (node < 0) {
    return Refused(primitive, ": block ", output.block, " is gone: an earlier step inlined or replaced it");
  }
  return node;
}

absl::StatusOr<const For*> Schedule::FindLoop(LoopRef ref) const {
  HONE_ASSIGN_OR_RETURN(const int node, LoopNode(ref, "find loop"));
  return &index().loop(node);
}

absl::StatusOr<const BlockRealize*> Schedule::FindBlock(BlockRef ref) const {
  HONE_ASSIGN_OR_RETURN(const int node, BlockNode(ref, "find block"));
  return &index().realize(node);
}

absl::StatusOr<int64_t> Schedule::Evaluate(const Value& value) const {
  if (const int64_t* number = value.number()) return *number;
  if (const ValueRef* ref = value.ref()) {
    HONE_ASSIGN_OR_RETURN(const Output output, FindOutput(ref->step, ref->output, OutputKind::kValue, "evaluate"));
    return output.value;
  }
  return absl::InvalidArgumentError("a number is needed here, not None");
}

Schedule::State& Schedule::Own() {
  if (state_.use_count() > 1) state_ = std::make_shared<State>(*state_);
  return *state_;
}

void Schedule::SetBody(Stmt body) {
  State& state = Own();
  state.func.body = std::move(body);
  state.index = std::make_shared<ProgramIndex>(state.func.body);
}

void Schedule::SetFunc(PrimFunc func) {
  State& state = Own();
  state.func = std::move(func);
  state.index = std::make_shared<ProgramIndex>(state.func.body);
}

void Schedule::SetPrepare(Prepare prepare) {
  State& state = Own();
  for (Prepare& old : state.prepares) {
    if (old.param == prepare.param) {
      old = std::move(prepare);
      return;
    }
  }
  state.prepares.push_back(std::move(prepare));
}

int Schedule::Record(Step step, Outputs outputs) {
  State& state = Own();
  state.first_output.push_back(static_cast<int>(state.outputs.size()));
  state.trace.steps.push_back(std::move(step));
  state.trace.outputs.push_back(static_cast<int>(outputs.size()));
  for (Output& output : outputs) state.outputs.push_back(std::move(output));
  return static_cast<int>(state.trace.steps.size()) - 1;
}

void Schedule::Redecide(int step, Step sample, const std::vector<int64_t>& numbers) {
  State& state = Own();
  HONE_CHECK(state.trace.outputs[step] == static_cast<int>(numbers.size()))
      << "a sample gives as many numbers as before";
  state.trace.steps[step] = std::move(sample);
  for (size_t k = 0; k < numbers.size(); ++k) {
    state.outputs[state.first_output[step] + k] = Output::Number(numbers[k]);
  }
}

}  // namespace hone
