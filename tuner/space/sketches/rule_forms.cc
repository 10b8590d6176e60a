// Forms: two blocks without reduction that choose among forms by their iteration variables, such as the two halves of a
// Winograd transform. What is chosen by is unrolled, so that every form is straight code on vectors, and the first
// block computes into registers what one tile of the second reads:
//
//   parallel tiles: for c0:
//     unroll i, l: vectorized c1:  D[i, l, c1] = form i of a column of the tile
//     unroll i, j: vectorized c1:  V[i, j, tile, c0, c1] = form j of D[i, ..]
//
// In the pieces of a product between two transforms (rule_blocks.cc) the tiles are those that the piece needs.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/sketches/sketch.h"
#include "tuner/space/workload/block_fusion.h"

namespace hone {
namespace {

// Additions and multiplications of a row of a transform, about; those of all forms together say little of one.
constexpr double kOperationsOfForm = 4;

class FormsStep : public SketchStep {
 public:
  FormsStep(const SketchContext& context, const Sketch& sketch, int block, int producer)
      : SketchStep(absl::StrCat("forms(", context.block(block).name, ")")),
        block_(context.block(block)),
        producer_(context.block(producer)),
        forms_(JoinedForms(block_, producer_)),
        in_pieces_of_(sketch.at(block).in_pieces_of),
        cuts_pieces_(in_pieces_of_ >= 0 && sketch.at(in_pieces_of_).pieces_of == block),
        target_(context.target),
        machine_(context.machine),
        threads_(context.threads) {
    const int native = target_.lanes(std::max(32, static_cast<int>(block_.output.type().bits)));
    const bool along_memory = block_.last_iter() == static_cast<int>(block_.iters.size()) - 1 && forms_.back() == 0;
    lanes_ = along_memory && block_.extents.back() % native == 0 ? native : 1;
    if (threads_ > 1 && in_pieces_of_ < 0) knobs_.push_back({absl::StrCat(block_.name, ".parallel"), {0, 1}});
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan& plan) const override {
    const double vectors = static_cast<double>(block_.instances() + producer_.instances()) / lanes_;
    const double per_vector =
        kOperationsOfForm / machine_.fma_per_cycle(target_.vector_bits) + 1.5;  // and a load or store
    const bool in_piece = in_pieces_of_ >= 0;
    const double pieces = in_piece ? static_cast<double>(plan[static_cast<size_t>(in_pieces_of_)].Pieces()) : 1;
    double bytes = static_cast<double>(block_.instances()) * block_.output.type().bytes();
    for (const BlockInfo::Access& read : producer_.reads)
      bytes += static_cast<double>(read.elements * read.buffer.type().bytes());
    // What lies between the transforms and the product stays in the cache from one piece to the next.
    const double footprint = in_piece ? bytes / pieces : bytes / threads_;
    const double cycles = std::max(vectors * per_vector, bytes / BytesPerCycle(target_, machine_, footprint));
    const double us = cycles / machine_.cycles_per_us();
    if (in_piece) return us * std::ceil(pieces / threads_) / pieces;  // of the busiest thread
    return RunsInParallel(values) ? ParallelTime(machine_, us, Tiles(), threads_) : us;
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    Schedule& schedule = build.schedule;
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, block_.name));
    HONE_ASSIGN_OR_RETURN(const BlockRef producer, GetBlock(schedule, producer_.name));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, block));
    std::vector<LoopRef> around;  // over pieces
    if (in_pieces_of_ >= 0) {
      around = build.pieces[static_cast<size_t>(in_pieces_of_)];
      if (!cuts_pieces_) HONE_RETURN_IF_ERROR(ComputeAt(schedule, block, around.back()));
      HONE_ASSIGN_OR_RETURN(loops, GetLoops(schedule, block));
      loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(around.size()));
    }
    HONE_ASSIGN_OR_RETURN(const Tile tile, CutTile(schedule, block, loops));
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, producer, tile.outer.empty() ? around.back() : tile.outer.back()));
    HONE_RETURN_IF_ERROR(SetScope(schedule, producer, 0, Scope::kRegister));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> produced, GetLoops(schedule, producer));
    produced.erase(produced.begin(), produced.begin() + static_cast<std::ptrdiff_t>(around.size() + tile.outer.size()));
    HONE_RETURN_IF_ERROR(UnrollAndVectorize(schedule, std::move(produced)));
    HONE_RETURN_IF_ERROR(UnrollAndVectorize(schedule, tile.inner));
    if (!RunsInParallel(values)) return absl::OkStatus();
    std::vector<LoopRef> outer = tile.outer;
    if (lanes_ > 1 && outer.size() > 1) outer.pop_back();  // tiles are shared out, not pieces of them
    return FuseAndParallel(schedule, std::move(outer));
  }

 private:
  struct Tile {
    std::vector<LoopRef> outer, inner;  // over tiles; of one, the vector last
  };

  // Splits the loops of the block, and puts those of a tile innermost.
  absl::StatusOr<Tile> CutTile(Schedule& schedule, BlockRef block, const std::vector<LoopRef>& loops) const {
    HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> by_iter, LoopsOfIters(schedule, block, loops));
    Tile tile;
    for (size_t i = 0; i < by_iter.size(); ++i) {
      if (!by_iter[i].has_value()) continue;  // one iteration
      const LoopRef loop = *by_iter[i];
      const bool last = i + 1 == by_iter.size() && lanes_ > 1;
      if (forms_[i] == block_.extents[i]) {
        tile.inner.push_back(loop);
      } else if (forms_[i] > 0 || last) {
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, loop, {-1, last ? lanes_ : forms_[i]}));
        tile.outer.push_back(parts[0]);
        tile.inner.push_back(parts[1]);
      } else {
        tile.outer.push_back(loop);
      }
    }
    std::vector<LoopRef> order = tile.outer;
    order.insert(order.end(), tile.inner.begin(), tile.inner.end());
    HONE_RETURN_IF_ERROR(Reorder(schedule, order));
    return tile;
  }

  bool RunsInParallel(std::span<const int64_t> values) const { return !knobs_.empty() && values[0] == 1; }
  int64_t Tiles() const {
    int64_t tiles = 1;
    for (size_t i = 0; i + 1 < forms_.size(); ++i) {
      const int64_t size = std::max<int64_t>(1, forms_[i]);  // of a tile in this direction
      tiles *= (block_.extents[i] + size - 1) / size;
    }
    return tiles;
  }
  absl::Status UnrollAndVectorize(Schedule& schedule, std::vector<LoopRef> loops) const {
    if (lanes_ > 1) {
      HONE_RETURN_IF_ERROR(Vectorize(schedule, loops.back()));
      loops.pop_back();
    }
    for (const LoopRef loop : loops) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
    return absl::OkStatus();
  }

  const BlockInfo& block_;
  const BlockInfo& producer_;
  std::vector<int64_t> forms_;
  int in_pieces_of_;  // a tiled block; -1: it is a nest of its own
  bool cuts_pieces_;  // the loops over pieces are those of `block_`
  Target target_;
  Machine machine_;
  int threads_;
  int lanes_ = 1;
};

class FormsRule : public SketchRule {
 public:
  std::string name() const override { return "forms"; }

  // `block` is the reader: both it and the only block it takes open results of choose, and nobody else reads that one.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const BlockInfo& info = context.block(block);
    if (sketch.at(block).fate != SketchBlock::Fate::kOpen || info.reduces || !info.single_store || !info.chooses())
      return {};
    const int producer = ProducerOfForms(*context.info, block);
    if (producer < 0 || sketch.at(producer).fate != SketchBlock::Fate::kOpen) return {};
    // The producer goes into a loop over tiles.
    if (JoinedForms(info, context.block(producer)) == info.extents) return {};
    Sketch joined = sketch;
    joined.at(block).fate = SketchBlock::Fate::kOwnNest;
    joined.at(producer).fate = SketchBlock::Fate::kTaken;
    joined.steps.push_back(std::make_shared<FormsStep>(context, sketch, block, producer));
    return {std::move(joined)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeFormsRule() { return std::make_unique<FormsRule>(); }

}  // namespace hone
