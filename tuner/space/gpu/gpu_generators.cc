#include "tuner/space/gpu/gpu_generators.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/sketches/sketch_family.h"

namespace hone {
namespace {

// Whether a block widens elements that warps could multiply as they are: the product does that itself, then.
bool WidensForWarps(const WorkloadInfo& info, const BlockInfo& block, int product, const GpuTarget& target) {
  if (!block.converts || block.operations > 0 || !block.single_store || block.writes_param || block.reads.size() != 1)
    return false;
  const DType type = block.reads[0].buffer.type();
  return WritesAtItsOwnVariables(block) &&
         FindWarpProduct(type, type, info.blocks[static_cast<size_t>(product)].output.type(), FeaturesOf(target)) !=
             nullptr;
}

// What makes an operand of a product does so where that is read, or copied to shared memory. A border is made again by
// every other reader: that costs less than another launch.
std::vector<int> ToInline(const WorkloadInfo& info, const GpuTarget& target) {
  const BlockFusion fusion(info);
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(info.blocks.size()); ++i) {
    const BlockInfo& block = info.blocks[static_cast<size_t>(i)];
    const std::vector<int> consumers = info.Consumers(i);
    const bool border = block.pads && block.single_store && !block.reduces && !block.writes_param &&
                        WritesAtItsOwnVariables(block) && consumers.size() == 1;
    const auto is_product = [&](int c) { return IsGpuProduct(info, c); };
    const bool widens = !consumers.empty() && std::ranges::all_of(consumers, [&](int c) {
      return is_product(c) && WidensForWarps(info, block, c, target);
    });
    if (widens || ((border || fusion.IsInlined(i)) && std::ranges::none_of(consumers, is_product))) found.push_back(i);
  }
  return found;
}

// Inlines in `schedule`, and fills in what all sketches share.
absl::Status InlineAll(Schedule& schedule, SketchFamily& family, const GpuTarget& target) {
  for (;;) {
    HONE_ASSIGN_OR_RETURN(family.info, AnalyzeWorkload(schedule.func()));
    const std::vector<int> blocks = ToInline(family.info, target);
    if (blocks.empty()) return absl::OkStatus();
    for (const int block : blocks) {
      const std::string& name = family.info.blocks[static_cast<size_t>(block)].name;
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
      family.inlined.push_back(name);
    }
  }
}

// The rules for products that are for a block, those first that use most of a device.
std::vector<GpuNestRef> ProductNestsOf(const GpuContextRef& context, int block) {
  std::vector<GpuNestRef> nests = {MakeWarpProductNest(context, block),
                                   MakeProductNest(context, block, ProductOperands::kShared),
                                   MakeProductNest(context, block, ProductOperands::kDirect)};
  std::erase(nests, nullptr);
  return nests;
}

// All rules that are for it; the last one is for every block.
std::vector<GpuNestRef> NestsOf(const GpuContextRef& context, int block) {
  std::vector<GpuNestRef> nests = ProductNestsOf(context, block);
  for (GpuNestRef nest : {MakeReductionNest(context, block), MakeTransposeNest(context, block),
                          MakeMapNest(context, block), MakeOneThreadNest(context, block)}) {
    if (nest != nullptr) nests.push_back(std::move(nest));
  }
  return nests;
}

// The values of a step's knobs with the least draft; nullopt where no choice is legal.
std::optional<std::vector<int64_t>> BestValues(const SketchStep& step) {
  std::vector<int64_t> values(step.knobs().size()), best;
  double least = std::numeric_limits<double>::infinity();
  std::vector<size_t> at(values.size(), 0);
  for (;;) {
    for (size_t k = 0; k < values.size(); ++k) values[k] = step.knobs()[k].candidates[at[k]];
    const std::optional<double> us = step.Cost(values, {});
    if (us.has_value() && *us < least) {
      least = *us;
      best = values;
    }
    size_t k = 0;
    while (k < at.size() && ++at[k] == step.knobs()[k].candidates.size()) at[k++] = 0;
    if (k == at.size()) break;
  }
  return least < std::numeric_limits<double>::infinity() ? std::optional(std::move(best)) : std::nullopt;
}

// Whether a nest has taken the block in, or inlined it.
bool IsTaken(Schedule& schedule, const std::string& name) {
  const absl::StatusOr<BlockRef> block = GetBlock(schedule, name);
  if (!block.ok()) return true;
  const absl::StatusOr<std::vector<LoopRef>> loops = GetLoops(schedule, *block);
  if (!loops.ok() || loops->empty()) return false;
  const absl::StatusOr<const For*> outermost = schedule.FindLoop((*loops)[0]);
  return outermost.ok() && (*outermost)->kind == ForKind::kThreadBinding;
}

// Makes sketches by trying steps on a schedule: which blocks are left for steps of their own depends on what moved into
// the loops of those before, and on nothing that knobs say.
class Deriver {
 public:
  Deriver(const SketchFamily& family, const Schedule& inlined, const GpuTarget& target)
      : inlined_(inlined), context_(std::make_shared<GpuContext>(family.info, target)) {}

