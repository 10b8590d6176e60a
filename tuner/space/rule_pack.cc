// Pack: an operand that moves with the vectorised variable is stored in panels, so that the tile reads it in one
// stream.
//
//   B[k, n]   =>   B[n // nr, k, n % nr]       nr: the tile's width
//
// A constant is packed when the kernel is deployed (layout_constant); another operand in front of the nest
// (cache_read).
#include "absl/strings/str_cat.h"
#include "compiler/schedule/locate.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

class PackStep : public SketchStep {
 public:
  PackStep(const SketchContext& context, int block, int read, int along)
      : SketchStep(absl::StrCat("pack(", context.block(block).name, ".",
                                context.block(block).reads[static_cast<size_t>(read)].buffer.name(), ")")),
        context_(context),
        block_(block),
        along_(along),
        read_(context.block(block).reads[static_cast<size_t>(read)]) {}

  // A constant costs nothing when the kernel runs; the copy of another is read and written once.
  std::optional<double> Cost(std::span<const int64_t>, const SketchPlan&) const override {
    if (read_.constant) return 0;
    const double bytes = static_cast<double>(read_.elements * read_.buffer.type().bytes());
    const double cycles =
        static_cast<double>(read_.elements) + 2 * bytes / BytesPerCycle(context_.target, context_.machine, 2 * bytes);
    return ParallelTime(context_.machine, cycles / context_.machine.cycles_per_us(), context_.threads,
                        context_.threads);
  }

  absl::Status Apply(std::span<const int64_t>, const SketchPlan& plan, SketchBuild& build) const override {
    const BlockInfo& info = context_.block(block_);
    const int64_t nr = plan[static_cast<size_t>(block_)].inner[static_cast<size_t>(info.last_iter())];
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, info.name));
    return PackOperand(build.schedule, block, read_, along_, nr, context_.threads);
  }

 private:
  SketchContext context_;
  int block_;
  int along_;  // the operand's dimension indexed by the vectorised variable
  BlockInfo::Access read_;
};

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
      const int along = DimensionToPack(info, info.reads[r], lanes);
      if (along < 0) continue;
      apart = apart || info.reads[r].strides[static_cast<size_t>(info.last_iter())] != 1;
      packed.at(block).packed.push_back(static_cast<int>(r));
      packed.steps.push_back(std::make_shared<PackStep>(context, block, static_cast<int>(r), along));
      packed.choices.push_back(packed.steps.back()->label());
    }
    if (packed.at(block).packed.empty()) return {};
    std::vector<Sketch> offers{std::move(packed)};
    if (apart) offers.push_back(sketch);
    return offers;
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePackRule() { return std::make_unique<PackRule>(); }

}  // namespace hone
