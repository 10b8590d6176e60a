// Sketches: schedules with holes, derived from the blocks of a workload alone, whatever operator they came from.
//
// First everything is inlined that CanBeInlined; rules look at the blocks that are left. A rule looks at one block of a
// sketch and says what could be done about it: nothing (it does not apply), one thing, or several, and then the sketch
// forks. Rules are asked in the order of SketchRules(), each for every block from the last to the first (as Ansor and
// MetaSchedule derive theirs: search.md 2a). What comes out is a sequence of steps with knobs - tile sizes, unroll
// depths - and no open question of structure; MakeSketchGenerators turns each into a Generator.
//
// Evaluating a choice takes two passes over the steps, arithmetic alone: Plan notes sizes, Cost judges them. Building
// takes a third: Apply calls primitives. Adding a rule is a file rule_NAME.cc and a row in sketch_rules.cc.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "tuner/space/generator.h"
#include "tuner/space/nests/nest_context.h"
#include "tuner/space/nests/nest_plan.h"
#include "tuner/space/workload/block_fusion.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// One for each block of the workload; only those of tiled blocks mean something.
using SketchPlan = std::vector<NestPlan>;

// What steps leave for later ones while a schedule is built; all by block of the workload.
struct SketchBuild {
  Schedule& schedule;
  const WorkloadInfo& info;
  // The loops over pieces of a tiled block, to run in parallel; there before its nest with NestShape::pieces_of.
  std::vector<std::vector<LoopRef>> pieces;
};

class SketchStep {
 public:
  explicit SketchStep(std::string label) : label_(std::move(label)) {}
  virtual ~SketchStep() = default;
  const std::string& label() const { return label_; }  // "tile(conv2d)"
  const std::vector<Knob>& knobs() const { return knobs_; }
  // `values` has one value for each knob. False: not legal.
  virtual bool Plan(std::span<const int64_t> values, SketchPlan& plan) const;
  // Microseconds that this step answers for; nullopt: not legal.
  virtual std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan& plan) const;
  virtual absl::Status Apply(std::span<const int64_t> values, const SketchPlan& plan, SketchBuild& build) const = 0;

  // `other` is the same step where the workload has other extents: values for this one by which its tiles are those
  // that `values`, which mean `plan`, make there, and as many as there are to be here. nullopt: there are none.
  virtual std::optional<std::vector<int64_t>> ValuesLike(const SketchStep& other, std::span<const int64_t> values,
                                                         const SketchPlan& plan) const;
  // Of Generator::ConstantLayout, the part that this step answers for.
  virtual std::string ConstantLayout(const SketchPlan& plan) const;

 protected:
  std::string label_;
  std::vector<Knob> knobs_;
};

// What has become of one block so far; the shape is that of its nest where it is tiled.
struct SketchBlock : NestShape {
  enum class Fate {
    kOpen,
    kTile,     // multi-level tiles
    kTaken,    // computed inside the nest of another block
    kOwnNest,  // a nest without tiles
  };
  Fate fate = Fate::kOpen;
  int in_pieces_of = -1;  // the tiled block in whose pieces it is computed, wherever in them; -1: none
};

// What rules and steps are made for. Steps keep a copy; `info` outlives them, `fusion` only the derivation.
struct SketchContext {
  const WorkloadInfo* info = nullptr;
  const BlockFusion* fusion = nullptr;
  Target target;
  Machine machine;
  int threads = 1;

  const BlockInfo& block(int i) const { return info->blocks[static_cast<size_t>(i)]; }
  NestContext nest_context() const { return {info, target, machine, threads}; }
};

struct Sketch {
  std::vector<SketchBlock> blocks;
  std::vector<std::shared_ptr<const SketchStep>> steps;
  std::vector<std::string> choices;  // what distinguishes it from its siblings: "pack(dense.1)"