  std::vector<Sketch> All() const {
    std::vector<Sketch> sketches;
    if (const GpuNestRef rows = MakeRowsNest(context_)) {
      Attempt attempt(inlined_);
      if (attempt.Take(rows, *context_)) sketches.push_back(std::move(attempt.sketch));
    }
    const int heaviest = HeaviestReduction();
    if (heaviest < 0) {
      sketches.push_back(WithNests(-1, nullptr)->sketch);
      return sketches;
    }
    const std::vector<GpuNestRef> nests = NestsOf(context_, heaviest);
    for (const GpuNestRef& nest : nests) {
      if (nest == nests.back() && !sketches.empty()) break;  // one thread: where all else was refused
      if (std::optional<Attempt> attempt = WithNests(heaviest, nest)) sketches.push_back(std::move(attempt->sketch));
    }
    return sketches;
  }

  // Those that take the heaviest block for the product or the reduction that it is.
  std::vector<Sketch> InParts() const {
    std::vector<Sketch> sketches;
    const int heaviest = HeaviestReduction();
    std::vector<GpuNestRef> nests = ProductNestsOf(context_, heaviest);
    if (!IsGpuProduct(context_->info, heaviest)) nests = {MakeReductionNest(context_, heaviest)};
    for (const GpuNestRef& nest : nests) {
      if (nest == nullptr) continue;
      if (std::optional<Attempt> attempt = WithNests(heaviest, nest)) sketches.push_back(std::move(attempt->sketch));
    }
    return sketches;
  }

 private:
  // A sketch so far, and the schedule that its steps gave with their best drafts.
  struct Attempt {
    explicit Attempt(const Schedule& start) : schedule(start) {}
    bool Take(const GpuNestRef& nest, const GpuContext& context) {
      const std::optional<std::vector<int64_t>> values = BestValues(*nest);
      if (!values.has_value()) return false;
      Schedule tried = schedule;
      SketchBuild build{tried, context.info, {}};
      if (!nest->Apply(*values, {}, build).ok()) return false;
      schedule = std::move(tried);
      sketch.steps.push_back(nest);
      sketch.choices.push_back(nest->label());
      return true;
    }
    Schedule schedule;
    Sketch sketch;
  };

  int HeaviestReduction() const {
    int heaviest = -1;
    for (int i = 0; i < static_cast<int>(context_->info.blocks.size()); ++i) {
      if (!context_->block(i).reduces) continue;
      if (heaviest < 0 || context_->block(i).flop() > context_->block(heaviest).flop()) heaviest = i;
    }
    return heaviest;
  }

  // Every block by the rule with the least draft, `chosen` by `nest`; nullopt where that is refused.
  std::optional<Attempt> WithNests(int chosen, const GpuNestRef& nest) const {
    Attempt attempt(inlined_);
    for (const bool reduces :
         {true, false}) {  // reductions take what makes their operands and what takes their results
      for (int i = 0; i < static_cast<int>(context_->info.blocks.size()); ++i) {
        if (context_->block(i).reduces != reduces || IsTaken(attempt.schedule, context_->block(i).name)) continue;
        if (i == chosen) {
          if (!attempt.Take(nest, *context_)) return std::nullopt;
          continue;
        }
        for (const GpuNestRef& other : ByDraft(NestsOf(context_, i))) {
          if (attempt.Take(other, *context_)) break;
        }
      }
    }
    return attempt;
  }

  static std::vector<GpuNestRef> ByDraft(std::vector<GpuNestRef> nests) {
    const auto draft = [](const GpuNestRef& nest) {
      const std::optional<std::vector<int64_t>> values = BestValues(*nest);
      return values.has_value() ? *nest->Cost(*values, {}) : std::numeric_limits<double>::infinity();
    };
    std::ranges::stable_sort(nests, {}, draft);
    return nests;
  }

  const Schedule& inlined_;
  const GpuContextRef context_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Generator>>> GpuGenerators(const PrimFunc& workload,
                                                                      const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, AnalyzeWorkload(workload));
  std::vector<std::unique_ptr<Generator>> generators;
  std::vector<Rewrite> rewrites = GpuRewrites(info, target);
  for (Rewrite& parts : ReductionParts(info, target)) rewrites.push_back(std::move(parts));
  for (Rewrite& rewrite : rewrites) {
    Schedule schedule(workload);
    if (!rewrite.apply(schedule).ok()) continue;  // not for this workload
    auto family = std::make_shared<SketchFamily>();
    family->workload = workload;
    family->rewrite = std::move(rewrite);
    HONE_RETURN_IF_ERROR(InlineAll(schedule, *family, target));
    const Deriver deriver(*family, schedule, target);
    for (Sketch& sketch : family->rewrite.label.empty() ? deriver.All() : deriver.InParts())
      generators.push_back(MakeSketchGenerator(family, std::move(sketch)));
  }
  return generators;
}

}  // namespace hone
