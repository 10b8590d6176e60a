// Dot: where a machine has an instruction that adds up several products of a narrow type at once, the tile is made of
// it.
//
//   for k: for vectorized n: C[n] += A[k] * B[k, n]
//   =>  for k0: C[n:+16] = dot4(A[k0*4:+4], B[n:+16, 0:4])          B in panels with four elements of k side by side
//
// Which instructions there are is data: compiler/ir/tile_intrinsic.h.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/panels.h"
#include "tuner/space/sketch.h"

namespace hone {
namespace {

// The read that moves with n and k, each in a dimension of its own; -1: there is none.
int RightOperand(const BlockInfo& block, int k) {
  for (size_t r = 0; r < block.reads.size(); ++r) {
    if (DimensionAlong(block, block.reads[r], block.last_iter()) >= 0 && DimensionAlong(block, block.reads[r], k) >= 0)
      return static_cast<int>(r);
  }
  return -1;
}

class DotRule : public SketchRule {
 public:
  std::string name() const override { return "dot"; }

  // The instruction is never slower than what it stands for.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const BlockInfo& info = context.block(block);
    if (!WillBeTiled(context, sketch, block) || !info.is_product || info.reads.size() != 2) return {};
    const int n = info.last_iter(), k = info.last_reduce_iter();
    const int right = RightOperand(info, k);
    if (right < 0) return {};
    const BlockInfo::Access &a = info.reads[static_cast<size_t>(1 - right)],
                            &b = info.reads[static_cast<size_t>(right)];
    if (!a.affine || a.strides[static_cast<size_t>(k)] != 1 || a.strides[static_cast<size_t>(n)] != 0) return {};
    const std::optional<DotProduct> dot = FindDotProduct(info.output.type(), a.buffer.type(), b.buffer.type(),
                                                         info.extents[static_cast<size_t>(n)], context.target.features);
    if (!dot.has_value() || info.extents[static_cast<size_t>(k)] % dot->group != 0) return {};
    Sketch grouped = sketch;
    grouped.at(block).dot = dot;
    grouped.at(block).dot_operand = right;
    grouped.at(block).panels.push_back(right);
    grouped.choices.push_back(absl::StrCat(dot->intrinsic->name, "(", info.name, ")"));
    return {std::move(grouped)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeDotRule() { return std::make_unique<DotRule>(); }

}  // namespace hone
