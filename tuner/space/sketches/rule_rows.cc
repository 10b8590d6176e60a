// Rows: reductions over rows, and what is between them, are computed row by row inside the nest of the elementwise
// block that reads them: a row is in the first-level cache from its first use to its last, and one parallel loop does
// for all.
//
//   for r: for k: E[r, k] = e(A[r, k])           parallel r: { for k0: { for vectorized k1: E[k0, k1] = e(A[r, k0, k1])
//   for r: for k: S[r] += E[r, k]           =>                           for vectorized k1: P[k1] += E[k0, k1] }
//   for r: for k: C[r, k] = f(E[r, k], S[r])                   S = sum(P)
//                                                              for vectorized k: C[r, k] = f(E[k], S) }
//
// What a reduction is the first to read of a row is computed vector by vector where the reduction takes it, in
// registers.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/stream.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/lanes.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

constexpr double kNotHidden = 0.25;  // of what is shorter, arithmetic or traffic

using Member = RowNest::Member;

int AlongMemory(const BlockInfo& block, int lanes) {
  if (!block.splits || !block.single_store) return -1;
  int along = -1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (block.spatial(i) || block.extents[static_cast<size_t>(i)] < lanes) continue;
    for (const BlockInfo::Access& read : block.reads) {
      if (read.strides[static_cast<size_t>(i)] == 1) along = i;
    }
  }
  return along;
}

// Whether the reduction reads the elements of `made` one after the other along its innermost variable, all of a row.
bool TakesElements(const BlockInfo& reduction, int along, const BlockInfo& made) {
  if (along < 0 || along != reduction.last_reduce_iter() || made.reduces || made.output_iters.empty()) return false;
  if (made.last_iter() != static_cast<int>(made.iters.size()) - 1) return false;
  const size_t k = static_cast<size_t>(along);
  return std::ranges::any_of(reduction.reads, [&](const BlockInfo::Access& read) {
    return read.buffer == made.output && read.places == 1 && read.affine && read.strides[k] == 1 &&
           reduction.extents[k] == made.extents.back();
  });
}

// Whether `block` reads, directly or by way of others, what `first` writes.
bool ReadsAfter(const BlockFusion& fusion, int first, int block) {
  return std::ranges::any_of(fusion.Readers(first),
                             [&](int reader) { return reader == block || ReadsAfter(fusion, reader, block); });
}

// Finds, for every member without a reduction, the one that takes its elements as they are made: all other readers need
// the result of that, so that they come after its loop.
void FindTakers(const SketchContext& context, std::vector<Member>& members) {
  for (Member& made : members) {
    const std::set<int> readers = context.fusion->Readers(made.block);
    for (size_t m = 0; m < members.size() && made.taken_by < 0; ++m) {
      const Member& taker = members[m];
      if (!TakesElements(context.block(taker.block), taker.along, context.block(made.block))) continue;
      const bool comes_first = std::ranges::all_of(readers, [&](int reader) {
        return reader == taker.block || ReadsAfter(*context.fusion, taker.block, reader);
      });
      if (comes_first) made.taken_by = static_cast<int>(m);
    }
  }
}

