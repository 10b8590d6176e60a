// Pack: an operand that moves with the vectorised variable is stored in panels, so that the tile reads it in one
// stream.
//
//   B[k, n]   =>   B[n // nr, k, n % nr]       nr: the tile's width
//
// A constant is packed when the kernel is deployed (layout_constant); another operand in front of the nest
// (cache_read).
#include "absl/strings/str_cat.h"
#include "tuner/space/sketch.h"
#include "tuner/space/stage.h"

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
    for (size_t r = 0; r < info.reads.size(); ++r) {
      if (DimensionToPack(info, info.reads[r], lanes) < 0) continue;
      apart = apart || info.reads[r].strides[static_cast<size_t>(info.last_iter())] != 1;
      packed.at(block).panels.push_back(static_cast<int>(r));
      packed.choices.push_back(absl::StrCat("pack(", info.name, ".", info.reads[r].buffer.name(), ")"));
    }
    if (packed.at(block).panels.empty()) return {};
    std::vector<Sketch> offers{std::move(packed)};
    if (apart) offers.push_back(sketch);
    return offers;
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePackRule() { return std::make_unique<PackRule>(); }

}  // namespace hone
