// Cut: how the reduction of a tiled block is cut.
//
// Blocks of k: the panels of one block of k stay in cache while all tiles of a piece go over them, and every tile adds
// its registers to memory once a block. How many blocks is a knob of the tile, one among its values.
//   for tile: for k: C[tile] += ..   =>   for k0: for tile: { P = 0; for k1: P += ..;  C[tile] += P }
// Lanes of k: vectors run along k where the operands do; a tile of results is gathered from its lanes at the end.
//   for tile: for k: C[tile] += ..   =>   for tile: { for k0: for vectorized lane: P[lane] += ..;  C[tile] = sum(P) }
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

class CutRule : public SketchRule {
 public:
  std::string name() const override { return "cut"; }

  // Where an operand would be gathered lane by lane, only lanes along k are worth having.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const BlockInfo& info = context.block(block);
    // Sums in tile registers cannot be added to others on the way to memory.
    if (!WillBeTiled(context, sketch, block) || !info.splits || sketch.at(block).in_matrices()) return {};
    std::vector<Sketch> offers;
    const std::vector<int>& panels = sketch.at(block).panels;
    const int lanes_along = panels.empty() && !sketch.at(block).dot.has_value() ? LanesAlong(context, block) : -1;
    const bool gathers = Gathers(info, panels);
    if (lanes_along < 0 || !gathers) {
      Sketch& whole = offers.emplace_back(sketch);
      if (const int longest = Longest(info); longest >= 0 && !gathers && BlocksOfK(info, longest).size() > 1) {
        whole.at(block).cut = ReductionCut::kBlocks;
        whole.at(block).along = longest;
      }
    }
    if (lanes_along >= 0) {
      Sketch& lanes = offers.emplace_back(sketch);
      lanes.at(block).cut = ReductionCut::kLanes;
      lanes.at(block).along = lanes_along;
      lanes.choices.push_back(absl::StrCat("k_lanes(", info.name, ")"));
    }
    return offers;
  }

 private:
  // An operand that would be gathered lane by lane.
  static bool Gathers(const BlockInfo& block, const std::vector<int>& panels) {
    for (size_t r = 0; r < block.reads.size(); ++r) {
      const int64_t stride = block.reads[r].strides[static_cast<size_t>(block.last_iter())];
      const bool in_panels = std::find(panels.begin(), panels.end(), static_cast<int>(r)) != panels.end();
      if (!in_panels && stride != 0 && stride != 1) return true;
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

std::unique_ptr<SketchRule> MakeCutRule() { return std::make_unique<CutRule>(); }

}  // namespace hone
