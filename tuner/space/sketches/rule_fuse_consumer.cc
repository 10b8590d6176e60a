// Fuse the consumer: the elementwise block that is alone in reading a tiled block is computed tile by tile, while the
// tile is in registers (the move itself is the builder's: nest_builder.cc).
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

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
    return {std::move(fused)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeFuseConsumerRule() { return std::make_unique<FuseConsumerRule>(); }

}  // namespace hone
