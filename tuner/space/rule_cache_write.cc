// Cache write: a tiled block without a consumer to fuse accumulates in registers and is copied to where it belongs tile
// by tile.
#include "absl/strings/str_cat.h"
#include "compiler/schedule/cache.h"
#include "compiler/schedule/locate.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"

namespace hone {
namespace {

class CacheWriteStep : public SketchStep {
 public:
  CacheWriteStep(const SketchContext& context, int block)
      : SketchStep(absl::StrCat("cache_write(", context.block(block).name, ")")), context_(context), block_(block) {}

  absl::Status Apply(std::span<const int64_t>, const SketchPlan&, SketchBuild& build) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, context_.block(block_).name));
    HONE_ASSIGN_OR_RETURN(build.epilogues[static_cast<size_t>(block_)],
                          CacheWrite(build.schedule, block, 0, Scope::kRegister));
    return absl::OkStatus();
  }

 private:
  SketchContext context_;
  int block_;
};

class CacheWriteRule : public SketchRule {
 public:
  std::string name() const override { return "cache_write"; }

  // Partial results are in registers already.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block) || sketch.at(block).epilogue >= 0 ||
        sketch.at(block).partial != SketchBlock::Partial::kNone) {
      return {};
    }
    Sketch cached = sketch;
    cached.steps.push_back(std::make_shared<CacheWriteStep>(context, block));
    return {std::move(cached)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeCacheWriteRule() { return std::make_unique<CacheWriteRule>(); }

}  // namespace hone
