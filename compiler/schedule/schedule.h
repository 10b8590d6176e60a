// A schedule: a workload on its way to a fast program.
//
//   Schedule s(workload);
//   HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(s, "matmul"));
//   HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(s, block));
//   HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> tiles, Split(s, loops[0], {-1, 16}));
//   HONE_RETURN_IF_ERROR(Parallel(s, tiles[0]));
//
// Primitives are free functions, one header each (primitives/). A primitive checks first and then rewrites: one
// that is refused leaves the schedule exactly as it was. Copying a schedule is cheap, the program underneath is shared;
// a copy and the original go their own ways. Not for use by two threads at once; copies may go to different threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/program.h"
#include "compiler/schedule/step.h"

namespace hone {

class ProgramIndex;

class Schedule {
 public:
  // Blocks need names of their own: one that is taken gets a number behind it.
  explicit Schedule(PrimFunc workload);

  const PrimFunc& func() const;  // the program as it is now
  const Trace& trace() const;    // what was done so far
  ScheduledProgram Program() const;

  // What a ref stands for now. The pointers live as long as this program does: until the next primitive.
  absl::StatusOr<const For*> FindLoop(LoopRef ref) const;
  absl::StatusOr<const BlockRealize*> FindBlock(BlockRef ref) const;
  absl::StatusOr<int64_t> Evaluate(const Value& value) const;  // absent is refused

  // ---- For primitives ----
  // What a step gives: a loop is known by its variable, a block by its name, a number by itself.
  struct Output {
    Var loop;  // with OutputKind::kLoop; absent: the place sample_compute_location left
    std::string block;
    int64_t value = 0;
    static Output Loop(Var var) { return {std::move(var), {}, 0}; }
    static Output Block(std::string name) { return {{}, std::move(name), 0}; }
    static Output Number(int64_t value) { return {{}, {}, value}; }
  };
  using Outputs = std::vector<Output>;

  const ProgramIndex& index() const;                                            // where everything is in func()
  absl::StatusOr<int> LoopNode(LoopRef ref, std::string_view primitive) const;  // nodes of index()
  absl::StatusOr<int> BlockNode(BlockRef ref, std::string_view primitive) const;
  absl::StatusOr<Output> FindOutput(int step, int output, OutputKind kind, std::string_view primitive) const;
  const std::vector<Prepare>& prepares() const;

  void SetBody(Stmt body);
  void SetFunc(PrimFunc func);
  void SetPrepare(Prepare prepare);  // replaces the one of the same param
  // Appends the step; its refs are (number of the step, k). Returns the number.
  int Record(Step step, Outputs outputs);
  // Another decision in a sample that no later step has read: the step takes the place of number `step`, and gives
  // these numbers (trace/replay_cache.h).
  void Redecide(int step, Step sample, const std::vector<int64_t>& numbers);

 private:
  struct State;
  State& Own();  // the state, no longer shared with copies
  std::shared_ptr<State> state_;
};

}  // namespace hone
