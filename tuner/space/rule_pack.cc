// Pack: an operand that moves with the vectorised variable is stored in panels, so that the tile reads it in one
// stream.
//
//   B[k, n]   =>   B[n // nr, k, n % nr]       nr: the tile's width
//
// A constant is packed when the kernel is deployed (layout_constant); another operand in front of the nest
// (cache_read).
#include "absl/strings/str_cat.h"
#include "compiler/schedule/cache.h"
#include "compiler/schedule/layout_constant.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/transform_layout.h"
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
    const double cycles = static_cast<double>(read_.elements) + 2 * bytes / BytesPerCycle(context_.target, 2 * bytes);
    return ParallelTime(cycles / kCyclesPerMicrosecond, context_.threads, context_.threads);
  }

  absl::Status Apply(std::span<const int64_t>, const SketchPlan& plan, SketchBuild& build) const override {
    const BlockInfo& info = context_.block(block_);
    const int64_t nr = plan[static_cast<size_t>(block_)].inner[static_cast<size_t>(info.last_iter())];
    const IndexMap map = PanelMap(static_cast<int>(read_.indices.size()), along_, nr);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, info.name));
    HONE_ASSIGN_OR_RETURN(const std::optional<int> found, ReadIndex(build.schedule, block, read_.buffer));
    if (!found.has_value()) return absl::OkStatus();
    const int index = *found;
    if (read_.constant) return LayoutConstant(build.schedule, block, index, map);
    HONE_ASSIGN_OR_RETURN(const BlockRef copy, CacheRead(build.schedule, block, index, Scope::kGlobal));
    HONE_RETURN_IF_ERROR(TransformLayout(build.schedule, copy, 0, BufferKind::kWrite, map));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(build.schedule, copy));
    if (context_.threads == 1 || loops.size() < 2) return absl::OkStatus();
    loops.pop_back();
    return FuseAndParallel(build.schedule, std::move(loops));
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
    Sketch packed = sketch;
    bool apart = false;
    for (size_t r = 0; r < info.reads.size(); ++r) {
      const int along = DimensionToPack(context, block, r);
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

 private:
  static int DimensionToPack(const SketchContext& context, int block, size_t read) {
    const BlockInfo& info = context.block(block);
    const size_t n = static_cast<size_t>(info.last_iter());
    const BlockInfo::Access& access = info.reads[read];
    const bool wide = info.extents[n] > LanesFor(context.target, info, info.last_iter());
    if (access.strides[n] == 0 || (access.strides[n] == 1 && !(access.constant && wide))) return -1;
    int along = -1, uses = 0;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const VarRef* ref = access.indices[d].As<VarRef>();
      if (ref == nullptr || !(ref->var == info.iters[n].var)) continue;
      along = static_cast<int>(d);
      ++uses;
    }
    return uses == 1 ? along : -1;
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakePackRule() { return std::make_unique<PackRule>(); }

}  // namespace hone