class RowsStep : public SketchStep {
 public:
  RowsStep(const SketchContext& context, RowNest rows, int in_pieces_of)
      : SketchStep(absl::StrCat("rows(", context.block(rows.leader).name, ")")),
        context_(context),
        leader_(rows.leader),
        in_pieces_of_(in_pieces_of),
        depth_(static_cast<size_t>(rows.depth)),
        members_(std::move(rows.members)),
        lanes_(context.target.lanes(32)) {
    const BlockInfo& last = context.block(leader_);
    for (size_t i = 0; i < depth_; ++i) rows_ *= last.extents[i];
    int64_t shortest = 0;
    for (const Member& member : members_) {
      if (member.along < 0) continue;
      const int64_t extent = context.block(member.block).extents[static_cast<size_t>(member.along)];
      shortest = shortest == 0 ? extent : std::min(shortest, extent);
    }
    std::vector<int64_t> vectors;
    for (const int64_t v : {1, 2, 4, 8}) {
      if (v * lanes_ <= shortest) vectors.push_back(v);
    }
    if (!vectors.empty()) {
      vectors_knob_ = static_cast<int>(knobs_.size());
      knobs_.push_back({absl::StrCat(last.name, ".vectors"), vectors});
    }
    if (inside()) return;  // whose pieces the threads share out, and read from near
    if (context.threads > 1) {
      parallel_knob_ = static_cast<int>(knobs_.size());
      knobs_.push_back({absl::StrCat(last.name, ".parallel"), {1, 0}});
    }
    if (CanStream(context.nest_context(), leader_)) {
      stream_knob_ = static_cast<int>(knobs_.size());
      knobs_.push_back({absl::StrCat(last.name, ".stream"), {0, 1}});
    }
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan& plans) const override {
    const double vectors = vectors_knob_ < 0 ? 1 : static_cast<double>(values[static_cast<size_t>(vectors_knob_)]);
    double cycles = CyclesOf(context_.block(leader_), -1, vectors), bytes = 0;
    for (const Member& member : members_) cycles += CyclesOf(context_.block(member.block), member.along, vectors);
    for (const BlockInfo::Access& read : context_.block(leader_).reads)
      bytes += static_cast<double>(read.elements * read.buffer.type().bytes());
    const int64_t pieces = inside() ? plans[static_cast<size_t>(in_pieces_of_)].Pieces() : context_.threads;
    const double part = 2 * bytes / static_cast<double>(pieces);  // that a thread reads and writes at a time
    const double footprint = inside() ? FootprintOfThreads(context_.target, context_.threads, part) : part;
    const double reads = bytes / BytesPerCycle(context_.target, context_.machine, footprint);
    const Written written{.bytes = bytes, .cold = context_.block(leader_).output_cold};
    const double writes =
        inside() ? reads : StoreCycles(context_.nest_context(), written, 2 * bytes, Has(stream_knob_, values));
    const double us = (std::max(cycles, reads + writes) + kNotHidden * std::min(cycles, reads + writes)) /
                      context_.machine.cycles_per_us();
    if (inside()) {
      const int64_t rounds = (pieces + context_.threads - 1) / context_.threads;  // of the busiest thread
      return us * static_cast<double>(rounds) / static_cast<double>(pieces);
    }
    return Has(parallel_knob_, values) ? ParallelTime(context_.machine, us, rows_, context_.threads) : us;
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    Schedule& schedule = build.schedule;
    const int64_t vectors = vectors_knob_ < 0 ? 1 : values[static_cast<size_t>(vectors_knob_)];
    HONE_ASSIGN_OR_RETURN(const BlockRef leader, GetBlock(schedule, context_.block(leader_).name));
    size_t depth = depth_;  // of the loops over rows
    if (inside()) {
      const std::vector<LoopRef>& pieces = build.pieces[static_cast<size_t>(in_pieces_of_)];
      HONE_RETURN_IF_ERROR(ComputeAt(schedule, leader, pieces.back(), /*preserve_unit_loops=*/true));
      depth += pieces.size();
    }
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> rows, GetLoops(schedule, leader));
    rows.resize(depth);
    HONE_RETURN_IF_ERROR(VectorizeElements(schedule, context_.block(leader_), leader, depth));
    if (Has(stream_knob_, values)) HONE_RETURN_IF_ERROR(Stream(schedule, leader, 0));
    struct Placed {
      BlockRef block, partial;
    };
    std::vector<Placed> placed;
    for (const Member& member : members_) {
      Placed& here = placed.emplace_back();
      HONE_ASSIGN_OR_RETURN(here.block, GetBlock(schedule, context_.block(member.block).name));
      if (member.along >= 0) {
        HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> loops, LoopsOfIters(schedule, here.block));
        HONE_ASSIGN_OR_RETURN(
            here.partial,
            SplitIntoLanes(schedule, here.block, *loops[static_cast<size_t>(member.along)], vectors * lanes_));
      }
    }
    for (size_t m = members_.size(); m-- > 0;) {  // readers first
      if (members_[m].taken_by >= 0) {
        const BlockRef taker = placed[static_cast<size_t>(members_[m].taken_by)].partial;
        HONE_RETURN_IF_ERROR(
            ComputeInSteps(schedule, context_.block(members_[m].block), placed[m].block, taker, depth));
        continue;
      }
      HONE_RETURN_IF_ERROR(ComputeAt(schedule, placed[m].block, rows.back()));
      if (members_[m].along >= 0) {
        HONE_RETURN_IF_ERROR(ComputeAt(schedule, placed[m].partial, rows.back()));
        HONE_RETURN_IF_ERROR(FinishLanes(schedule, placed[m].block, placed[m].partial, depth, vectors, lanes_));
      } else if (!context_.block(members_[m].block).reduces) {
        HONE_RETURN_IF_ERROR(VectorizeElements(schedule, context_.block(members_[m].block), placed[m].block, depth));
      }
    }
    return Has(parallel_knob_, values) ? FuseAndParallel(schedule, std::move(rows)) : absl::OkStatus();
  }

 private:
  bool inside() const { return in_pieces_of_ >= 0; }
  static bool Has(int knob, std::span<const int64_t> values) {
    return knob >= 0 && values[static_cast<size_t>(knob)] == 1;
  }

  // In the innermost loop over the steps of a reduction in lanes, which has none where one step is all of a row.
  absl::Status ComputeInSteps(Schedule& schedule, const BlockInfo& info, BlockRef block, BlockRef partial,
                              size_t depth) const {
    constexpr size_t kOfLanes = 2;  // loops of a step: over vectors, and the vector
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, partial));
    const size_t outer = std::max(depth, loops.size() - kOfLanes);
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, block, loops[outer - 1]));
    const int last = static_cast<int>(info.iters.size()) - 1;
    return VectorizeInnermost(schedule, block, outer, LanesFor(context_.target, info, last), true);
  }

  // Below the rows, where the last variable is the last dimension of the output and long enough.
  absl::Status VectorizeElements(Schedule& schedule, const BlockInfo& info, BlockRef block, size_t depth) const {
    const int last = static_cast<int>(info.iters.size()) - 1;
    if (info.last_iter() != last || info.extents.back() < 4) return absl::OkStatus();
    return VectorizeInnermost(schedule, block, depth, LanesFor(context_.target, info, last), false);
  }

  double CyclesOf(const BlockInfo& block, int along, double vectors) const {
    const double instances = static_cast<double>(block.instances());
    const double operations = block.operations / context_.machine.fma_per_cycle(context_.target.vector_bits);  // cycles
    if (!block.reduces)
      return instances / (block.extents.empty() || block.extents.back() < 4 ? 1 : lanes_) * (operations + 2);
    if (along < 0) return instances * (4 + block.operations);
    return instances / lanes_ * std::max(context_.machine.fma_latency / vectors, operations) +
           static_cast<double>(rows_) * (10 + vectors * 4);
  }

  SketchContext context_;
  int leader_;
  int in_pieces_of_;             // -1: it has loops of its own
  size_t depth_;                 // of the leader's variables, those over rows: the outermost
  std::vector<Member> members_;  // in program order
  int lanes_;
  int64_t rows_ = 1;
  int vectors_knob_ = -1, parallel_knob_ = -1, stream_knob_ = -1;
};

