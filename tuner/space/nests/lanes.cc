#include "tuner/space/nests/lanes.h"

#include <algorithm>

namespace hone {
namespace {

// Vectors of as many bits are long enough for a group: cores with longer ones start two of them in a cycle, and one
// that holds elements of several groups is put together by a shuffle a product.
constexpr int64_t kLeastOfGroup = 256;

// Whether vectors of float16 are multiplied and added as they are. Elsewhere they are widened to float32 first.
bool ComputesInHalf(const Target& target) {
  return target.has("avx512fp16") || target.has("fullfp16") || target.has("zvfh");
}

}  // namespace

int LanesFor(const Target& target, const BlockInfo& block, int iter) {
  const bool in_half = block.is_product && block.output.type() == DType::Float(16) && ComputesInHalf(target);
  const int bits = std::max(in_half ? 16 : 32, static_cast<int>(block.output.type().bits));
  int most = target.lanes(bits);
  for (const BlockInfo::Access& read : block.reads) {
    if (read.steps.iter != iter) continue;
    const int64_t of_one_group = read.steps.period & -read.steps.period;  // the greatest power of two that divides it
    if (of_one_group < most && of_one_group * bits >= kLeastOfGroup) most = static_cast<int>(of_one_group);
  }
  int lanes = 1;
  while (iter >= 0 && lanes < most && lanes < block.extents[static_cast<size_t>(iter)]) lanes *= 2;
  return lanes;
}

}  // namespace hone
