// Blocks: a product between two transforms is computed block by block, with both transforms, so that what lies between
// them stays in the cache of one thread. As three nests one after the other, they pass it on through memory:
//
//   V[i, j, t, c] = transform of X;  M[i, j, t, f] += V[i, j, t, c] * U[i, j, c, f];  Y[h, w, f] = transform of M
//     =>  for blocks of rows of Y:   the t that those rows need: some rows of tiles
//           V = transform of X;  M += V * U;  Y = transform of M
//
// The loops over blocks are those of the last transform, cut here; the product is tiled inside them as in any nest
// (NestShape::pieces_of), and the transforms are shaped by rule_forms.cc.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/sketches/sketch.h"
#include "tuner/space/workload/block_fusion.h"

namespace hone {
namespace {

// The blocks, and how the variables of the last one walk through the tiles, which one variable of the product numbers.
struct Chain {
  int from = -1;  // the last block of the transform in front
  int product = -1;
  int rows = -1, to = -1;                    // the two blocks of the transform behind
  size_t tile = 0;                           // the product's variable
  size_t row = 0;                            // the variable of `to` that is cut
  size_t operand = 0;                        // of the product's reads: what `from` writes
  int64_t tile_rows = 1;                     // iterations of `row` in a tile
  int64_t images = 1;                        // iterations of the variables around it
  int64_t tiles_down = 1, tiles_across = 1;  // of an image
};

// The expression with one variable at `value` and all others at 0.
std::optional<int64_t> ValueAt(const Expr& e, const std::vector<IterVar>& iters, size_t variable, int64_t value) {
  return ConstantValue(Simplify(Substitute(e, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < iters.size(); ++i) {
      if (iters[i].var == var) return IntConst(i == variable ? value : 0, var.type());
    }
    return std::nullopt;
  })));
}

// The variable of `producer` that writes what `reader` reads at its own variable; -1: there is none.
int WriterOf(const BlockInfo& producer, const BlockInfo& reader, int variable) {
  for (const BlockInfo::Access& read : reader.reads) {
    if (!(read.buffer == producer.output) || variable < 0) continue;
    for (size_t d = 0; d < read.indices.size(); ++d) {
      const VarRef* ref = read.indices[d].As<VarRef>();
      if (ref != nullptr && ref->var == reader.iters[static_cast<size_t>(variable)].var)
        return producer.output_iters[d];
    }
  }
  return -1;
}

bool IsOpenMap(const SketchContext& context, const Sketch& sketch, int block) {
  const BlockInfo& info = context.block(block);
  return sketch.at(block).fate == SketchBlock::Fate::kOpen && !info.reduces && info.single_store;
}

// The transform in front: alone in writing what varies of the operands, for the product alone.
bool MatchFront(const SketchContext& context, const Sketch& sketch, Chain* chain) {
  const BlockInfo& product = context.block(chain->product);
  for (size_t r = 0; r < product.reads.size(); ++r) {
    if (product.reads[r].constant) continue;
    if (chain->from >= 0) return false;
    chain->operand = r;
    chain->from = context.info->Producer(product.reads[r].buffer);
    if (chain->from < 0) return false;
  }
  if (chain->from < 0 || !IsOpenMap(context, sketch, chain->from)) return false;
  const int first = ProducerOfForms(*context.info, chain->from);
  return context.block(chain->from).chooses() && first >= 0 && IsOpenMap(context, sketch, first) &&
         context.info->Consumers(chain->from) == std::vector<int>{chain->product};
}

// The transform behind, and the tiles: rows of them follow each other along the variable that is cut, images along
// those around it.
bool MatchBehind(const SketchContext& context, const Sketch& sketch, Chain* chain) {
  const std::vector<int> readers = context.info->Consumers(chain->product);
  if (readers.size() != 1 || !IsOpenMap(context, sketch, readers[0])) return false;
  chain->rows = readers[0];
  const std::vector<int> last = context.info->Consumers(chain->rows);
  if (last.size() != 1 || !IsOpenMap(context, sketch, last[0])) return false;
  chain->to = last[0];
  const BlockInfo &rows = context.block(chain->rows), &to = context.block(chain->to);
  if (!to.chooses() || ProducerOfForms(*context.info, chain->to) != chain->rows) return false;
  const std::vector<int64_t> forms = JoinedForms(to, rows);
  while (chain->row < forms.size() && forms[chain->row] == 0) chain->images *= to.extents[chain->row++];
  if (chain->row == forms.size()) return false;
  chain->tile_rows = forms[chain->row];
  chain->tiles_down = (to.extents[chain->row] + chain->tile_rows - 1) / chain->tile_rows;
  const auto read = std::find_if(to.reads.begin(), to.reads.end(),
                                 [&](const BlockInfo::Access& access) { return access.buffer == rows.output; });
  // Which dimension a row of tiles moves, by how much, and which of the product's variables writes that.
  for (size_t d = 0; d < read->indices.size(); ++d) {
    const std::optional<int64_t> here = ValueAt(read->indices[d], to.iters, chain->row, 0);
    const std::optional<int64_t> next = ValueAt(read->indices[d], to.iters, chain->row, chain->tile_rows);
    if (!here.has_value() || !next.has_value()) return false;
    if (*next == *here) continue;
    const int tile = WriterOf(context.block(chain->product), rows, rows.output_iters[d]);
    if (*here != 0 || tile < 0) return false;
    chain->tile = static_cast<size_t>(tile);
    chain->tiles_across = *next;
    return context.block(chain->product).extents[chain->tile] ==
           chain->images * chain->tiles_down * chain->tiles_across;
  }
  return false;
}

