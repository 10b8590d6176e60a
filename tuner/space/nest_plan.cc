#include "tuner/space/nest_plan.h"

#include <algorithm>
#include <set>

#include "tuner/space/block_fusion.h"

namespace hone {
namespace {

class Planner {
 public:
  explicit Planner(const WorkloadInfo& info) : info_(info), fusion_(info) {}

  NestPlan Plan() {
    NestPlan plan;
    plan.inlined = fusion_.inlined();
    std::set<int> taken;
    for (int i = 0; i < size(); ++i) {
      if (fusion_.IsInlined(i) || taken.count(i) > 0) continue;
      Nest nest;
      nest.block = i;
      nest.kind = KindOf(i);
      if (nest.kind == Nest::Kind::kTile) nest.epilogue = Epilogue(i, taken);
      if (nest.epilogue >= 0) taken.insert(nest.epilogue);
      plan.nests.push_back(nest);
    }
    return plan;
  }

 private:
  int size() const { return static_cast<int>(info_.blocks.size()); }

  Nest::Kind KindOf(int i) const {
    const BlockInfo& block = info_.blocks[static_cast<size_t>(i)];
    if (!block.reduces) return Nest::Kind::kMap;
    const int last = block.last_iter();
    const bool plain = block.single_store && last >= 0 && block.spatial(last) &&
                       std::all_of(block.output_iters.begin(), block.output_iters.end(), [](int iter) { return iter >= 0; });
    if (!plain || block.extents[static_cast<size_t>(last)] == 1) return Nest::Kind::kRows;
    bool shared = false, along = false;
    for (const BlockInfo::Access& read : block.reads) {
      const int64_t stride = read.strides[static_cast<size_t>(last)];
      shared = shared || stride == 0;
      along = along || stride == 1 || (stride != 0 && read.constant);
    }
    return along || shared ? Nest::Kind::kTile : Nest::Kind::kRows;
  }

  int Epilogue(int i, const std::set<int>& taken) const {
    const int reader = fusion_.Epilogue(i);
    return taken.count(reader) > 0 ? -1 : reader;
  }

  const WorkloadInfo& info_;
  BlockFusion fusion_;
};

}  // namespace

NestPlan PlanNests(const WorkloadInfo& info) { return Planner(info).Plan(); }

}  // namespace hone