// Finds the blocks whose elements belong to one row of the leader, and how many of its loops a row is.
class RowFinder {
 public:
  RowFinder(const SketchContext& context, const Sketch& sketch, int leader)
      : context_(context), sketch_(sketch), leader_(leader) {
    const BlockInfo& last = context.block(leader);
    std::vector<int> own;
    for (const int iter : last.output_iters) own.push_back(iter);
    rows_of_.resize(context.info->blocks.size());
    rows_of_[static_cast<size_t>(leader)] = own;
    depth_ = static_cast<int>(last.iters.size());
    for (int before = -1; before != depth_;) {  // what joined when a row was less may not belong to it now
      before = depth_;
      members_.clear();
      for (int i = leader - 1; i >= 0; --i) {
        if (Joins(i)) members_.insert(members_.begin(), i);
      }
    }
  }

  int depth() const { return depth_; }
  const std::vector<int>& members() const { return members_; }

  // Which variable of the leader each dimension of the block's output is indexed by; -1: several or none.
  std::optional<std::vector<int>> RowsOf(int index) const {
    const BlockInfo& block = context_.block(index);
    std::optional<std::vector<int>> rows;
    for (const int c : context_.info->Consumers(index)) {
      if (!InGroup(c)) return std::nullopt;
      const BlockInfo& consumer = context_.block(c);
      for (const BlockInfo::Access& read : consumer.reads) {
        if (!(read.buffer == block.output)) continue;
        std::vector<int> seen;
        for (const Expr& at : read.indices) seen.push_back(LeaderIter(consumer, c, at));
        if (!rows.has_value()) {
          rows = seen;
        } else {
          for (size_t d = 0; d < seen.size(); ++d) {
            if ((*rows)[d] != seen[d]) (*rows)[d] = -1;
          }
        }
      }
    }
    return rows;
  }