std::optional<Chain> Match(const SketchContext& context, const Sketch& sketch, int block) {
  const SketchBlock& product = sketch.at(block);
  if (!WillBeTiled(context, sketch, block) || product.epilogue >= 0 || product.cut == ReductionCut::kLanes)
    return std::nullopt;
  for (const int r : product.panels) {
    if (!context.block(block).reads[static_cast<size_t>(r)].constant) return std::nullopt;
  }
  Chain chain;
  chain.product = block;
  if (!MatchFront(context, sketch, &chain) || !MatchBehind(context, sketch, &chain)) return std::nullopt;
  return chain;
}

// How many rows of tiles a block may have: one knob, in tiles. There are at least two blocks.
std::vector<int64_t> BlockSizes(const Chain& chain) {
  std::vector<int64_t> sizes;
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}) {
    const int64_t blocks = (chain.tiles_down + rows - 1) / rows;
    // With several images, the blocks of one are as long as the tiles are numbered.
    if (rows > chain.tiles_down || (chain.images > 1 && chain.tiles_down % rows != 0)) continue;
    if (chain.images * blocks > 1) sizes.push_back(rows * chain.tiles_across);
  }
  return sizes;
}

class BlocksStep : public SketchStep {
 public:
  BlocksStep(const SketchContext& context, const Chain& chain)
      : SketchStep(absl::StrCat("blocks(", context.block(chain.product).name, ")")),
        to_(context.block(chain.to).name),
        rows_(context.block(chain.rows).name),
        machine_(context.machine),
        threads_(context.threads),
        chain_(chain) {
    knobs_.push_back({absl::StrCat(context.block(chain.product).name, ".block"), BlockSizes(chain)});
  }

  bool Plan(std::span<const int64_t> values, SketchPlan& plan) const override {
    NestPlan& product = plan[static_cast<size_t>(chain_.product)];
    const int64_t rows = values[0] / chain_.tiles_across;
    product.piece[chain_.tile] = values[0];
    product.pieces[chain_.tile] = chain_.images * ((chain_.tiles_down + rows - 1) / rows);
    product.near |= 1U << chain_.operand;
    return true;
  }

  // To share the pieces out.
  std::optional<double> Cost(std::span<const int64_t>, const SketchPlan& plan) const override {
    return ParallelTime(machine_, 0, plan[static_cast<size_t>(chain_.product)].Pieces(), threads_);
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef to, GetBlock(build.schedule, to_));
    HONE_ASSIGN_OR_RETURN(const BlockRef rows, GetBlock(build.schedule, rows_));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(build.schedule, to));
    const int64_t size = values[0] / chain_.tiles_across * chain_.tile_rows;
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(build.schedule, loops[chain_.row], {-1, size}));
    loops.resize(chain_.row);
    loops.push_back(parts[0]);
    build.pieces[static_cast<size_t>(chain_.product)] = std::move(loops);
    return ComputeAt(build.schedule, rows, parts[0]);
  }

 private:
  std::string to_, rows_;
  Machine machine_;
  int threads_;
  Chain chain_;
};

class BlocksRule : public SketchRule {
 public:
  std::string name() const override { return "blocks"; }

  // As three nests, which share constants and threads better where the tiles are few, and block by block.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const std::optional<Chain> chain = Match(context, sketch, block);
    if (!chain.has_value() || BlockSizes(*chain).empty()) return {};
    Sketch blocks = sketch;
    blocks.at(block).pieces_of = chain->to;
    blocks.at(block).cut = ReductionCut::kNone;
    blocks.at(chain->from).in_pieces_of = block;
    blocks.at(chain->to).in_pieces_of = block;
    blocks.steps.push_back(std::make_shared<BlocksStep>(context, *chain));
    blocks.choices.push_back(blocks.steps.back()->label());
    return {sketch, std::move(blocks)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeBlocksRule() { return std::make_unique<BlocksRule>(); }

}  // namespace hone
