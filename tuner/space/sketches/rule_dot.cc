// Dot: where a machine has an instruction that adds up several products of a narrow type at once, the tile is made of
// it.
//
//   for k: for vectorized n: C[n] += A[k] * B[k, n]
//   =>  for k0: C[n:+16] = dot4(A[k0*4:+4], B[n:+16, 0:4])          B in panels with four elements of k side by side
//   =>  for k0: C[m:+16, n:+16] = mma4(A[m:+16, k0*64:+64], B[k0*16:+16, n:+16, 0:4])          where rows are
//   neighbours, in tile registers
//   =>  for k0: C[m:+2, n:+2] = mma8(A[m:+2, k0*8:+8], B[k0, n:+2, 0:8])                       in vector registers
//
// Which instructions there are is data: compiler/tile/tile_intrinsic.h.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
#include "tuner/space/nests/panels.h"
#include "tuner/space/sketches/sketch.h"

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

// Whether neighbours along k are neighbours in memory, the same for every n, wherever the rows of A begin.
bool HasTermsSideBySide(const BlockInfo& block, const BlockInfo::Access& a, int k) {
  const size_t n = static_cast<size_t>(block.last_iter());
  if (a.affine) return a.strides[static_cast<size_t>(k)] == 1 && a.strides[n] == 0;
  const auto moved_by = [&](size_t iter) {
    return std::ranges::count_if(a.indices, [&](const Expr& index) { return UsesVar(index, block.iters[iter].var); });
  };
  return DimensionAlong(block, a, k) == static_cast<int>(a.indices.size()) - 1 &&
         moved_by(static_cast<size_t>(k)) == 1 && moved_by(n) == 0;
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
    if (!WillBeTiled(context, sketch, block)) return {};
    const std::optional<BlockDot> found = FindDot(context.block(block), context.target);
    if (!found.has_value()) return {};
    Sketch grouped = sketch;
    grouped.at(block).dot = found->dot;
    grouped.at(block).dot_operand = found->operand;
    grouped.at(block).tile_rows = found->rows;
    grouped.at(block).panels.push_back(found->operand);
    grouped.choices.push_back(absl::StrCat(found->dot.intrinsic->name, "(", context.block(block).name, ")"));
    return {std::move(grouped)};
  }
};

}  // namespace

std::optional<BlockDot> FindDot(const BlockInfo& block, const Target& target) {
  const int n = block.last_iter(), k = block.last_reduce_iter();
  if (!block.is_product || block.reads.size() != 2 || n < 0 || k < 0) return std::nullopt;
  const int right = RightOperand(block, k);
  if (right < 0) return std::nullopt;
  const BlockInfo::Access &a = block.reads[static_cast<size_t>(1 - right)],
                          &b = block.reads[static_cast<size_t>(right)];
  if (!HasTermsSideBySide(block, a, k)) return std::nullopt;
  const auto extent = [&](int iter) { return block.extents[static_cast<size_t>(iter)]; };
  const int rows = RowsVariable(block, a);
  const std::optional<DotProduct> dot = FindDotProduct({.sum = block.output.type(),
                                                        .left = a.buffer.type(),
                                                        .right = b.buffer.type(),
                                                        .rows = rows < 0 ? 1 : extent(rows),
                                                        .columns = extent(n),
                                                        .depth = extent(k)},
                                                       target.features);
  if (!dot.has_value()) return std::nullopt;
  return BlockDot{*dot, right, dot->rows > 1 ? rows : -1};
}

double SpeedOfProducts(const BlockInfo& block, const Target& target, const Machine& machine) {
  const std::optional<BlockDot> found = FindDot(block, target);
  if (!found.has_value()) return 1;
  const TileInstruction& instruction = *found->dot.instruction;
  // Sums that take an instruction of their own have ports of their own on some cores.
  if (!instruction.in_tiles) return static_cast<double>(found->dot.group);
  double products = 1;  // of a whole tile: one with fewer rows may take less time
  for (const auto& [axis, most] : instruction.extents) products *= static_cast<double>(most);
  const double in_vectors = target.lanes(32) * machine.fma_per_cycle(target.vector_bits);
  return std::max(1.0, products / instruction.cycles / in_vectors);
}

std::unique_ptr<SketchRule> MakeDotRule() { return std::make_unique<DotRule>(); }

}  // namespace hone
