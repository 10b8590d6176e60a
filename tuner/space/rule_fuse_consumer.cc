// Fuse the consumer: the elementwise block that is alone in reading a tiled block is computed tile by tile, while the
// tile is in registers (the move itself is the tile's: rule_tile.cc).
#include "absl/strings/str_cat.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/set_scope.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"

namespace hone {
namespace {

class FuseConsumerStep : public SketchStep {
 public:
  FuseConsumerStep(const SketchContext& context, int block, int consumer, bool in_registers)
      : SketchStep(absl::StrCat("fuse(", context.block(consumer).name, ")")),
        context_(context),
        block_(block),
        consumer_(consumer),
        in_registers_(in_registers) {}

  absl::Status Apply(std::span<const int64_t>, const SketchPlan&, SketchBuild& build) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef consumer, GetBlock(build.schedule, context_.block(consumer_).name));
    build.epilogues[static_cast<size_t>(block_)] = consumer;
    if (!in_registers_) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, context_.block(block_).name));
    return SetScope(build.schedule, block, 0, Scope::kRegister);
  }

 private:
  SketchContext context_;
  int block_, consumer_;
  bool in_registers_;
};

class FuseConsumerRule : public SketchRule {
 public:
  std::string name() const override { return "fuse_consumer"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block)) return {};
    const int consumer = context.fusion->Epilogue(block);
    if (consumer < 0 || sketch.at(consumer).fate != SketchBlock::Fate::kOpen) return {};
    Sketch fused = sketch;
    fused.at(block).epilogue = consumer;
    fused.at(consumer).fate = SketchBlock::Fate::kTaken;
    const bool in_registers = sketch.at(block).partial == SketchBlock::Partial::kNone;
    fused.steps.push_back(std::make_shared<FuseConsumerStep>(context, block, consumer, in_registers));
    return {std::move(fused)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeFuseConsumerRule() { return std::make_unique<FuseConsumerRule>(); }

}  // namespace hone
