// Pack: an operand that moves with the vectorised variable is stored in panels, so that the tile reads it in one
// stream.
//
//   B[k, n]   =>   B[n // nr, k, n % nr]       nr: the tile's width
//
// A constant is packed when the kernel is deployed (layout_constant). Another operand is packed in front of the nest
// (cache_read) or in every cache block (pack), and where it lies right perhaps not at all: a knob of the tile.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/nests/lanes.h"
#include "tuner/space/nests/panels.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

class PackRule : public SketchRule {
 public:
  std::string name() const override { return "pack"; }

  // An operand whose elements are apart may be left so too: lanes along k want it as it is. Otherwise a constant in
  // panels is never worse.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block)) return {};
    const BlockInfo& info = context.block(block);
    const int64_t lanes = LanesFor(context.target, info, info.last_iter());
    Sketch packed = sketch;
    bool apart = false;
    for (size_t r = 0; r < std::min(info.reads.size(), kMostReads); ++r) {
      const BlockInfo::Access& read = info.reads[r];
      if (packed.at(block).dot_operand == static_cast<int>(r) || DimensionToPack(info, read, lanes) < 0) continue;
      const bool lies_right = read.strides[static_cast<size_t>(info.last_iter())] == 1;
      // What another block makes may be made where it is read (locate).
      if (lies_right && !read.constant && context.info->Producer(read.buffer) >= 0) continue;
      apart = apart || !lies_right;
      packed.at(block).panels.push_back(static_cast<int>(r));
      if (lies_right && !read.constant) continue;  // its knob includes leaving it as it is
      packed.choices.push_back(absl::StrCat("pack(", info.name, ".", read.buffer.name(), ")"));
    }
    if (packed.at(block).panels.size() == sketch.at(block).panels.size()) return {};
    std::vector<Sketch> offers{std::move(packed)};
    if (apart) offers.push_back(sketch);
    return offers;
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePackRule() { return std::make_unique<PackRule>(); }

}  // namespace hone