  SketchBlock& at(int i) { return blocks[static_cast<size_t>(i)]; }
  const SketchBlock& at(int i) const { return blocks[static_cast<size_t>(i)]; }
};

class SketchRule {
 public:
  virtual ~SketchRule() = default;
  virtual std::string name() const = 0;
  // The sketches that `sketch` becomes by attending to this block; empty: the rule does not apply.
  virtual std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const = 0;
};

// The list, in the order in which they are asked.
const std::vector<std::unique_ptr<SketchRule>>& SketchRules();

// All sketches of a workload, at most kMostSketches: the first offers of each rule come first.
inline constexpr size_t kMostSketches = 8;
std::vector<Sketch> DeriveSketches(const SketchContext& context);

// ---- Shared by rules ----
// The choice by which knobs have these values, each of them one of its candidates.
Choice ChoiceOf(const std::vector<Knob>& knobs, std::span<const int64_t> values);
// The instruction that adds up most products of a block at once on a target; nullopt: there is none (rule_dot.cc).
struct BlockDot {
  DotProduct dot;
  int operand = -1;  // of the block's reads, the one that has them side by side in panels
  int rows = -1;     // of an instruction for matrices: the variable along their rows
};
std::optional<BlockDot> FindDot(const BlockInfo& block, const Target& target);
// Float32 products that a core adds up in the time of one of these, at least 1: 1 where it has no such instruction.
double SpeedOfProducts(const BlockInfo& block, const Target& target, const Machine& machine);
// The multi-level tile applies and nothing else was decided.
bool WillBeTiled(const SketchContext& context, const Sketch& sketch, int block);
// For a block in the pieces of another tiled one: adds the step that gives it its pieces, to stand between the tile
// steps of the two, and that of the rows between them; nothing for any other block (rule_inside.cc).
void AddInside(const SketchContext& context, const Sketch& sketch, int block, Sketch& tiled);
// The variables of such a block, or of the other one, that are cut into the pieces of both, which are all alike.
std::set<int> SharedVariables(const SketchContext& context, const Sketch& sketch, int block);
// A nest of rows: the elementwise block that they are of, and the blocks that are computed row by row in it
// (rule_rows.cc).
struct RowNest {
  struct Member {
    int block = 0;
    int along = -1;     // of a reduction with vectors: the reduce variable along memory
    int taken_by = -1;  // of a block without: the member with vectors that takes its elements as they are made
  };
  int leader = -1;
  int depth = 0;                // of the leader's variables, how many are over rows: the outermost
  std::vector<Member> members;  // in program order
  // By block, the leader's variable for each dimension of what it writes, -1: none or several; nullopt where others
  // than the nest read it.
  std::vector<std::optional<std::vector<int>>> rows_of;
};
// nullopt: there is no reduction over its rows, or the leader is none.
std::optional<RowNest> FindRows(const SketchContext& context, const Sketch& sketch, int leader);
// Takes the nest as a step, in the pieces of a tiled block or, with -1, where it is.
void AddRows(const SketchContext& context, RowNest rows, int in_pieces_of, Sketch& sketch);
// Rules, each in the file of its name: rule_pack.cc and so on.
std::unique_ptr<SketchRule> MakeDotRule();
std::unique_ptr<SketchRule> MakePackRule();
std::unique_ptr<SketchRule> MakeCutRule();
std::unique_ptr<SketchRule> MakeFuseConsumerRule();
std::unique_ptr<SketchRule> MakeBlocksRule();
std::unique_ptr<SketchRule> MakeInsideRule();
std::unique_ptr<SketchRule> MakeTileRule();
std::unique_ptr<SketchRule> MakeRowsRule();
std::unique_ptr<SketchRule> MakePiecesRule();
std::unique_ptr<SketchRule> MakeLocateRule();
std::unique_ptr<SketchRule> MakeFormsRule();
std::unique_ptr<SketchRule> MakeOwnNestRule();
std::unique_ptr<SketchRule> MakeParallelRule();

}  // namespace hone