 private:
  bool InGroup(int block) const {
    return block == leader_ || std::find(members_.begin(), members_.end(), block) != members_.end();
  }

  int LeaderIter(const BlockInfo& consumer, int c, const Expr& at) const {
    const VarRef* ref = at.As<VarRef>();
    if (ref == nullptr) return -1;
    const std::vector<int>& rows = rows_of_[static_cast<size_t>(c)];
    for (size_t d = 0; d < consumer.output_iters.size() && d < rows.size(); ++d) {
      const int iter = consumer.output_iters[d];
      if (iter >= 0 && consumer.iters[static_cast<size_t>(iter)].var == ref->var) return rows[d];
    }
    return -1;
  }

  bool Joins(int i) {
    const BlockInfo& block = context_.block(i);
    if (sketch_.at(i).fate != SketchBlock::Fate::kOpen || block.writes_param || !block.single_store ||
        IsTileable(block))
      return false;
    if (context_.info->Consumers(i).empty()) return false;
    const std::optional<std::vector<int>> rows = RowsOf(i);
    if (!rows.has_value() || rows->size() != block.output_iters.size()) return false;
    const BlockInfo& last = context_.block(leader_);
    int depth = 0;
    int64_t count = 1;
    for (; depth < depth_; ++depth) {
      const int64_t extent = last.extents[static_cast<size_t>(depth)];
      if (extent > 1 && std::find(rows->begin(), rows->end(), depth) == rows->end()) break;
      count *= extent;
    }
    if (count <= 1) return false;
    for (size_t d = 0; d < rows->size(); ++d) {  // all variables of a reduction but its own are rows
      const int iter = block.output_iters[d];
      const bool is_row = (*rows)[d] >= 0 && (*rows)[d] < depth;
      if (block.reduces && !is_row && (iter < 0 || block.extents[static_cast<size_t>(iter)] > 1)) return false;
    }
    depth_ = depth;
    rows_of_[static_cast<size_t>(i)] = *rows;
    return true;
  }

  const SketchContext& context_;
  const Sketch& sketch_;
  int leader_;
  int depth_ = 0;
  std::vector<int> members_;
  std::vector<std::vector<int>> rows_of_;  // by block: the leader's variable for each dimension of its output
};

class RowsRule : public SketchRule {
 public:
  std::string name() const override { return "rows"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    std::optional<RowNest> rows = FindRows(context, sketch, block);
    if (!rows.has_value()) return {};
    Sketch joined = sketch;
    AddRows(context, *std::move(rows), -1, joined);
    joined.choices.push_back(joined.steps.back()->label());
    return {std::move(joined), sketch};
  }
};

}  // namespace

std::optional<RowNest> FindRows(const SketchContext& context, const Sketch& sketch, int leader) {
  const BlockInfo& block = context.block(leader);
  if (sketch.at(leader).fate != SketchBlock::Fate::kOpen || block.reduces || !block.single_store ||
      !WritesAtItsOwnVariables(block))
    return std::nullopt;
  const RowFinder finder(context, sketch, leader);
  RowNest rows{.leader = leader, .depth = finder.depth(), .members = {}, .rows_of = {}};
  bool reduces = false;
  for (const int member : finder.members()) {
    rows.members.push_back({member, AlongMemory(context.block(member), context.target.lanes(32))});
    reduces = reduces || context.block(member).reduces;
  }
  if (!reduces) return std::nullopt;
  for (int i = 0; i < leader; ++i) rows.rows_of.push_back(finder.RowsOf(i));
  FindTakers(context, rows.members);
  return rows;
}

void AddRows(const SketchContext& context, RowNest rows, int in_pieces_of, Sketch& sketch) {
  sketch.at(rows.leader).fate = SketchBlock::Fate::kTaken;
  for (const Member& member : rows.members) sketch.at(member.block).fate = SketchBlock::Fate::kTaken;
  sketch.steps.push_back(std::make_shared<RowsStep>(context, std::move(rows), in_pieces_of));
}

std::unique_ptr<SketchRule> MakeRowsRule() { return std::make_unique<RowsRule>(); }

}  // namespace hone
