// Dot: where a machine has an instruction that adds up several products of a narrow type at once, the tile is made of
// it.
//
//   for k: for vectorized n: C[n] += A[k] * B[k, n]
//   =>  for k0: C[n:+16] = dot4(A[k0*4:+4], B[n:+16, 0:4])          B in panels with four elements of k side by side
//   =>  for k0: C[m:+16, n:+16] = mma4(A[m:+16, k0*64:+64], B[k0*16:+16, n:+16, 0:4])          where rows are
//   neighbours
//
// Which instructions there are is data: compiler/ir/tile_intrinsic.h.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
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

// The spatial variable that moves A[.., m, k] and C[.., m, n] down a row at a time, and nothing else of either; -1:
// there is none.
int RowsVariable(const BlockInfo& block, const BlockInfo::Access& a) {
  if (block.output_iters.size() < 2 || a.indices.size() < 2) return -1;
  const int row = block.output_iters[block.output_iters.size() - 2];
  const std::optional<int64_t> columns = ConstantValue(a.buffer.shape().back());
  if (row < 0 || !columns.has_value() || a.strides[static_cast<size_t>(row)] != *columns) return -1;
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const bool moves = UsesVar(a.indices[d], block.iters[static_cast<size_t>(row)].var);
    if (moves != (d + 2 == a.indices.size())) return -1;
  }
  return row;
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
    const auto extent = [&](int iter) { return info.extents[static_cast<size_t>(iter)]; };
    const int rows = RowsVariable(info, a);
    const ProductShape shape{.sum = info.output.type(),
                             .left = a.buffer.type(),
                             .right = b.buffer.type(),
                             .rows = rows < 0 ? 1 : extent(rows),
                             .columns = extent(n),
                             .depth = extent(k)};
    const std::optional<DotProduct> dot = FindDotProduct(shape, context.target.features);
    if (!dot.has_value()) return {};
    Sketch grouped = sketch;
    grouped.at(block).dot = dot;
    if (dot->in_tiles()) grouped.at(block).tile_rows = rows;
    grouped.at(block).dot_operand = right;
    grouped.at(block).panels.push_back(right);
    grouped.choices.push_back(absl::StrCat(dot->intrinsic->name, "(", info.name, ")"));
    return {std::move(grouped)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeDotRule() { return std::make_unique<DotRule>(); }

}  // namespace hone
