// Partial: rfactor of a reduction that is tiled.
//
// Blocks of k: the panels of one block of k stay in cache while all tiles of a piece go over them, and every tile adds
// its registers to memory once a block.
//   for tile: for k: C[tile] += ..   =>   for k0: for tile: { P = 0; for k1: P += ..;  C[tile] += P }
// Lanes of k: vectors run along k where the operands do; a tile of results is gathered from its lanes at the end.
//   for tile: for k: C[tile] += ..   =>   for tile: { for k0: for vectorized lane: P[lane] += ..;  C[tile] = sum(P) }
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/rfactor.h"
#include "compiler/schedule/set_scope.h"
#include "compiler/schedule/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

constexpr int64_t kLongReduction = 512;  // below, the panels of a whole reduction are in cache anyway
constexpr int64_t kShortestBlock = 64;

class PartialStep : public SketchStep {
 public:
  PartialStep(const SketchContext& context, int block, int along, SketchBlock::Partial kind)
      : SketchStep(absl::StrCat(kind == SketchBlock::Partial::kLanesOfK ? "k_lanes(" : "k_blocks(",
                                context.block(block).name, ")")),
        context_(context),
        block_(block),
        along_(along),
        kind_(kind) {
    const int64_t extent = context.block(block).extents[static_cast<size_t>(along)];
    if (kind == SketchBlock::Partial::kLanesOfK) {
      lanes_ = LanesFor(context.target, context.block(block), along);
      return;
    }
    Knob blocks{absl::StrCat(context.block(block).name, ".k_blocks"), {}};
    for (const int64_t d : DivisorsUpTo(extent, extent / kShortestBlock)) {
      if (d > 1) blocks.candidates.push_back(d);
    }
    knobs_.push_back(std::move(blocks));
  }

  bool Plan(std::span<const int64_t> values, SketchPlan& plan) const override {
    plan[static_cast<size_t>(block_)].partial = values.empty() ? lanes_ : values[0];
    return true;
  }

  absl::Status Apply(std::span<const int64_t>, const SketchPlan& plan, SketchBuild& build) const override {
    const int64_t count = plan[static_cast<size_t>(block_)].partial;
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, context_.block(block_).name));
    HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> loops, LoopsOfIters(build.schedule, block));
    const LoopRef along = *loops[static_cast<size_t>(along_)];
    const bool of_lanes = kind_ == SketchBlock::Partial::kLanesOfK;
    HONE_ASSIGN_OR_RETURN(
        const std::vector<LoopRef> parts,
        Split(build.schedule, along, of_lanes ? std::vector<Value>{-1, count} : std::vector<Value>{count, -1}));
    HONE_ASSIGN_OR_RETURN(const BlockRef partial, Rfactor(build.schedule, parts[of_lanes ? 1 : 0], of_lanes ? -1 : 0));
    build.partials[static_cast<size_t>(block_)] = partial;
    return SetScope(build.schedule, partial, 0, Scope::kRegister);
  }

 private:
  SketchContext context_;
  int block_;
  int along_;
  SketchBlock::Partial kind_;
  int64_t lanes_ = 1;
};

class PartialRule : public SketchRule {
 public:
  std::string name() const override { return "partial"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block) || !context.block(block).splits) return {};
    std::vector<Sketch> offers;
    const int lanes_along = sketch.at(block).packed.empty() ? LanesAlong(context, block) : -1;
    if (lanes_along < 0 || !Gathers(context.block(block))) offers.push_back(sketch);
    const auto offer = [&](int along, SketchBlock::Partial kind) {
      Sketch& cut = offers.emplace_back(sketch);
      cut.at(block).partial = kind;
      cut.at(block).along = along;
      cut.steps.push_back(std::make_shared<PartialStep>(context, block, along, kind));
      cut.choices.push_back(cut.steps.back()->label());
    };
    if (lanes_along >= 0) offer(lanes_along, SketchBlock::Partial::kLanesOfK);
    const int longest = Longest(context.block(block));
    const bool worth = longest >= 0 && context.block(block).extents[static_cast<size_t>(longest)] >= kLongReduction &&
                       DivisorsUpTo(context.block(block).extents[static_cast<size_t>(longest)],
                                    context.block(block).extents[static_cast<size_t>(longest)] / kShortestBlock)
                               .size() > 1;
    if (worth && !Gathers(context.block(block), sketch.at(block).packed))
      offer(longest, SketchBlock::Partial::kBlocksOfK);
    return offers;
  }

 private:
  // An operand that would be gathered lane by lane.
  static bool Gathers(const BlockInfo& block, const std::vector<int>& packed = {}) {
    for (size_t r = 0; r < block.reads.size(); ++r) {
      const int64_t stride = block.reads[r].strides[static_cast<size_t>(block.last_iter())];
      const bool is_packed = std::find(packed.begin(), packed.end(), static_cast<int>(r)) != packed.end();
      if (!is_packed && stride != 0 && stride != 1) return true;
    }
    return false;
  }
  static int Longest(const BlockInfo& block) {
    int longest = -1;
    for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
      if (block.spatial(i)) continue;
      if (longest < 0 || block.extents[static_cast<size_t>(i)] > block.extents[static_cast<size_t>(longest)])
        longest = i;
    }
    return longest;
  }
  // The reduce variable along which every operand lies, or is one value; -1: there is none that is long enough.
  static int LanesAlong(const SketchContext& context, int index) {
    const BlockInfo& block = context.block(index);
    for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
      const size_t k = static_cast<size_t>(i);
      const int native = context.target.lanes(std::max(32, static_cast<int>(block.output.type().bits)));
      if (block.spatial(i) || block.extents[k] <= native) continue;
      bool along = false, all = true;
      for (const BlockInfo::Access& read : block.reads) {
        all = all && read.affine && (read.strides[k] == 0 || read.strides[k] == 1);
        along = along || (read.strides[k] == 1 && read.strides[static_cast<size_t>(block.last_iter())] != 0);
      }
      if (along && all) return i;
    }
    return -1;
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePartialRule() { return std::make_unique<PartialRule>(); }

}  // namespace hone
