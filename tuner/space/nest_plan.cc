#include "tuner/space/nest_plan.h"

#include <algorithm>
#include <map>
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
      if (const int reader = ReaderWithForms(i); reader >= 0) {
        producers_[reader] = i;
        continue;
      }
      Nest nest;
      nest.block = i;
      nest.kind = KindOf(i);
      if (nest.kind == Nest::Kind::kTile) nest.epilogue = Epilogue(i, taken);
      if (nest.epilogue >= 0) taken.insert(nest.epilogue);
      if (const auto producer = producers_.find(i); producer != producers_.end()) {
        nest.kind = Nest::Kind::kForms;
        nest.producer = producer->second;
        nest.forms = fusion_.Forms(i);
      }
      plan.nests.push_back(nest);
    }
    return plan;
  }

 private:
  int size() const { return static_cast<int>(info_.blocks.size()); }

  Nest::Kind KindOf(int i) const {
    const BlockInfo& block = info_.blocks[static_cast<size_t>(i)];
    if (!block.reduces) return Nest::Kind::kMap;
    return IsTileable(block) ? Nest::Kind::kTile : Nest::Kind::kRows;
  }

  // The only reader, where both choose among forms: the two halves of a transform. -1: there is none.
  int ReaderWithForms(int i) const {
    const BlockInfo& block = info_.blocks[static_cast<size_t>(i)];
    const std::set<int> readers = fusion_.Readers(i);
    if (block.reduces || !block.chooses() || readers.size() != 1) return -1;
    const BlockInfo& reader = info_.blocks[static_cast<size_t>(*readers.begin())];
    const std::vector<int64_t> forms = fusion_.Forms(*readers.begin());
    const bool chooses = std::any_of(forms.begin(), forms.end(), [](int64_t period) { return period > 0; });
    return !reader.reduces && reader.single_store && chooses ? *readers.begin() : -1;
  }

  int Epilogue(int i, const std::set<int>& taken) const {
    const int reader = fusion_.Epilogue(i);
    return taken.count(reader) > 0 ? -1 : reader;
  }

  const WorkloadInfo& info_;
  BlockFusion fusion_;
  std::map<int, int> producers_;  // of blocks of kind kForms
};

}  // namespace

NestPlan PlanNests(const WorkloadInfo& info) { return Planner(info).Plan(); }

}  // namespace hone
