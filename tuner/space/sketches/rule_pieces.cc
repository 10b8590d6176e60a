// Pieces: a long reduction to few values is cut into pieces whose partial results are computed in parallel (rfactor),
// each with vectors of partial results of its own.
//
//   for r: for k: C[r] += A[r, k]   =>   parallel r, p: { for k0: for vectorized k1: Q[k1] += A[r, p, k0, k1]
//                                                         P[p, r] = sum(Q) }
//                                        for r: for p: C[r] += P[p, r]
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

constexpr int64_t kWorthCutting = 8192;  // terms, below which handing out pieces costs more than it gives

class PiecesStep : public SketchStep {
 public:
  PiecesStep(const SketchContext& context, int block, int cut, int along)
      : SketchStep(absl::StrCat("pieces(", context.block(block).name, ")")),
        context_(context),
        block_(block),
        cut_(cut),
        along_(along),
        lanes_(context.target.lanes(32)) {
    const BlockInfo& info = context.block(block);
    std::vector<int64_t> pieces = DivisorsUpTo(info.extents[static_cast<size_t>(cut)], 64);
    std::erase(pieces, 1);
    knobs_.push_back({absl::StrCat(info.name, ".pieces"), std::move(pieces)});
    std::vector<int64_t> vectors;
    for (const int64_t v : {1, 2, 4, 8}) {
      if (v * lanes_ <= info.extents[static_cast<size_t>(along)]) vectors.push_back(v);
    }
    knobs_.push_back({absl::StrCat(info.name, ".vectors"), std::move(vectors)});
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const BlockInfo& info = context_.block(block_);
    int64_t rows = 1;
    for (int i = 0; i < static_cast<int>(info.iters.size()); ++i)
      rows *= info.spatial(i) ? info.extents[static_cast<size_t>(i)] : 1;
    const int64_t inside = info.extents[static_cast<size_t>(along_)] / (cut_ == along_ ? values[0] : 1);
    if (values[1] * lanes_ > inside) return std::nullopt;
    const double vectors = static_cast<double>(values[1]), partials = static_cast<double>(rows * values[0]);
    const double bytes = static_cast<double>(info.instances() * info.output.type().bytes());
    const double cycles =
        std::max(static_cast<double>(info.instances()) / lanes_ *
                     std::max(context_.machine.fma_latency / vectors,
                              info.operations / context_.machine.fma_per_cycle(context_.target.vector_bits)),
                 bytes / BytesPerCycle(context_.target, context_.machine, bytes / context_.threads)) +
        partials * (10 + 4 * vectors);
    return ParallelTime(context_.machine, cycles / context_.machine.cycles_per_us(), rows * values[0],
                        context_.threads) +
           partials * 4 / context_.machine.cycles_per_us();
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    Schedule& schedule = build.schedule;
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, context_.block(block_).name));
    HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> loops, LoopsOfIters(schedule, block));
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts,
                          Split(schedule, *loops[static_cast<size_t>(cut_)], {values[0], -1}));
    const LoopRef along = cut_ == along_ ? parts[1] : *loops[static_cast<size_t>(along_)];
    HONE_ASSIGN_OR_RETURN(const BlockRef piece, Rfactor(schedule, parts[0], 0));
    HONE_ASSIGN_OR_RETURN(const BlockRef partial, SplitIntoLanes(schedule, piece, along, values[1] * lanes_));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> outer, GetLoops(schedule, piece));
    outer.pop_back();  // the loop that gathers the lanes
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, partial, outer.back()));
    HONE_RETURN_IF_ERROR(FinishLanes(schedule, piece, partial, outer.size(), values[1], lanes_));
    return FuseAndParallel(schedule, std::move(outer));
  }

 private:
  SketchContext context_;
  int block_;
  int cut_;    // the reduce variable that is cut
  int along_;  // the one along memory; may be the same
  int lanes_;
};

class PiecesRule : public SketchRule {
 public:
  std::string name() const override { return "pieces"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const BlockInfo& info = context.block(block);
    if (sketch.at(block).fate != SketchBlock::Fate::kOpen || !info.splits || !info.single_store || context.threads == 1)
      return {};
    int64_t rows = 1, terms = 1;
    int cut = -1, along = -1;
    for (int i = 0; i < static_cast<int>(info.iters.size()); ++i) {
      const int64_t extent = info.extents[static_cast<size_t>(i)];
      (info.spatial(i) ? rows : terms) *= extent;
      if (info.spatial(i)) continue;
      if (cut < 0 && DivisorsUpTo(extent, 64).size() > 1) cut = i;
      for (const BlockInfo::Access& read : info.reads) {
        if (read.strides[static_cast<size_t>(i)] == 1 && extent >= context.target.lanes(32)) along = i;
      }
    }
    if (cut < 0 || along < 0 || terms < kWorthCutting || rows >= 4 * context.threads) return {};
    Sketch pieces = sketch;
    pieces.at(block).fate = SketchBlock::Fate::kOwnNest;
    pieces.steps.push_back(std::make_shared<PiecesStep>(context, block, cut, along));
    pieces.choices.push_back(pieces.steps.back()->label());
    return {std::move(pieces), sketch};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePiecesRule() { return std::make_unique<PiecesRule>(); }

}  // namespace hone
